//! Tokens to statements.
//!
//! Must not look at data. What the grammar does not know is answered as PostgreSQL answers a
//! syntax error, so a statement outside the model is noticed at once.

mod create;
mod expression;
mod query;
mod statement;

use super::ast::{Name, Statement};
use super::refusal::Refusal;
use super::token::{Placed, Token, tokens};

/// A statement with its text.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    pub(super) statement: Statement,
}

/// All statements of a query message.
pub(super) fn statements(sql: &str) -> Result<Vec<Parsed>, Refusal> {
    let tokens = tokens(sql).map_err(|error| {
        let message = match error.message.starts_with("syntax error") {
            true => error.message,
            false => format!("{} at or near \"{}\"", error.message, &sql[error.at..]),
        };
        Refusal::new("42601", &message).at(sql, error.at)
    })?;
    let mut parser = Parser { sql, tokens, next: 0 };
    let mut found = Vec::new();
    loop {
        while parser.sign(";") {}
        if parser.done() {
            return Ok(found);
        }
        let statement = parser.statement()?;
        if !parser.done() && !parser.sign(";") {
            return Err(parser.unexpected());
        }
        found.push(Parsed { statement });
    }
}

struct Parser<'a> {
    sql: &'a str,
    tokens: Vec<Placed>,
    next: usize,
}

type Parse<T> = Result<T, Refusal>;

impl Parser<'_> {
    fn done(&self) -> bool {
        self.next >= self.tokens.len()
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|placed| &placed.token)
    }

    fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.next + ahead).map(|placed| &placed.token)
    }

    /// The syntax error at the present token.
    fn unexpected(&self) -> Refusal {
        match self.tokens.get(self.next) {
            Some(placed) => {
                let text = &self.sql[placed.at..placed.end];
                let message = format!("syntax error at or near \"{text}\"");
                Refusal::new("42601", &message).at(self.sql, placed.at)
            }
            None => {
                Refusal::new("42601", "syntax error at end of input").at(self.sql, self.sql.len())
            }
        }
    }

    fn sign(&mut self, sign: &str) -> bool {
        let fits = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.next += usize::from(fits);
        fits
    }

    fn need_sign(&mut self, sign: &str) -> Parse<()> {
        if self.sign(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(found)) if found == word)
    }

    fn word(&mut self, word: &str) -> bool {
        let fits = self.is_word(word);
        self.next += usize::from(fits);
        fits
    }

    /// All of the words in a row, or none.
    fn words(&mut self, words: &[&str]) -> bool {
        let fits = words.iter().enumerate().all(|(ahead, word)| {
            matches!(self.peek_at(ahead), Some(Token::Word(found)) if found == word)
        });
        self.next += if fits { words.len() } else { 0 };
        fits
    }

    fn need_word(&mut self, word: &str) -> Parse<()> {
        if self.word(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn identifier(&mut self) -> Parse<String> {
        match self.peek() {
            Some(Token::Word(name) | Token::Quoted(name)) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn text(&mut self) -> Parse<String> {
        match self.peek() {
            Some(Token::Text(text)) => {
                let text = text.clone();
                self.next += 1;
                Ok(text)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn number(&mut self) -> Parse<i64> {
        let negative = self.sign("-");
        match self.peek() {
            Some(Token::Number(digits)) => {
                let value: i64 = digits.parse().map_err(|_| self.unexpected())?;
                self.next += 1;
                Ok(if negative { -value } else { value })
            }
            _ => Err(self.unexpected()),
        }
    }

    fn name(&mut self) -> Parse<Name> {
        let first = self.identifier()?;
        if !self.sign(".") {
            return Ok(Name { schema: None, name: first });
        }
        Ok(Name { schema: Some(first), name: self.identifier()? })
    }

    /// A setting's name, which may have dots.
    fn setting_name(&mut self) -> Parse<String> {
        let mut name = self.identifier()?;
        while self.sign(".") {
            name = format!("{name}.{}", self.identifier()?);
        }
        Ok(name)
    }

    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut found = vec![one(self)?];
        while self.sign(",") {
            found.push(one(self)?);
        }
        Ok(found)
    }
}
