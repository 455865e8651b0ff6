//! Queries: select lists, sources, joins.
//!
//! Must not evaluate anything.

use super::expression::RESERVED;
use super::{Parse, Parser};
use crate::external::postgres::ast::{Expression, From, Query, Source};
use crate::external::postgres::token::Token;

impl Parser<'_> {
    pub(super) fn query(&mut self) -> Parse<Query> {
        let mut query = Query::default();
        if self.word("values") {
            query.values = self.list(|parser| {
                parser.need_sign("(")?;
                let row = parser.list(Parser::expression)?;
                parser.need_sign(")")?;
                Ok(row)
            })?;
            return Ok(query);
        }
        self.need_word("select")?;
        let _ = self.word("all") || self.word("distinct");
        if !self.is_word("from") && !self.done() && !matches!(self.peek(), Some(Token::Sign(";"))) {
            query.columns = self.list(Parser::item)?;
        }
        if self.word("from") {
            query.from = self.sources()?;
        }
        if self.word("where") {
            query.filter = Some(self.expression()?);
        }
        if self.words(&["order", "by"]) {
            query.order = self.list(|parser| {
                let by = parser.expression()?;
                let down = parser.word("desc");
                let _ = parser.word("asc");
                if parser.word("nulls") {
                    let _ = parser.word("first") || parser.word("last");
                }
                Ok((by, down))
            })?;
        }
        if self.word("limit") {
            query.limit = Some(usize::try_from(self.number()?).unwrap_or(0));
        }
        if self.words(&["for", "update"]) {
            let _ = self.word("nowait");
        }
        Ok(query)
    }

    pub(super) fn item(&mut self) -> Parse<(Expression, Option<String>)> {
        if self.sign("*") {
            return Ok((Expression::Star, None));
        }
        let expression = self.expression()?;
        let alias = self.alias()?;
        Ok((expression, alias))
    }

    pub(super) fn alias(&mut self) -> Parse<Option<String>> {
        if self.word("as") {
            return self.identifier().map(Some);
        }
        match self.peek() {
            Some(Token::Quoted(_)) => self.identifier().map(Some),
            Some(Token::Word(word)) if !RESERVED.contains(&word.as_str()) => {
                self.identifier().map(Some)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn sources(&mut self) -> Parse<Vec<From>> {
        let mut from = vec![self.source(false)?];
        loop {
            if self.sign(",") || self.words(&["cross", "join"]) {
                from.push(self.source(false)?);
                continue;
            }
            let left = self.word("left");
            let _ = (left && self.word("outer")) || self.word("inner");
            if !self.word("join") {
                return Ok(from);
            }
            let mut joined = self.source(left)?;
            self.need_word("on")?;
            joined.on = Some(self.expression()?);
            from.push(joined);
        }
    }

    pub(super) fn source(&mut self, left: bool) -> Parse<From> {
        let _ = self.word("lateral");
        let source = if self.sign("(") {
            let query = self.query()?;
            self.need_sign(")")?;
            Source::Query(Box::new(query))
        } else {
            let name = self.name()?;
            match self.sign("(") {
                true => Source::Function(name, self.arguments()?),
                false => Source::Table(name),
            }
        };
        let alias = self.alias()?;
        let mut columns = Vec::new();
        if alias.is_some() && self.sign("(") {
            columns = self.list(Self::identifier)?;
            self.need_sign(")")?;
        }
        Ok(From { source, alias, columns, on: None, left })
    }
}
