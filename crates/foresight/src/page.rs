//! A page of text: styled words, wrapped at a width, coloured or plain at the last moment.
//!
//! Must not know whether there is a terminal; the caller does.

pub mod explanation;
pub mod forecast;
pub mod summary;

use std::fmt::Write as _;

/// How a piece of text looks on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    Plain,
    /// Stands out.
    Strong,
    /// Stands back.
    Dim,
    /// Comes, or is well.
    Good,
    /// Changes, or deserves a look.
    Care,
    /// Goes, or is refused.
    Bad,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Dim => "2",
            Self::Good => "32",
            Self::Care => "33",
            Self::Bad => "31",
        }
    }
}

/// Width of a page, in columns.
pub const WIDTH: usize = 80;

/// Lines of styled text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    lines: Vec<Vec<(Style, String)>>,
    /// Show lists in full.
    pub all: bool,
}

impl Page {
    /// An empty page; `all` shows lists in full.
    pub fn new(all: bool) -> Self {
        Self { lines: Vec::new(), all }
    }

    /// How many lines it has.
    pub fn height(&self) -> usize {
        self.lines.len()
    }

    /// An empty line, unless the page is empty.
    pub fn gap(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push(Vec::new());
        }
    }

    /// A heading.
    pub fn heading(&mut self, indent: usize, text: &str) {
        self.lines.push(vec![(Style::Plain, " ".repeat(indent)), (Style::Strong, text.to_owned())]);
    }

    /// Words behind a mark, wrapped; further lines stand below the first word.
    pub fn item(&mut self, indent: usize, mark: (Style, &str), words: &[(Style, &str)]) {
        let space = if mark.1.is_empty() { "" } else { " " };
        let hang = indent + mark.1.chars().count() + space.len();
        let mut line = vec![
            (Style::Plain, " ".repeat(indent)),
            (mark.0, mark.1.to_owned()),
            (Style::Plain, space.to_owned()),
        ];
        let mut column = hang;
        for (style, text) in words {
            for word in text.split(' ').flat_map(|word| pieces(word, WIDTH.saturating_sub(hang))) {
                let width = word.chars().count();
                let blank = usize::from(column > hang);
                if column > hang && column + blank + width > WIDTH {
                    self.lines.push(std::mem::take(&mut line));
                    line.push((Style::Plain, " ".repeat(hang)));
                    column = hang;
                }
                if column > hang {
                    line.push((Style::Plain, " ".to_owned()));
                    column += 1;
                }
                line.push((*style, word.to_owned()));
                column += width;
            }
        }
        self.lines.push(line);
    }

    /// Plain words, wrapped.
    pub fn paragraph(&mut self, indent: usize, text: &str) {
        self.item(indent, (Style::Plain, ""), &[(Style::Plain, text)]);
    }

    /// A name in a column of its own, and words behind it, wrapped within their column.
    pub fn entry(&mut self, indent: usize, (style, name): (Style, &str), width: usize, text: &str) {
        let padded = format!("{name:<width$}");
        self.item(indent, (style, &padded), &[(Style::Plain, text)]);
    }

    /// Items one below the other; a long list is folded.
    pub fn list<T>(&mut self, items: &[T], longest: usize, mut show: impl FnMut(&mut Self, &T)) {
        let folds = !self.all && items.len() > longest;
        let shown = if folds { longest.saturating_sub(1) } else { items.len() };
        for item in &items[..shown] {
            show(self, item);
        }
        if folds {
            let more = items.len() - shown;
            self.item(
                4,
                (Style::Dim, "…"),
                &[(Style::Dim, &format!("{more} more (--all shows them)"))],
            );
        }
    }

    /// The text, with a line break at the end of each line; `colour` adds ANSI codes.
    pub fn text(&self, colour: bool) -> String {
        let mut out = String::new();
        for line in &self.lines {
            let mut shown = String::new();
            for (style, text) in line {
                if colour && *style != Style::Plain && !text.trim().is_empty() {
                    // Writing to a String cannot fail.
                    let _ = write!(shown, "\x1b[{}m{text}\x1b[0m", style.code());
                } else {
                    shown.push_str(text);
                }
            }
            out.push_str(shown.trim_end());
            out.push('\n');
        }
        out
    }
}

/// A word, in pieces that fit a line.
fn pieces(word: &str, longest: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters.chunks(longest.max(20)).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_below_the_first_word_and_no_line_is_too_long() {
        let mut page = Page::new(false);
        let long = format!("{}{}", "word ".repeat(40), "x".repeat(200));
        page.item(2, (Style::Care, "!"), &[(Style::Plain, &long)]);
        let text = page.text(false);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("    ")), "{text}");
    }

    #[test]
    fn colour_adds_codes_and_nothing_else() {
        let mut page = Page::new(false);
        page.item(0, (Style::Good, "+"), &[(Style::Strong, "a"), (Style::Plain, "b")]);
        assert_eq!(page.text(false), "+ a b\n");
        assert_eq!(page.text(true), "\x1b[32m+\x1b[0m \x1b[1ma\x1b[0m b\n");
    }

    #[test]
    fn a_long_list_says_how_much_it_leaves_out() {
        let show = |page: &mut Page, item: &i32| page.paragraph(0, &item.to_string());
        let mut page = Page::new(false);
        page.list(&[1, 2, 3, 4, 5], 3, show);
        assert_eq!(page.text(false), "1\n2\n    … 3 more (--all shows them)\n");
        let mut page = Page::new(true);
        page.list(&[1, 2, 3, 4, 5], 3, show);
        assert_eq!(page.height(), 5);
    }
}
