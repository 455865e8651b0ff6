//! Shell text to commands.
//!
//! Must not run anything.

/// A piece of a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Text(String),
    Variable(String),
    Command(Vec<Node>),
}

/// A word before expansion.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    pub(super) quoted: bool,
}

/// Where one of the two outputs goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Redirection {
    /// Whether it is the second output, for errors.
    pub(super) errors: bool,
    pub(super) to: Target,
}

/// The other end of a redirection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    /// `/dev/null`.
    Nowhere,
    /// `&1` and `&2`.
    Other,
    /// A file, written anew or added to.
    File(Word, bool),
}

/// A command.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Words, assignments, and where the output goes.
    Simple(Vec<Word>, Vec<(String, Word)>, Vec<Redirection>),
    Pipe(Vec<Node>),
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    If(Vec<(Vec<Node>, Vec<Node>)>, Vec<Node>),
    Group(Vec<Node>),
    Function(String, Vec<Node>),
}

type Parsed<T> = Result<T, String>;

/// All commands of a script.
pub(super) fn script(text: &str) -> Parsed<Vec<Node>> {
    let mut parser = Parser { rest: text.chars().collect(), at: 0 };
    let nodes = parser.list(&[])?;
    match parser.peek() {
        None => Ok(nodes),
        Some(c) => Err(format!("syntax error near '{c}'")),
    }
}

struct Parser {
    rest: Vec<char>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn ahead(&self, text: &str) -> bool {
        self.rest[self.at..].iter().copied().zip(text.chars()).filter(|(a, b)| a == b).count()
            == text.chars().count()
    }

    fn take(&mut self, text: &str) -> bool {
        let fits = self.ahead(text);
        self.at += if fits { text.chars().count() } else { 0 };
        fits
    }

    fn blanks(&mut self) {
        while let Some(c) = self.peek() {
            if c == ' ' || c == '\t' {
                self.at += 1;
            } else if self.ahead("\\\n") {
                self.at += 2;
            } else {
                return;
            }
        }
    }

    /// Blanks, ends of lines, semicolons and comments.
    fn gaps(&mut self) {
        loop {
            self.blanks();
            match self.peek() {
                Some('\n' | ';') => self.at += 1,
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Whether this word stands here by itself.
    fn keyword(&self, word: &str) -> bool {
        let end = self.rest.get(self.at + word.chars().count());
        self.ahead(word) && end.is_none_or(|c| c.is_whitespace() || matches!(c, ';' | ')' | '}'))
    }

    fn need(&mut self, word: &str) -> Parsed<()> {
        if self.keyword(word) {
            self.at += word.chars().count();
            return Ok(());
        }
        Err(format!("syntax error: \"{word}\" expected"))
    }

    fn list(&mut self, ends: &[&str]) -> Parsed<Vec<Node>> {
        let mut nodes = Vec::new();
        loop {
            self.gaps();
            if self.peek().is_none_or(|c| matches!(c, ')'))
                || ends.iter().any(|end| self.keyword(end))
            {
                return Ok(nodes);
            }
            nodes.push(self.chain()?);
        }
    }

    fn chain(&mut self) -> Parsed<Node> {
        let mut left = self.pipeline()?;
        loop {
            self.blanks();
            if self.take("&&") {
                self.gaps();
                left = Node::And(Box::new(left), Box::new(self.pipeline()?));
            } else if self.take("||") {
                self.gaps();
                left = Node::Or(Box::new(left), Box::new(self.pipeline()?));
            } else {
                return Ok(left);
            }
        }
    }

    fn pipeline(&mut self) -> Parsed<Node> {
        self.blanks();
        if self.keyword("!") {
            self.at += 1;
            return Ok(Node::Not(Box::new(self.pipeline()?)));
        }
        let mut parts = vec![self.command()?];
        loop {
            self.blanks();
            if self.ahead("||") || !self.take("|") {
                break;
            }
            self.gaps();
            parts.push(self.command()?);
        }
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => Ok(Node::Pipe(parts)),
        }
    }

    fn command(&mut self) -> Parsed<Node> {
        self.blanks();
        if self.keyword("if") {
            return self.conditional();
        }
        if self.keyword("{") {
            self.at += 1;
            let nodes = self.list(&["}"])?;
            self.need("}")?;
            return Ok(Node::Group(nodes));
        }
        for word in ["for", "while", "until", "case"] {
            if self.keyword(word) {
                return Err(format!("the model's shell does not know \"{word}\""));
            }
        }
        self.simple()
    }

    fn conditional(&mut self) -> Parsed<Node> {
        self.need("if")?;
        let mut branches = Vec::new();
        let mut other = Vec::new();
        loop {
            let test = self.list(&["then"])?;
            self.need("then")?;
            let then = self.list(&["elif", "else", "fi"])?;
            branches.push((test, then));
            if self.keyword("elif") {
                self.need("elif")?;
                continue;
            }
            if self.keyword("else") {
                self.need("else")?;
                other = self.list(&["fi"])?;
            }
            self.need("fi")?;
            return Ok(Node::If(branches, other));
        }
    }

    fn simple(&mut self) -> Parsed<Node> {
        let (mut words, mut assignments, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';' | '|' | '&' | ')') => break,
                _ => {}
            }
            if let Some(output) = self.redirection()? {
                outputs.push(output);
                continue;
            }
            let before = self.at;
            let word = self.word()?;
            if let (true, [Part::Text(name)]) = (words.is_empty(), word.parts.as_slice())
                && self.take("()")
            {
                let name = name.clone();
                self.gaps();
                self.need("{")?;
                let body = self.list(&["}"])?;
                self.need("}")?;
                return Ok(Node::Function(name, body));
            }
            match assignment(&word).filter(|_| words.is_empty()) {
                Some(found) => assignments.push(found),
                None => words.push(word),
            }
            if self.at == before {
                return Err(format!("syntax error near '{}'", self.peek().unwrap_or(' ')));
            }
        }
        Ok(Node::Simple(words, assignments, outputs))
    }

    /// `>file`, `>>file`, `2>file`, `>&2`, `2>&1`; input is not read from files.
    fn redirection(&mut self) -> Parsed<Option<Redirection>> {
        if self.peek() == Some('<') {
            return Err("the model's shell reads no input from files".into());
        }
        let errors = self.ahead("2>");
        if !(errors || self.ahead("1>") || self.ahead(">")) {
            return Ok(None);
        }
        let _ = self.take("2") || self.take("1");
        let adds = self.take(">>");
        if !adds {
            self.take(">");
        }
        if self.take("&2") || self.take("&1") {
            return Ok(Some(Redirection { errors, to: Target::Other }));
        }
        self.blanks();
        let word = self.word()?;
        let to = match word.parts.as_slice() {
            [] => return Err("syntax error: a file name is missing".into()),
            [Part::Text(path)] if path == "/dev/null" => Target::Nowhere,
            _ => Target::File(word, adds),
        };
        Ok(Some(Redirection { errors, to }))
    }

    fn word(&mut self) -> Parsed<Word> {
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                '\'' => {
                    self.at += 1;
                    let text = self.until('\'')?;
                    word.parts.push(Part::Text(text));
                    word.quoted = true;
                }
                '"' => {
                    self.at += 1;
                    word.quoted = true;
                    while self.peek().is_some_and(|c| c != '"') {
                        let part = self.part(true)?;
                        word.parts.push(part);
                    }
                    if !self.take("\"") {
                        return Err("unterminated quoted string".into());
                    }
                }
                c if c.is_whitespace() || matches!(c, ';' | '|' | '&' | '(' | ')' | '<' | '>') => {
                    break;
                }
                _ => {
                    let part = self.part(false)?;
                    word.parts.push(part);
                }
            }
        }
        Ok(join(word))
    }

    fn until(&mut self, end: char) -> Parsed<String> {
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            if c == end {
                return Ok(text);
            }
            text.push(c);
        }
        Err("unterminated quoted string".into())
    }

    fn part(&mut self, quoted: bool) -> Parsed<Part> {
        let c = self.peek().unwrap_or(' ');
        self.at += 1;
        if c == '\\' {
            let next = self.peek().unwrap_or('\\');
            self.at += 1;
            let kept = quoted && !matches!(next, '$' | '"' | '\\' | '`');
            return Ok(Part::Text(if kept { format!("\\{next}") } else { next.to_string() }));
        }
        if c != '$' {
            return Ok(Part::Text(c.to_string()));
        }
        if self.take("(") {
            let nodes = self.list(&[])?;
            if !self.take(")") {
                return Err("unterminated command substitution".into());
            }
            return Ok(Part::Command(nodes));
        }
        if self.take("{") {
            return self.until('}').map(Part::Variable);
        }
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || *c == '_') {
            name.push(c);
            self.at += 1;
        }
        Ok(if name.is_empty() { Part::Text("$".into()) } else { Part::Variable(name) })
    }
}

/// Neighbouring texts become one.
fn join(word: Word) -> Word {
    let mut parts: Vec<Part> = Vec::new();
    for part in word.parts {
        match (parts.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
            (_, part) => parts.push(part),
        }
    }
    Word { parts, quoted: word.quoted }
}

/// `name=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Some(Part::Text(first)) = word.parts.first() else { return None };
    let (name, value) = first.split_once('=')?;
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if name.is_empty() || !plain || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut parts = vec![Part::Text(value.to_owned())];
    parts.extend(word.parts.iter().skip(1).cloned());
    Some((name.to_owned(), Word { parts, quoted: true }))
}
