//! `psql` in the server's container: a session over the local socket, driven by standard input.
//!
//! Knows the few options that scripts use and statements that end with their line. Rows are printed
//! unaligned, whatever the options. What it does not know it refuses.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use super::server::Server;
use super::session;
use super::wire;
use crate::exec::Streams;

const SOCKET: &str = "/var/run/postgresql/.s.PGSQL.5432";

/// What the options say.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    user: String,
    database: Option<String>,
    stop_on_error: bool,
}

/// Runs a command; an error is one of whoever was to start it.
pub(crate) async fn run(
    server: Arc<Server>,
    words: Vec<String>,
    mut streams: Streams,
) -> Result<i32, String> {
    let program = words.first().map_or("", String::as_str);
    if !matches!(program.rsplit('/').next(), Some("psql")) {
        return Err(format!("exec: \"{program}\": executable file not found in $PATH"));
    }
    let ended = match options(&words[1..]) {
        Ok(options) => talk(&server, &options, &mut streams).await,
        Err(complaint) => complain(&mut streams, &complaint).await.map(|()| 1),
    };
    // Streams that nobody reads any more end a program, too.
    Ok(ended.unwrap_or(2))
}

fn options(words: &[String]) -> Result<Options, String> {
    let mut found = Options { user: "postgres".to_owned(), database: None, stop_on_error: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty());
        let Some(letters) = letters else {
            return Err(format!("psql: warning: extra command-line argument \"{word}\" ignored"));
        };
        match letters {
            "v" | "U" | "d" => {
                let value = words.next().ok_or("psql: option requires an argument")?;
                match letters {
                    "v" => found.stop_on_error |= value == "ON_ERROR_STOP=1",
                    "U" => found.user.clone_from(value),
                    _ => found.database = Some(value.clone()),
                }
            }
            flags => {
                if let Some(unknown) = flags.chars().find(|flag| !"XqAtw".contains(*flag)) {
                    return Err(format!("psql: invalid option -- '{unknown}'"));
                }
            }
        }
    }
    Ok(found)
}

async fn complain(streams: &mut Streams, text: &str) -> io::Result<()> {
    streams.error.write_all(format!("{text}\n").as_bytes()).await
}

async fn talk(server: &Arc<Server>, options: &Options, streams: &mut Streams) -> io::Result<i32> {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    if server.stopped() || server.now() < server.ready_at {
        let why = "No such file or directory";
        complain(
            streams,
            &format!("psql: error: connection to server on socket \"{SOCKET}\" failed: {why}"),
        )
        .await?;
        return Ok(2);
    }
    tokio::spawn(session::serve(server.clone(), far, String::new()));
    near.write_all(&opening(options)).await?;
    if let Some(why) = answer(&mut near, streams).await? {
        let said =
            format!("psql: error: connection to server on socket \"{SOCKET}\" failed: {why}");
        complain(streams, &said).await?;
        return Ok(2);
    }
    let code = statements(&mut near, options, streams).await?;
    near.write_all(&message(b'X', &[])).await?;
    Ok(code)
}

fn opening(options: &Options) -> Vec<u8> {
    let database = options.database.as_ref().unwrap_or(&options.user);
    let user = &options.user;
    let body = format!("user\0{user}\0database\0{database}\0application_name\0psql\0\0");
    let mut all = sized(body.len() + 8);
    all.extend(196_608_i32.to_be_bytes());
    all.extend(body.into_bytes());
    all
}

fn sized(bytes: usize) -> Vec<u8> {
    i32::try_from(bytes).unwrap_or(i32::MAX).to_be_bytes().to_vec()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut all = vec![kind];
    all.extend(sized(body.len() + 4));
    all.extend(body);
    all
}

/// Statements of standard input, each up to a line that ends with a semicolon.
async fn statements(
    near: &mut DuplexStream,
    options: &Options,
    streams: &mut Streams,
) -> io::Result<i32> {
    let (spare, _) = tokio::io::duplex(1);
    let mut lines = BufReader::new(std::mem::replace(&mut streams.input, spare)).lines();
    let (mut statement, mut number) = (String::new(), 0);
    loop {
        let line = lines.next_line().await?;
        number += 1;
        let last = line.is_none();
        let line = line.unwrap_or_default();
        let refusal = if line.starts_with('\\') && statement.is_empty() {
            match line.trim() {
                "\\q" => return Ok(0),
                other => Some(format!("invalid command {other}")),
            }
        } else {
            statement.push_str(&line);
            statement.push('\n');
            let whole = last || line.trim_end().ends_with(';');
            match whole && !statement.trim().is_empty() {
                true => {
                    let text = std::mem::take(&mut statement);
                    near.write_all(&message(b'Q', format!("{text}\0").as_bytes())).await?;
                    answer(near, streams).await?
                }
                false => None,
            }
        };
        if let Some(refusal) = refusal {
            complain(streams, &format!("psql:<stdin>:{number}: {refusal}")).await?;
            if refusal.starts_with("FATAL") {
                return Ok(2);
            }
            if options.stop_on_error {
                return Ok(3);
            }
        }
        if last {
            return Ok(0);
        }
    }
}

/// Hears the server out until it is ready for more; its error, if it had one.
async fn answer(near: &mut DuplexStream, streams: &mut Streams) -> io::Result<Option<String>> {
    let mut refusal = None;
    loop {
        let (kind, body) = match wire::message(near).await {
            Ok(message) => message,
            Err(_) if refusal.is_some() => return Ok(refusal),
            Err(error) => return Err(error),
        };
        match kind {
            b'Z' => return Ok(refusal),
            b'R' if !body.starts_with(&[0, 0, 0, 0]) => {
                return Ok(Some("fe_sendauth: no password supplied".to_owned()));
            }
            b'E' => refusal = Some(told(&body)),
            b'D' => {
                let row = row(&body);
                streams.output.write_all(format!("{row}\n").as_bytes()).await?;
            }
            _ => {}
        }
    }
}

/// Severity and message of an error.
fn told(body: &[u8]) -> String {
    let fields = String::from_utf8_lossy(body).into_owned();
    let field = |letter: char| {
        let mut all = fields.split('\0').filter_map(|field| field.strip_prefix(letter));
        all.next().unwrap_or_default().to_owned()
    };
    format!("{}:  {}", field('S'), field('M'))
}

fn row(body: &[u8]) -> String {
    let mut cells = Vec::new();
    let mut rest = body.get(2..).unwrap_or_default();
    while let Some((length, after)) = rest.split_at_checked(4) {
        let length = i32::from_be_bytes(length.try_into().unwrap_or_default());
        let length = usize::try_from(length).unwrap_or(0);
        let (cell, after) = after.split_at_checked(length).unwrap_or((after, &[]));
        cells.push(String::from_utf8_lossy(cell).into_owned());
        rest = after;
    }
    cells.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Options, String> {
        options(&text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_that_are_not_known_are_refused() {
        let found = of("-X -qAt -v ON_ERROR_STOP=1 -v VERBOSITY=terse -U a -d b");
        let expected =
            Options { user: "a".to_owned(), database: Some("b".to_owned()), stop_on_error: true };
        assert_eq!(found, Ok(expected));
        assert_eq!(of("-X --csv"), Err("psql: invalid option -- '-'".to_owned()));
        assert_eq!(of("-v"), Err("psql: option requires an argument".to_owned()));
    }
}
