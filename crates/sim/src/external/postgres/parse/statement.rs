//! Statements other than queries.
//!
//! Must not evaluate anything.

use super::{Parse, Parser};
use crate::external::postgres::ast::{
    CreateTable, DatabaseChange, RoleOption, Statement, TableColumn,
};
use crate::external::postgres::refusal::Refusal;
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
    fn quiet(&mut self, tag: &'static str) -> Parse<Statement> {
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

    fn if_not_exists(&mut self) -> bool {
        self.words(&["if", "not", "exists"])
    }

    fn create(&mut self) -> Parse<Statement> {
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

    fn create_role(&mut self, login: bool) -> Parse<Statement> {
        let name = self.identifier()?;
        let _ = self.word("with");
        Ok(Statement::CreateRole { name, login, options: self.role_options()? })
    }

    fn role_options(&mut self) -> Parse<Vec<RoleOption>> {
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

    fn create_database(&mut self) -> Parse<Statement> {
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

    fn create_table(&mut self, temporary: bool) -> Parse<Statement> {
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
    fn table_column(&mut self) -> Parse<Option<TableColumn>> {
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
    fn skip_constraint(&mut self) {
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
