//! SQL text to tokens, as PostgreSQL's scanner reads them.
//!
//! Must not know statements.

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// An unquoted word, in lower case.
    Word(String),
    /// A quoted identifier.
    Quoted(String),
    /// A string literal.
    Text(String),
    /// A number.
    Number(String),
    /// Punctuation or an operator.
    Sign(&'static str),
}

/// A token with the byte where it starts and the text that it came from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) at: usize,
    pub(super) end: usize,
}

/// What the scanner could not read: message and byte position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreadable {
    pub(super) message: String,
    pub(super) at: usize,
}

const SIGNS: [&str; 30] = [
    "::", "||", "<>", "!=", "<=", ">=", ":=", "=>", "->", "!~", "(", ")", ",", ";", ".", "=", "<",
    ">", "+", "-", "*", "/", "%", "[", "]", "~", ":", "@", "^", "&",
];

/// Reads a text of one or more statements.
pub(super) fn tokens(sql: &str) -> Result<Vec<Placed>, Unreadable> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(length) = blank(rest, at)? {
            at += length;
            continue;
        }
        let (token, length) = one(rest, at)?;
        found.push(Placed { token, at, end: at + length });
        at += length;
    }
    Ok(found)
}

/// The length of white space or a comment at the start.
fn blank(rest: &str, at: usize) -> Result<Option<usize>, Unreadable> {
    let space = rest.len() - rest.trim_start().len();
    if space > 0 {
        return Ok(Some(space));
    }
    if rest.starts_with("--") {
        return Ok(Some(rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        let end = rest.find("*/").map(|end| end + 2);
        let open = || Unreadable { message: "unterminated /* comment".into(), at };
        return end.map(Some).ok_or_else(open);
    }
    Ok(None)
}

fn one(rest: &str, at: usize) -> Result<(Token, usize), Unreadable> {
    let first = rest.chars().next().unwrap_or(' ');
    let second = rest.chars().nth(1).unwrap_or(' ');
    if first == '\'' {
        return literal(rest, at, false, 0);
    }
    if matches!(first, 'e' | 'E') && second == '\'' {
        return literal(rest, at, true, 1);
    }
    if first == '"' {
        let (text, length) = closed(&rest[1..], '"')
            .ok_or(Unreadable { message: "unterminated quoted identifier".into(), at })?;
        if text.is_empty() {
            return Err(Unreadable { message: "zero-length delimited identifier".into(), at });
        }
        return Ok((Token::Quoted(cut(&text)), length + 1));
    }
    if first == '$'
        && let Some(found) = dollar(rest)
    {
        return Ok(found);
    }
    if first.is_ascii_digit() {
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        return Ok((Token::Number(rest[..length].to_owned()), length));
    }
    if first.is_alphabetic() || first == '_' {
        let end = |c: char| !c.is_alphanumeric() && c != '_' && c != '$';
        let length = rest.find(end).unwrap_or(rest.len());
        return Ok((Token::Word(cut(&rest[..length].to_lowercase())), length));
    }
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => Ok((Token::Sign(sign), sign.len())),
        None => Err(Unreadable { message: format!("syntax error at or near \"{first}\""), at }),
    }
}

/// Identifiers are cut at 63 bytes.
fn cut(text: &str) -> String {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Text up to the closing quote, with doubled quotes undone, and the length with that quote.
fn closed(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        if c != quote {
            text.push(c);
        } else if chars.peek().is_some_and(|next| next.1 == quote) {
            chars.next();
            text.push(quote);
        } else {
            return Some((text, index + c.len_utf8()));
        }
    }
    None
}

fn literal(
    rest: &str,
    at: usize,
    escapes: bool,
    prefix: usize,
) -> Result<(Token, usize), Unreadable> {
    let open = Unreadable { message: "unterminated quoted string".into(), at };
    let body = &rest[prefix + 1..];
    if !escapes {
        let (text, length) = closed(body, '\'').ok_or(open)?;
        return Ok((Token::Text(text), prefix + 1 + length));
    }
    let mut text = String::new();
    let mut chars = body.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, other)) => text.push(other),
                None => return Err(open),
            },
            '\'' if chars.peek().is_some_and(|next| next.1 == '\'') => {
                chars.next();
                text.push('\'');
            }
            '\'' => return Ok((Token::Text(text), prefix + 1 + index + 1)),
            other => text.push(other),
        }
    }
    Err(open)
}

/// `$tag$ … $tag$`.
fn dollar(rest: &str) -> Option<(Token, usize)> {
    let tag = &rest[..=rest[1..].find('$')? + 1];
    let plain = tag[1..tag.len() - 1].chars().all(|c| c.is_alphanumeric() || c == '_');
    let body = &rest[tag.len()..];
    let end = body.find(tag).filter(|_| plain)?;
    Some((Token::Text(body[..end].to_owned()), tag.len() + end + tag.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(sql: &str) -> Vec<Token> {
        tokens(sql).expect("readable").into_iter().map(|placed| placed.token).collect()
    }

    #[test]
    fn quotes_comments_and_escapes() {
        let cases = [
            ("'a''b'", Token::Text("a'b".into())),
            ("E'a\\\\b\\'c'", Token::Text("a\\b'c".into())),
            ("\"A\"\"b\"", Token::Quoted("A\"b".into())),
            ("SeLeCt", Token::Word("select".into())),
            ("$$x'y$$", Token::Text("x'y".into())),
            ("$a$x$$y$a$", Token::Text("x$$y".into())),
            ("/* c */ 12 -- d", Token::Number("12".into())),
        ];
        for (sql, expected) in cases {
            assert_eq!(plain(sql), [expected], "{sql}");
        }
        assert_eq!(tokens("'open").expect_err("no end").message, "unterminated quoted string");
    }
}
