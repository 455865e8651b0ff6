//! Expressions.
//!
//! Must not evaluate anything.

use super::{Parse, Parser};
use crate::external::postgres::ast::{Expression, Name};
use crate::external::postgres::token::Token;

/// Words that end a select item or a source, so they are no alias there.
pub(super) const RESERVED: [&str; 26] = [
    "from",
    "where",
    "order",
    "limit",
    "on",
    "join",
    "left",
    "inner",
    "cross",
    "group",
    "having",
    "union",
    "and",
    "or",
    "not",
    "as",
    "then",
    "when",
    "else",
    "end",
    "in",
    "is",
    "returning",
    "set",
    "offset",
    "for",
];

impl Parser<'_> {
    pub(super) fn arguments(&mut self) -> Parse<Vec<Expression>> {
        if self.sign(")") {
            return Ok(Vec::new());
        }
        let arguments =
            self.list(
                |parser| {
                    if parser.sign("*") { Ok(Expression::Star) } else { parser.expression() }
                },
            )?;
        self.need_sign(")")?;
        Ok(arguments)
    }

    pub(super) fn expression(&mut self) -> Parse<Expression> {
        let mut left = self.conjunction()?;
        while self.word("or") {
            left = operation(left, "or", self.conjunction()?);
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Parse<Expression> {
        let mut left = self.negation()?;
        while self.word("and") {
            left = operation(left, "and", self.negation()?);
        }
        Ok(left)
    }

    fn negation(&mut self) -> Parse<Expression> {
        if self.word("not") {
            return Ok(Expression::Not(Box::new(self.negation()?)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parse<Expression> {
        let mut left = self.sum()?;
        loop {
            let sign = ["=", "<>", "!=", "<=", ">=", "<", ">", "!~", "~"];
            if let Some(sign) = sign.into_iter().find(|sign| self.sign(sign)) {
                let sign = if sign == "!=" { "<>" } else { sign };
                if self.word("any") {
                    self.need_sign("(")?;
                    let list = self.expression()?;
                    self.need_sign(")")?;
                    left = operation(left, "any", list);
                    continue;
                }
                left = operation(left, sign, self.sum()?);
            } else if self.word("is") {
                left = self.is(left)?;
            } else if self.word("like") {
                left = operation(left, "like", self.sum()?);
            } else if self.words(&["not", "like"]) {
                let like = operation(left, "like", self.sum()?);
                left = Expression::Not(Box::new(like));
            } else if self.words(&["not", "in"]) {
                left = self.among(left, true)?;
            } else if self.word("in") {
                left = self.among(left, false)?;
            } else {
                return Ok(left);
            }
        }
    }

    fn is(&mut self, left: Expression) -> Parse<Expression> {
        let not = self.word("not");
        if self.word("null") {
            return Ok(Expression::IsNull(Box::new(left), !not));
        }
        if self.words(&["distinct", "from"]) {
            let sign = if not { "same" } else { "distinct" };
            return Ok(operation(left, sign, self.sum()?));
        }
        let wanted = if self.word("true") {
            true
        } else {
            self.need_word("false")?;
            false
        };
        let same = operation(left, "same", Expression::Bool(wanted));
        Ok(if not { Expression::Not(Box::new(same)) } else { same })
    }

    fn among(&mut self, left: Expression, not: bool) -> Parse<Expression> {
        self.need_sign("(")?;
        let list = if self.is_word("select") {
            vec![Expression::Query(Box::new(self.query()?))]
        } else {
            self.list(Parser::expression)?
        };
        self.need_sign(")")?;
        Ok(Expression::In(Box::new(left), list, not))
    }

    fn sum(&mut self) -> Parse<Expression> {
        let mut left = self.product()?;
        while let Some(sign) = ["+", "-", "||"].into_iter().find(|sign| self.sign(sign)) {
            left = operation(left, sign, self.product()?);
        }
        Ok(left)
    }

    fn product(&mut self) -> Parse<Expression> {
        let mut left = self.cast()?;
        while let Some(sign) = ["*", "/", "%"].into_iter().find(|sign| self.sign(sign)) {
            left = operation(left, sign, self.cast()?);
        }
        Ok(left)
    }

    fn cast(&mut self) -> Parse<Expression> {
        let mut inner = self.atom()?;
        while self.sign("::") {
            inner = Expression::Cast(Box::new(inner), self.kind()?);
        }
        Ok(inner)
    }

    /// A type, without its schema and size.
    pub(super) fn kind(&mut self) -> Parse<String> {
        let mut kind = self.name()?.name;
        if kind == "character" && self.word("varying") {
            kind = "varchar".into();
        }
        if kind == "double" && self.word("precision") {
            kind = "float8".into();
        }
        if self.sign("(") {
            self.list(Parser::number)?;
            self.need_sign(")")?;
        }
        if self.sign("[") {
            self.need_sign("]")?;
            kind.push_str("[]");
        }
        let zoned = self.words(&["with", "time", "zone"]);
        if zoned || self.words(&["without", "time", "zone"]) {
            kind = if zoned { "timestamptz".into() } else { kind };
        }
        Ok(match kind.as_str() {
            "int" | "integer" => "int4".into(),
            "bigint" => "int8".into(),
            "smallint" => "int2".into(),
            "boolean" => "bool".into(),
            "decimal" => "numeric".into(),
            _ => kind,
        })
    }

    fn atom(&mut self) -> Parse<Expression> {
        match self.peek().cloned() {
            Some(Token::Text(text)) => {
                self.next += 1;
                Ok(Expression::Text(text))
            }
            Some(Token::Number(digits)) => {
                self.next += 1;
                Ok(digits.parse().map_or(Expression::Decimal(digits), Expression::Integer))
            }
            Some(Token::Sign("-")) => {
                self.next += 1;
                Ok(Expression::Negative(Box::new(self.cast()?)))
            }
            Some(Token::Sign("(")) => {
                self.next += 1;
                let inner = match self.is_word("select") || self.is_word("values") {
                    true => Expression::Query(Box::new(self.query()?)),
                    false => self.expression()?,
                };
                self.need_sign(")")?;
                Ok(inner)
            }
            Some(Token::Word(word)) => self.worded(&word),
            Some(Token::Quoted(_)) => self.reference(),
            _ => Err(self.unexpected()),
        }
    }

    fn worded(&mut self, word: &str) -> Parse<Expression> {
        let constant = match word {
            "null" => Some(Expression::Null),
            "true" => Some(Expression::Bool(true)),
            "false" => Some(Expression::Bool(false)),
            _ => None,
        };
        if let Some(constant) = constant {
            self.next += 1;
            return Ok(constant);
        }
        match word {
            "case" => self.case(),
            "exists" => {
                self.next += 1;
                self.need_sign("(")?;
                let query = self.query()?;
                self.need_sign(")")?;
                Ok(Expression::Exists(Box::new(query)))
            }
            "array" => {
                self.next += 1;
                self.need_sign("[")?;
                let items = self.list(Parser::expression)?;
                self.need_sign("]")?;
                Ok(Expression::Array(items))
            }
            "cast" => {
                self.next += 1;
                self.need_sign("(")?;
                let inner = self.expression()?;
                self.need_word("as")?;
                let kind = self.kind()?;
                self.need_sign(")")?;
                Ok(Expression::Cast(Box::new(inner), kind))
            }
            "current_user" | "session_user" | "current_role" | "user" | "current_catalog"
            | "current_timestamp"
                if !matches!(self.peek_at(1), Some(Token::Sign("(" | "."))) =>
            {
                self.next += 1;
                Ok(Expression::Call(Name { schema: None, name: word.to_owned() }, Vec::new()))
            }
            word if RESERVED.contains(&word) => Err(self.unexpected()),
            _ => self.reference(),
        }
    }

    fn case(&mut self) -> Parse<Expression> {
        self.next += 1;
        let mut branches = Vec::new();
        while self.word("when") {
            let test = self.expression()?;
            self.need_word("then")?;
            branches.push((test, self.expression()?));
        }
        let other = match self.word("else") {
            true => Some(Box::new(self.expression()?)),
            false => None,
        };
        self.need_word("end")?;
        Ok(Expression::Case(branches, other))
    }

    /// A column or a call.
    fn reference(&mut self) -> Parse<Expression> {
        let first = self.identifier()?;
        let mut name = Name { schema: None, name: first };
        if self.sign(".") {
            name.schema = Some(name.name);
            if self.sign("*") {
                return Ok(Expression::Star);
            }
            name.name = self.identifier()?;
        }
        match self.sign("(") {
            true => Ok(Expression::Call(name, self.arguments()?)),
            false => Ok(Expression::Column(name.schema, name.name)),
        }
    }
}

fn operation(left: Expression, sign: &str, right: Expression) -> Expression {
    Expression::Operation(Box::new(left), sign.to_owned(), Box::new(right))
}
