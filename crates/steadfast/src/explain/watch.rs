//! `explain --watch`: the page drawn anew when something changes, until Ctrl-C.
//!
//! On a terminal the page takes the whole screen, and its last line, the summary, stays in sight; in a
//! pipe each new page follows the one before.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use phased::Settings;

use super::{Target, all, page_of};
use crate::link::Link;
use crate::output;
use crate::run::told_to_stop;

/// How often the cluster is looked at.
const PAUSE: Duration = Duration::from_secs(2);
/// Height of a terminal that does not tell.
const ROWS: usize = 24;

/// Takes the whole screen, and gives it back when dropped.
struct Screen;

impl Screen {
    fn take() -> Self {
        output::text("\x1b[?1049h\x1b[?25l");
        Self
    }

    /// Draws the beginning of a text, and always its last line.
    fn draw(text: &str) {
        let rows = match rustix::termios::tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_row > 2 => usize::from(size.ws_row),
            Ok(_) | Err(_) => ROWS,
        };
        let lines: Vec<&str> = text.lines().collect();
        let mut shown = String::from("\x1b[H\x1b[2J");
        match lines.split_last() {
            Some((last, above)) if lines.len() > rows => {
                shown.push_str(&above[..rows - 2].join("\r\n"));
                let more = above.len() - (rows - 2);
                shown.push_str(&format!("\r\n… {more} more lines\r\n{last}"));
            }
            _ => shown.push_str(&lines.join("\r\n")),
        }
        output::text(&shown);
        let _ = std::io::stdout().flush();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        output::text("\x1b[?25h\x1b[?1049l");
    }
}

/// Watches until the process is told to stop.
pub(super) async fn watch(
    link: &Link,
    target: &Target,
    settings: &Settings,
    in_full: bool,
) -> anyhow::Result<ExitCode> {
    let terminal = std::io::stdout().is_terminal();
    let mut stop = std::pin::pin!(told_to_stop());
    let mut screen = None;
    let mut before = String::new();
    loop {
        let looked = tokio::select! {
            biased;
            () = &mut stop => break,
            looked = all(link, target, settings) => looked,
        };
        let text = match looked {
            Ok(told) => page_of(&told, in_full).text(output::colour()),
            // The first look must succeed; a later one may fail for a while.
            Err(mistake) if before.is_empty() => return Err(mistake.into()),
            Err(mistake) => format!("{mistake}\n"),
        };
        if terminal {
            screen.get_or_insert_with(Screen::take);
            Screen::draw(&text);
        } else if same_but_for_times(&text, &before) {
            // Nothing to tell.
        } else {
            output::text(&format!("{text}\n"));
        }
        before = text;
        tokio::select! {
            biased;
            () = &mut stop => break,
            // poll: the cluster, as kubectl's describe would be called again
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
    drop(screen);
    Ok(ExitCode::SUCCESS)
}

/// Whether two pages differ in digits only: times pass, and are no news.
fn same_but_for_times(a: &str, b: &str) -> bool {
    let words = |text: &str| -> String {
        text.chars().filter(|c| !c.is_ascii_digit() && !c.is_whitespace()).collect()
    };
    let units = |text: String| text.replace("min", "").replace("ago", "");
    units(words(a)) == units(words(b))
}
