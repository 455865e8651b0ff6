//! Statements other than queries.
//!
//! Must not evaluate anything.

use super::{Parse, Parser};
use crate::external::postgres::ast::{DatabaseChange, Statement};
use crate::external::postgres::token::Token;

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Parse<Statement> {
        let Some(Token::Word(word)) = self.peek().cloned() else { return Err(self.unexpected()) };
        match word.as_str() {
            "select" | "values" => self.query().map(Statement::Query),
            "show" => {
                self.next += 1;
                self.setting_name().map(Statement::Show)
            }
            "set" => self.set(),
            "reset" => {
                self.next += 1;
                let all = self.word("all");
                Ok(Statement::Reset(if all { None } else { Some(self.setting_name()?) }))
            }
            "begin" | "start" => self.begin(),
            "commit" | "end" => self.finish(Statement::Commit),
            "abort" => self.finish(Statement::Rollback),
            "rollback" => self.rollback(),
            "savepoint" => {
                self.next += 1;
                self.identifier().map(Statement::Savepoint)
            }
            "release" => {
                self.next += 1;
                let _ = self.word("savepoint");
                self.identifier().map(Statement::Release)
            }
            "create" => self.create(),
            "alter" => self.alter(),
            "drop" => self.drop(),
            "grant" | "revoke" => self.grant(),
            "comment" => self.comment(),
            "insert" => self.insert(),
            "update" => self.update(),
            "delete" => self.delete(),
            "truncate" => {
                self.next += 1;
                let _ = self.word("table");
                self.list(Self::name).map(Statement::Truncate)
            }
            "lock" => self.lock(),
            "checkpoint" => self.quiet("CHECKPOINT"),
            "vacuum" => self.quiet("VACUUM"),
            "analyze" => self.quiet("ANALYZE"),
            "reindex" => self.quiet("REINDEX"),
            "discard" => self.quiet("DISCARD ALL"),
            _ => Err(self.unexpected()),
        }
    }

    /// Skips to the end of the statement.
    pub(super) fn quiet(&mut self, tag: &'static str) -> Parse<Statement> {
        while !self.done() && !matches!(self.peek(), Some(Token::Sign(";"))) {
            self.next += 1;
        }
        Ok(Statement::Quiet(tag))
    }

    fn set(&mut self) -> Parse<Statement> {
        self.next += 1;
        let local = self.word("local");
        let _ = !local && self.word("session");
        if self.words(&["time", "zone"]) {
            let value = self.value()?;
            return Ok(Statement::Set { local, name: "timezone".into(), value });
        }
        if self.is_word("transaction") || self.is_word("characteristics") {
            self.next += 1;
            return match self.modes()? {
                Some(read_only) => Ok(Statement::Set {
                    local: true,
                    name: "transaction_read_only".into(),
                    value: Some(if read_only { "on" } else { "off" }.into()),
                }),
                None => Ok(Statement::Quiet("SET")),
            };
        }
        let name = self.setting_name()?;
        if !self.sign("=") {
            self.need_word("to")?;
        }
        Ok(Statement::Set { local, name, value: self.value()? })
    }

    /// A setting's value; none is `DEFAULT`.
    fn value(&mut self) -> Parse<Option<String>> {
        let mut parts = Vec::new();
        loop {
            match self.peek().cloned() {
                Some(Token::Text(text) | Token::Quoted(text)) => {
                    self.next += 1;
                    parts.push(text);
                }
                Some(Token::Number(_) | Token::Sign("-")) => {
                    let decimal = match self.peek() {
                        Some(Token::Number(digits)) if digits.contains('.') => Some(digits.clone()),
                        _ => None,
                    };
                    match decimal {
                        Some(digits) => {
                            self.next += 1;
                            parts.push(digits);
                        }
                        None => parts.push(self.number()?.to_string()),
                    }
                }
                Some(Token::Word(word)) => {
                    self.next += 1;
                    if word == "default" {
                        return Ok(None);
                    }
                    parts.push(word);
                }
                _ => return Err(self.unexpected()),
            }
            if !self.sign(",") {
                return Ok(Some(parts.join(", ")));
            }
        }
    }

    /// Transaction modes; answers whether read only was said.
    fn modes(&mut self) -> Parse<Option<bool>> {
        let mut read_only = None;
        loop {
            if self.words(&["read", "only"]) {
                read_only = Some(true);
            } else if self.words(&["read", "write"]) {
                read_only = Some(false);
            } else if self.words(&["isolation", "level"]) {
                let known = self.word("serializable")
                    || self.words(&["repeatable", "read"])
                    || self.words(&["read", "committed"])
                    || self.words(&["read", "uncommitted"]);
                if !known {
                    return Err(self.unexpected());
                }
            } else if !self.word("deferrable") && !self.words(&["not", "deferrable"]) {
                return Ok(read_only);
            }
            let _ = self.sign(",");
        }
    }

    fn begin(&mut self) -> Parse<Statement> {
        let start = self.is_word("start");
        self.next += 1;
        match start {
            true => self.need_word("transaction")?,
            false => {
                let _ = self.word("transaction") || self.word("work");
            }
        }
        Ok(Statement::Begin { read_only: self.modes()? })
    }

    fn finish(&mut self, statement: Statement) -> Parse<Statement> {
        self.next += 1;
        let _ = self.word("transaction") || self.word("work");
        Ok(statement)
    }

    fn rollback(&mut self) -> Parse<Statement> {
        self.next += 1;
        let _ = self.word("transaction") || self.word("work");
        if self.word("to") {
            let _ = self.word("savepoint");
            return self.identifier().map(Statement::RollbackTo);
        }
        Ok(Statement::Rollback)
    }

    pub(super) fn if_not_exists(&mut self) -> bool {
        self.words(&["if", "not", "exists"])
    }

    fn alter(&mut self) -> Parse<Statement> {
        self.next += 1;
        if self.word("role") || self.word("user") || self.word("group") {
            let name = self.identifier()?;
            if self.word("set") {
                let (setting, value) = self.assignment()?;
                return Ok(Statement::AlterRoleSet { name, setting, value });
            }
            if self.word("reset") {
                let setting = self.setting_name()?;
                return Ok(Statement::AlterRoleSet { name, setting, value: None });
            }
            let _ = self.word("with");
            return Ok(Statement::AlterRole { name, options: self.role_options()? });
        }
        if self.word("database") {
            let name = self.identifier()?;
            return Ok(Statement::AlterDatabase { name, change: self.database_change()? });
        }
        if self.word("system") {
            if self.word("reset") {
                return Ok(Statement::AlterSystem { name: self.setting_name()?, value: None });
            }
            self.need_word("set")?;
            let (name, value) = self.assignment()?;
            return Ok(Statement::AlterSystem { name, value });
        }
        if self.word("schema") {
            return self.quiet("ALTER SCHEMA");
        }
        if self.words(&["default", "privileges"]) {
            return self.quiet("ALTER DEFAULT PRIVILEGES");
        }
        self.need_word("table")?;
        self.quiet("ALTER TABLE")
    }

    fn assignment(&mut self) -> Parse<(String, Option<String>)> {
        let name = self.setting_name()?;
        if !self.sign("=") {
            self.need_word("to")?;
        }
        Ok((name, self.value()?))
    }

    fn database_change(&mut self) -> Parse<DatabaseChange> {
        if self.words(&["owner", "to"]) {
            return self.identifier().map(DatabaseChange::Owner);
        }
        if self.words(&["rename", "to"]) {
            return self.identifier().map(DatabaseChange::Rename);
        }
        if self.words(&["refresh", "collation", "version"]) {
            return Ok(DatabaseChange::RefreshCollation);
        }
        if self.word("set") {
            let (name, value) = self.assignment()?;
            return Ok(DatabaseChange::Set(name, value));
        }
        if self.word("reset") {
            return Ok(DatabaseChange::Set(self.setting_name()?, None));
        }
        let _ = self.word("with");
        if self.word("allow_connections") {
            let _ = self.sign("=");
            let on = self.word("true") || self.word("on");
            let _ = !on && (self.word("false") || self.word("off"));
            return Ok(DatabaseChange::AllowConnections(on));
        }
        if self.words(&["connection", "limit"]) {
            let _ = self.sign("=");
            return self.number().map(DatabaseChange::ConnectionLimit);
        }
        Err(self.unexpected())
    }

    fn drop(&mut self) -> Parse<Statement> {
        self.next += 1;
        let role = self.word("role") || self.word("user") || self.word("group");
        let database = !role && self.word("database");
        if !role && !database {
            if self.word("schema") {
                return self.quiet("DROP SCHEMA");
            }
            if self.word("extension") {
                return self.quiet("DROP EXTENSION");
            }
            self.need_word("table")?;
        }
        let if_exists = self.words(&["if", "exists"]);
        if role {
            return Ok(Statement::DropRole { names: self.list(Self::identifier)?, if_exists });
        }
        if database {
            let name = self.identifier()?;
            if self.word("with") {
                self.quiet("")?;
            }
            return Ok(Statement::DropDatabase { name, if_exists });
        }
        let names = self.list(Self::name)?;
        let _ = self.word("cascade") || self.word("restrict");
        Ok(Statement::DropTable { names, if_exists })
    }

    fn grant(&mut self) -> Parse<Statement> {
        let grant = self.is_word("grant");
        self.next += 1;
        let privileges = self.list(|parser| {
            let word = parser.identifier()?;
            let _ = word == "all" && parser.word("privileges");
            Ok(word)
        })?;
        let on = match self.word("on") {
            true => {
                let kinds = ["database", "schema", "table", "sequence", "tablespace", "function"];
                let kind = kinds.into_iter().find(|kind| self.word(kind)).unwrap_or("table");
                if self.word("all") {
                    // All tables, sequences or functions of a schema.
                    self.next += 1;
                    self.need_word("in")?;
                    self.need_word("schema")?;
                    self.list(Self::identifier)?;
                    Some(("all".to_owned(), Vec::new()))
                } else {
                    Some((kind.to_owned(), self.list(Self::name)?))
                }
            }
            false => None,
        };
        self.need_word(if grant { "to" } else { "from" })?;
        let to = self.list(|parser| {
            let _ = parser.word("group");
            parser.identifier()
        })?;
        let _ = self.words(&["with", "grant", "option"])
            || self.words(&["with", "admin", "option"])
            || self.word("cascade")
            || self.word("restrict");
        Ok(Statement::Grant { grant, privileges, on, to })
    }

    fn comment(&mut self) -> Parse<Statement> {
        self.next += 1;
        self.need_word("on")?;
        let kind = self.identifier()?;
        let name = self.name()?;
        self.need_word("is")?;
        let text = if self.word("null") { None } else { Some(self.text()?) };
        Ok(Statement::Comment { kind, name, text })
    }

    fn insert(&mut self) -> Parse<Statement> {
        self.next += 1;
        self.need_word("into")?;
        let table = self.name()?;
        let mut columns = Vec::new();
        if self.sign("(") {
            columns = self.list(Self::identifier)?;
            self.need_sign(")")?;
        }
        let rows = self.query()?;
        let returning = self.word("returning");
        if returning {
            self.quiet("")?;
        }
        Ok(Statement::Insert { table, columns, rows, returning })
    }

    fn update(&mut self) -> Parse<Statement> {
        self.next += 1;
        let table = self.name()?;
        self.need_word("set")?;
        let set = self.list(|parser| {
            let column = parser.identifier()?;
            parser.need_sign("=")?;
            Ok((column, parser.expression()?))
        })?;
        let filter = if self.word("where") { Some(self.expression()?) } else { None };
        Ok(Statement::Update { table, set, filter })
    }

    fn delete(&mut self) -> Parse<Statement> {
        self.next += 1;
        self.need_word("from")?;
        let table = self.name()?;
        let filter = if self.word("where") { Some(self.expression()?) } else { None };
        Ok(Statement::Delete { table, filter })
    }

    fn lock(&mut self) -> Parse<Statement> {
        self.next += 1;
        let _ = self.word("table");
        let names = self.list(Self::name)?;
        self.quiet("")?;
        Ok(Statement::Lock(names))
    }
}
