//! `CREATE …`.
//!
//! Must not evaluate anything.

use super::{Parse, Parser};
use crate::external::postgres::ast::{CreateTable, RoleOption, Statement, TableColumn};
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::token::Token;

impl Parser<'_> {
    pub(super) fn create(&mut self) -> Parse<Statement> {
        self.next += 1;
        if self.word("role") || self.word("group") {
            return self.create_role(false);
        }
        if self.word("user") {
            return self.create_role(true);
        }
        if self.word("database") {
            return self.create_database();
        }
        if self.word("schema") {
            let if_not_exists = self.if_not_exists();
            let name = self.identifier()?;
            let owner = match self.word("authorization") {
                true => Some(self.identifier()?),
                false => None,
            };
            return Ok(Statement::CreateSchema { name, if_not_exists, owner });
        }
        if self.word("extension") {
            let if_not_exists = self.if_not_exists();
            let name = self.identifier()?;
            self.quiet("")?;
            return Ok(Statement::CreateExtension { name, if_not_exists });
        }
        if self.word("index") || self.words(&["unique", "index"]) {
            return self.quiet("CREATE INDEX");
        }
        let temporary = self.word("temporary") || self.word("temp");
        let _ = self.word("unlogged");
        self.need_word("table")?;
        self.create_table(temporary)
    }

    pub(super) fn create_role(&mut self, login: bool) -> Parse<Statement> {
        let name = self.identifier()?;
        let _ = self.word("with");
        Ok(Statement::CreateRole { name, login, options: self.role_options()? })
    }

    pub(super) fn role_options(&mut self) -> Parse<Vec<RoleOption>> {
        let mut options = Vec::new();
        while let Some(Token::Word(word)) = self.peek().cloned() {
            self.next += 1;
            let option = match word.as_str() {
                "superuser" => RoleOption::Superuser(true),
                "nosuperuser" => RoleOption::Superuser(false),
                "createdb" => RoleOption::CreateDatabase(true),
                "nocreatedb" => RoleOption::CreateDatabase(false),
                "createrole" => RoleOption::CreateRole(true),
                "nocreaterole" => RoleOption::CreateRole(false),
                "login" => RoleOption::Login(true),
                "nologin" => RoleOption::Login(false),
                "replication" => RoleOption::Replication(true),
                "noreplication" => RoleOption::Replication(false),
                "inherit" => RoleOption::Inherit(true),
                "noinherit" => RoleOption::Inherit(false),
                "bypassrls" => RoleOption::BypassRls(true),
                "nobypassrls" => RoleOption::BypassRls(false),
                "connection" => {
                    self.need_word("limit")?;
                    RoleOption::ConnectionLimit(self.number()?)
                }
                "encrypted" => continue,
                "password" => RoleOption::Password(match self.word("null") {
                    true => None,
                    false => Some(self.text()?),
                }),
                "valid" => {
                    self.need_word("until")?;
                    RoleOption::ValidUntil(self.text()?)
                }
                "in" => {
                    let _ = self.word("role") || self.word("group");
                    RoleOption::MemberOf(self.list(Self::identifier)?)
                }
                other => {
                    let at = self.tokens[self.next - 1].at;
                    let message = format!("unrecognized role option \"{other}\"");
                    return Err(Refusal::new("42601", &message).at(self.sql, at));
                }
            };
            options.push(option);
        }
        Ok(options)
    }

    pub(super) fn create_database(&mut self) -> Parse<Statement> {
        let name = self.identifier()?;
        let _ = self.word("with");
        let (mut owner, mut template) = (None, None);
        while let Some(Token::Word(word)) = self.peek().cloned() {
            self.next += 1;
            let _ = self.sign("=");
            match word.as_str() {
                "owner" => owner = Some(self.identifier()?),
                "template" => template = Some(self.identifier()?),
                "encoding" | "locale" | "lc_collate" | "lc_ctype" | "tablespace"
                | "locale_provider" | "strategy" | "icu_locale" => {
                    self.next += 1;
                }
                "connection" => {
                    self.need_word("limit")?;
                    let _ = self.sign("=");
                    self.number()?;
                }
                _ => {
                    self.next -= 1;
                    return Err(self.unexpected());
                }
            }
        }
        Ok(Statement::CreateDatabase { name, owner, template })
    }

    pub(super) fn create_table(&mut self, temporary: bool) -> Parse<Statement> {
        let if_not_exists = self.if_not_exists();
        let name = self.name()?;
        let mut columns = Vec::new();
        if self.sign("(") && !self.sign(")") {
            for column in self.list(Self::table_column)? {
                columns.extend(column);
            }
            self.need_sign(")")?;
        }
        let mut drop_on_commit = false;
        if self.words(&["on", "commit"]) {
            drop_on_commit = self.word("drop");
            let _ = drop_on_commit
                || self.words(&["preserve", "rows"])
                || self.words(&["delete", "rows"]);
        }
        let rows = match self.word("as") {
            true => Some(self.query()?),
            false => None,
        };
        Ok(Statement::CreateTable(CreateTable {
            name,
            temporary,
            if_not_exists,
            columns,
            drop_on_commit,
            rows,
        }))
    }

    /// A column; none for a table constraint.
    pub(super) fn table_column(&mut self) -> Parse<Option<TableColumn>> {
        let constraint = ["primary", "unique", "check", "foreign", "constraint"];
        if constraint.iter().any(|word| self.is_word(word)) {
            self.skip_constraint();
            return Ok(None);
        }
        let name = self.identifier()?;
        let kind = self.kind()?;
        let from = self.next;
        self.skip_constraint();
        let word = |token: &Token, wanted: &str| matches!(token, Token::Word(w) if w == wanted);
        let said = |wanted: &str| {
            self.tokens[from..self.next].iter().any(|placed| word(&placed.token, wanted))
        };
        let serial = kind.ends_with("serial") || said("identity");
        let unique = said("primary") || said("unique");
        let kind = match kind.as_str() {
            "serial" => "int4".to_owned(),
            "bigserial" => "int8".to_owned(),
            _ => kind,
        };
        let required = said("primary") || (said("not") && said("null"));
        Ok(Some(TableColumn { name, kind, unique, required, serial }))
    }

    /// Skips to the comma or bracket that ends a column.
    pub(super) fn skip_constraint(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.peek() {
            match token {
                Token::Sign("(") => depth += 1,
                Token::Sign(")") if depth == 0 => return,
                Token::Sign(")") => depth -= 1,
                Token::Sign(",") if depth == 0 => return,
                _ => {}
            }
            self.next += 1;
        }
    }
}
