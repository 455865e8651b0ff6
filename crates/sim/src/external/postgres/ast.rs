//! What the model's parser understands: expressions, queries, statements.
//!
//! Data only. A new statement shape is a variant here, a few lines in `parse`, and an arm in `run`.

/// A name, perhaps with its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) schema: Option<String>,
    pub(super) name: String,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Null,
    Bool(bool),
    Integer(i64),
    Decimal(String),
    Text(String),
    /// `column` or `table.column`.
    Column(Option<String>, String),
    /// `*` in a select list, or in `count(*)`.
    Star,
    Call(Name, Vec<Expression>),
    Query(Box<Query>),
    Exists(Box<Query>),
    Not(Box<Expression>),
    Negative(Box<Expression>),
    IsNull(Box<Expression>, bool),
    In(Box<Expression>, Vec<Expression>, bool),
    Operation(Box<Expression>, String, Box<Expression>),
    Cast(Box<Expression>, String),
    Case(Vec<(Expression, Expression)>, Option<Box<Expression>>),
    Array(Vec<Expression>),
}

/// Where rows come from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    Table(Name),
    Function(Name, Vec<Expression>),
    Query(Box<Query>),
}

/// A source with its alias and, for joins, its condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct From {
    pub(super) source: Source,
    pub(super) alias: Option<String>,
    /// Names given to its columns.
    pub(super) columns: Vec<String>,
    pub(super) on: Option<Expression>,
    pub(super) left: bool,
}

/// A query.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Query {
    pub(super) columns: Vec<(Expression, Option<String>)>,
    pub(super) from: Vec<From>,
    pub(super) filter: Option<Expression>,
    pub(super) order: Vec<(Expression, bool)>,
    pub(super) limit: Option<usize>,
    /// `VALUES` instead of a select list.
    pub(super) values: Vec<Vec<Expression>>,
}

/// Options of `CREATE ROLE` and `ALTER ROLE`, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RoleOption {
    Superuser(bool),
    CreateDatabase(bool),
    CreateRole(bool),
    Login(bool),
    Replication(bool),
    Inherit(bool),
    BypassRls(bool),
    ConnectionLimit(i64),
    Password(Option<String>),
    ValidUntil(String),
    MemberOf(Vec<String>),
}

/// What an `ALTER DATABASE` does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DatabaseChange {
    Owner(String),
    RefreshCollation,
    Rename(String),
    Set(String, Option<String>),
    AllowConnections(bool),
    ConnectionLimit(i64),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement {
    Query(Query),
    Show(String),
    Set {
        local: bool,
        name: String,
        value: Option<String>,
    },
    Reset(Option<String>),
    Begin {
        read_only: Option<bool>,
    },
    Commit,
    Rollback,
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    CreateRole {
        name: String,
        login: bool,
        options: Vec<RoleOption>,
    },
    AlterRole {
        name: String,
        options: Vec<RoleOption>,
    },
    AlterRoleSet {
        name: String,
        setting: String,
        value: Option<String>,
    },
    DropRole {
        names: Vec<String>,
        if_exists: bool,
    },
    CreateDatabase {
        name: String,
        owner: Option<String>,
        template: Option<String>,
    },
    AlterDatabase {
        name: String,
        change: DatabaseChange,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
    },
    Grant {
        grant: bool,
        privileges: Vec<String>,
        on: Option<(String, Vec<Name>)>,
        to: Vec<String>,
    },
    Comment {
        kind: String,
        name: Name,
        text: Option<String>,
    },
    CreateSchema {
        name: String,
        if_not_exists: bool,
        owner: Option<String>,
    },
    CreateExtension {
        name: String,
        if_not_exists: bool,
    },
    CreateTable(CreateTable),
    DropTable {
        names: Vec<Name>,
        if_exists: bool,
    },
    Truncate(Vec<Name>),
    Insert {
        table: Name,
        columns: Vec<String>,
        rows: Query,
        returning: bool,
    },
    Update {
        table: Name,
        set: Vec<(String, Expression)>,
        filter: Option<Expression>,
    },
    Delete {
        table: Name,
        filter: Option<Expression>,
    },
    AlterSystem {
        name: String,
        value: Option<String>,
    },
    Lock(Vec<Name>),
    /// Statements without an effect that the model could show: only their tag.
    Quiet(&'static str),
}

/// `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CreateTable {
    pub(super) name: Name,
    pub(super) temporary: bool,
    pub(super) if_not_exists: bool,
    pub(super) columns: Vec<TableColumn>,
    pub(super) drop_on_commit: bool,
    pub(super) rows: Option<Query>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) unique: bool,
    pub(super) required: bool,
    pub(super) serial: bool,
}
