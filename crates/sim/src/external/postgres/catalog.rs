//! System catalogs as relations, and the way from a name to a table.
//!
//! Must not change anything.

mod replication;

use super::ast::Name;
use super::data::Table;
use super::evaluate::Scope;
use super::refusal::Refusal;
use super::settings;
use super::value::{Relation, Value};

/// The relation of a name: temporary tables, then system catalogs, then the search path.
pub(super) fn relation(scope: &Scope, name: &Name) -> Result<Relation, Refusal> {
    let temporary = matches!(name.schema.as_deref(), None | Some("pg_temp"));
    if let Some(table) = scope.state.temporary.get(&name.name).filter(|_| temporary) {
        return Ok(rows(&table.table));
    }
    if matches!(name.schema.as_deref(), None | Some("pg_catalog"))
        && let Some(found) = system(scope, &name.name)?
    {
        return Ok(found);
    }
    if name.schema.as_deref() == Some("information_schema") && name.name == "tables" {
        return Ok(tables(scope, &["table_schema", "table_name"]));
    }
    match find(scope, name) {
        Some((schema, table)) => {
            readable(scope, table, &name.name)?;
            let _ = schema;
            Ok(rows(table))
        }
        None => Err(absent(name)),
    }
}

/// The error of a name that no relation has.
pub(super) fn absent(name: &Name) -> Refusal {
    let full = match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    };
    Refusal::new("42P01", &format!("relation \"{full}\" does not exist"))
}

/// The user's table of a name, with its schema.
pub(super) fn find<'a>(scope: &Scope<'a>, name: &Name) -> Option<(String, &'a Table)> {
    let database = scope.data.databases.get(&scope.state.database)?;
    let path = match &name.schema {
        Some(schema) => vec![schema.clone()],
        None => scope.state.search_path(scope.data),
    };
    path.into_iter().find_map(|schema| {
        let table = database.tables.get(&(schema.clone(), name.name.clone()))?;
        Some((schema, table))
    })
}

fn readable(scope: &Scope, table: &Table, name: &str) -> Result<(), Refusal> {
    let user = &scope.state.user;
    let data = scope.data;
    let granted = table.grants.iter().any(|(to, privilege)| {
        let fits = matches!(privilege.as_str(), "select" | "all");
        fits && (to == "public" || data.is_member(user, to))
    });
    let all = data.is_member(user, "pg_read_all_data");
    if data.is_superuser(user) || data.is_member(user, &table.owner) || granted || all {
        return Ok(());
    }
    Err(Refusal::new("42501", &format!("permission denied for table {name}")))
}

fn rows(table: &Table) -> Relation {
    Relation {
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        rows: table.rows.clone(),
    }
}

fn tables(scope: &Scope, columns: &[&str]) -> Relation {
    let mut relation = Relation::new(columns);
    let database = scope.data.databases.get(&scope.state.database);
    for ((schema, name), table) in database.into_iter().flat_map(|database| &database.tables) {
        let mut row = vec![Value::text(schema), Value::text(name)];
        if columns.len() > 2 {
            row.push(Value::text(&table.owner));
        }
        relation.rows.push(row);
    }
    relation
}

fn system(scope: &Scope, name: &str) -> Result<Option<Relation>, Refusal> {
    Ok(Some(match name {
        "pg_roles" => roles(scope, false),
        "pg_authid" => {
            if !scope.data.is_superuser(&scope.state.user) {
                return Err(Refusal::new("42501", "permission denied for table pg_authid"));
            }
            roles(scope, true)
        }
        "pg_database" => databases(scope),
        "pg_settings" => all_settings(scope),
        "pg_tables" => tables(scope, &["schemaname", "tablename", "tableowner"]),
        "pg_stat_replication" => replication::senders(scope),
        "pg_stat_wal_receiver" => replication::receiver(scope),
        "pg_replication_slots" => replication::slots(scope),
        "pg_stat_activity" => activity(scope),
        "pg_namespace" => namespaces(scope),
        "pg_extension" => extensions(scope),
        "pg_available_extensions" => available(),
        "pg_auth_members" => members(scope),
        _ => return Ok(None),
    }))
}

fn roles(scope: &Scope, secrets: bool) -> Relation {
    let columns = [
        "rolname",
        "rolsuper",
        "rolinherit",
        "rolcreaterole",
        "rolcreatedb",
        "rolcanlogin",
        "rolreplication",
        "rolconnlimit",
        "rolpassword",
        "rolvaliduntil",
        "rolbypassrls",
        "oid",
    ];
    let mut relation = Relation::new(&columns);
    for (name, role) in &scope.data.roles {
        let password = match secrets {
            true => role.verifier.as_ref().map(super::scram::Verifier::text),
            false => Some("********".to_owned()),
        };
        relation.rows.push(vec![
            Value::text(name),
            Value::Bool(role.superuser),
            Value::Bool(role.inherit),
            Value::Bool(role.create_role),
            Value::Bool(role.create_database),
            Value::Bool(role.login),
            Value::Bool(role.replication),
            Value::Integer(role.connection_limit),
            Value::optional(password.as_deref()),
            Value::optional(role.valid_until.as_deref()),
            Value::Bool(role.bypass_rls),
            Value::Integer(role.oid),
        ]);
    }
    relation
}

fn databases(scope: &Scope) -> Relation {
    let mut columns = vec![
        "oid",
        "datname",
        "datdba",
        "encoding",
        "datistemplate",
        "datallowconn",
        "datconnlimit",
        "datcollate",
        "datctype",
        "datacl",
    ];
    let collation = scope.state.server.version.major >= 15;
    if collation {
        columns.push("datcollversion");
    }
    let mut relation = Relation::new(&columns);
    for (name, database) in &scope.data.databases {
        let owner = scope.data.roles.get(&database.owner).map_or(0, |role| role.oid);
        let privileges = database.privileges.as_ref().map(|held| {
            let items = held.iter().map(|(grantee, letters)| {
                let letters: String = letters.iter().collect();
                format!("{grantee}={letters}/{}", database.owner)
            });
            format!("{{{}}}", items.collect::<Vec<_>>().join(","))
        });
        let mut row = vec![
            Value::Integer(database.oid),
            Value::text(name),
            Value::Integer(owner),
            Value::Integer(6),
            Value::Bool(database.template),
            Value::Bool(database.allow_connections),
            Value::Integer(database.connection_limit),
            Value::text("en_US.utf8"),
            Value::text("en_US.utf8"),
            Value::optional(privileges.as_deref()),
        ];
        if collation {
            row.push(Value::optional(database.collation_version.as_deref()));
        }
        relation.rows.push(row);
    }
    relation
}

fn all_settings(scope: &Scope) -> Relation {
    let mut relation =
        Relation::new(&["name", "setting", "context", "boot_val", "pending_restart"]);
    for setting in settings::all(scope.state.server.version.major) {
        let kept = scope.state.kept(scope.data, setting.name).unwrap_or_default();
        relation.rows.push(vec![
            Value::text(setting.name),
            Value::Text(kept),
            Value::text(setting.context),
            Value::text(setting.boot),
            Value::Bool(scope.state.server.pending_restart(setting.name)),
        ]);
    }
    relation
}

fn activity(scope: &Scope) -> Relation {
    let mut relation =
        Relation::new(&["pid", "datname", "usename", "application_name", "client_addr", "state"]);
    for session in scope.state.server.sessions() {
        relation.rows.push(vec![
            Value::Integer(session.pid.into()),
            Value::text(&session.database),
            Value::text(&session.user),
            Value::text(&session.application),
            Value::text(&session.address),
            Value::text(if session.pid == scope.state.pid { "active" } else { "idle" }),
        ]);
    }
    relation
}

fn namespaces(scope: &Scope) -> Relation {
    let mut relation = Relation::new(&["nspname", "nspowner"]);
    let database = scope.data.databases.get(&scope.state.database);
    for (name, owner) in database.into_iter().flat_map(|database| &database.schemas) {
        let owner = scope.data.roles.get(owner).map_or(0, |role| role.oid);
        relation.rows.push(vec![Value::text(name), Value::Integer(owner)]);
    }
    relation
}

fn extensions(scope: &Scope) -> Relation {
    let mut relation = Relation::new(&["extname", "extversion"]);
    let database = scope.data.databases.get(&scope.state.database);
    for name in database.into_iter().flat_map(|database| &database.extensions) {
        relation.rows.push(vec![Value::text(name), Value::text("1.0")]);
    }
    relation
}

/// Extensions that the official image brings, by name.
pub(super) const EXTENSIONS: [&str; 12] = [
    "plpgsql",
    "pgcrypto",
    "pg_trgm",
    "uuid-ossp",
    "hstore",
    "citext",
    "btree_gin",
    "btree_gist",
    "pg_stat_statements",
    "postgres_fdw",
    "unaccent",
    "ltree",
];

fn available() -> Relation {
    let mut relation = Relation::new(&["name", "default_version", "installed_version"]);
    for name in EXTENSIONS {
        let installed = (name == "plpgsql").then_some("1.0");
        relation.rows.push(vec![Value::text(name), Value::text("1.0"), Value::optional(installed)]);
    }
    relation
}

fn members(scope: &Scope) -> Relation {
    let mut relation = Relation::new(&["roleid", "member"]);
    let oid = |name: &str| scope.data.roles.get(name).map_or(0, |role| role.oid);
    for (name, role) in &scope.data.roles {
        for group in &role.member_of {
            relation.rows.push(vec![Value::Integer(oid(group)), Value::Integer(oid(name))]);
        }
    }
    relation
}
