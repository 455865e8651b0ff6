//! Databases, schemas, extensions and comments.
//!
//! Must not touch tables' rows.

use super::roles::absent;
use super::{Done, Ran, check_setting, touch_database};
use crate::external::postgres::ast::{DatabaseChange, Name};
use crate::external::postgres::catalog::EXTENSIONS;
use crate::external::postgres::data::{Data, Database};
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::session::State;

fn missing(name: &str) -> Refusal {
    Refusal::new("3D000", &format!("database \"{name}\" does not exist"))
}

fn owns(state: &State, data: &Data, name: &str) -> Result<(), Refusal> {
    let database = data.databases.get(name).ok_or_else(|| missing(name))?;
    if data.is_superuser(&state.user) || data.is_member(&state.user, &database.owner) {
        return Ok(());
    }
    Err(Refusal::new("42501", &format!("must be owner of database {name}")))
}

/// Whether the session's user may give something to `owner`.
fn may_give(state: &State, data: &Data, owner: &str) -> Result<(), Refusal> {
    if !data.roles.contains_key(owner) {
        return Err(absent(owner));
    }
    if data.is_superuser(&state.user) || data.is_member(&state.user, owner) {
        return Ok(());
    }
    let message = match state.server.version.major {
        ..=15 => format!("must be member of role \"{owner}\""),
        _ => format!("must be able to SET ROLE \"{owner}\""),
    };
    Err(Refusal::new("42501", &message))
}

pub(super) fn create(
    state: &mut State,
    data: &mut Data,
    name: &str,
    owner: Option<&str>,
    template: Option<&str>,
) -> Ran {
    let me = data.roles.get(&state.user);
    if !me.is_some_and(|me| me.superuser || me.create_database) {
        return Err(Refusal::new("42501", "permission denied to create database"));
    }
    let owner = owner.unwrap_or(&state.user).to_owned();
    may_give(state, data, &owner)?;
    let template = template.unwrap_or("template1");
    let Some(source) = data.databases.get(template).cloned() else {
        let message = format!("template database \"{template}\" does not exist");
        return Err(Refusal::new("3D000", &message));
    };
    if data.databases.contains_key(name) {
        return Err(Refusal::new("42P04", &format!("database \"{name}\" already exists")));
    }
    touch_database(state, data, name);
    let fresh = Database::new(data.oid(), &owner, source.collation_version.clone());
    let made = Database {
        schemas: source.schemas,
        extensions: source.extensions,
        tables: source.tables,
        ..fresh
    };
    data.databases.insert(name.to_owned(), made);
    Ok(Done::tag("CREATE DATABASE"))
}

pub(super) fn alter(
    state: &mut State,
    data: &mut Data,
    name: &str,
    change: &DatabaseChange,
) -> Ran {
    owns(state, data, name)?;
    if let DatabaseChange::Owner(owner) = change {
        may_give(state, data, owner)?;
    }
    let kept = match change {
        DatabaseChange::Set(setting, Some(value)) => Some(check_setting(state, setting, value)?),
        _ => None,
    };
    if let DatabaseChange::Rename(new) = change {
        return rename(state, data, name, new);
    }
    touch_database(state, data, name);
    let actual = state.server.collation_version();
    let Some(database) = data.databases.get_mut(name) else { return Err(missing(name)) };
    match change {
        DatabaseChange::Owner(owner) => {
            let old = std::mem::replace(&mut database.owner, owner.clone());
            if let Some(privileges) = &mut database.privileges
                && let Some(held) = privileges.remove(&old)
            {
                privileges.insert(owner.clone(), held);
            }
        }
        DatabaseChange::RefreshCollation => database.collation_version = Some(actual),
        DatabaseChange::Set(setting, _) => match kept {
            Some((setting, value)) => drop(database.settings.insert(setting, value)),
            None => drop(database.settings.remove(setting)),
        },
        DatabaseChange::AllowConnections(on) => database.allow_connections = *on,
        DatabaseChange::ConnectionLimit(limit) => database.connection_limit = *limit,
        DatabaseChange::Rename(_) => {}
    }
    Ok(Done::tag("ALTER DATABASE"))
}

fn rename(state: &mut State, data: &mut Data, name: &str, new: &str) -> Ran {
    if data.databases.contains_key(new) {
        return Err(Refusal::new("42P04", &format!("database \"{new}\" already exists")));
    }
    if name == state.database {
        return Err(Refusal::new("0A000", "current database cannot be renamed"));
    }
    touch_database(state, data, name);
    touch_database(state, data, new);
    if let Some(database) = data.databases.remove(name) {
        data.databases.insert(new.to_owned(), database);
    }
    Ok(Done::tag("ALTER DATABASE"))
}

pub(super) fn remove(state: &mut State, data: &mut Data, name: &str, if_exists: bool) -> Ran {
    if !data.databases.contains_key(name) {
        return if if_exists { Ok(Done::tag("DROP DATABASE")) } else { Err(missing(name)) };
    }
    owns(state, data, name)?;
    if name == state.database {
        return Err(Refusal::new("55006", "cannot drop the currently open database"));
    }
    let others = state.server.sessions().iter().filter(|one| one.database == name).count();
    if others > 0 {
        let message = format!("database \"{name}\" is being accessed by other users");
        let detail = match others {
            1 => "There is 1 other session using the database.".to_owned(),
            others => format!("There are {others} other sessions using the database."),
        };
        return Err(Refusal::new("55006", &message).detail(&detail));
    }
    touch_database(state, data, name);
    data.databases.remove(name);
    Ok(Done::tag("DROP DATABASE"))
}

pub(super) fn comment(
    state: &mut State,
    data: &mut Data,
    kind: &str,
    name: &Name,
    text: Option<&str>,
) -> Ran {
    if kind == "database" {
        owns(state, data, &name.name)?;
        touch_database(state, data, &name.name);
        if let Some(database) = data.databases.get_mut(&name.name) {
            database.comment = text.filter(|text| !text.is_empty()).map(str::to_owned);
        }
    }
    Ok(Done::tag("COMMENT"))
}

pub(super) fn create_schema(
    state: &mut State,
    data: &mut Data,
    name: &str,
    if_not_exists: bool,
    owner: Option<&str>,
) -> Ran {
    let database = state.database.clone();
    let found = data.databases.get(&database).ok_or_else(|| missing(&database))?;
    let may = data.is_member(&state.user, &found.owner) || data.may(&state.user, found, 'C');
    if !may {
        let message = format!("permission denied for database {database}");
        return Err(Refusal::new("42501", &message));
    }
    if found.schemas.contains_key(name) {
        if if_not_exists {
            return Ok(Done::tag("CREATE SCHEMA"));
        }
        return Err(Refusal::new("42P06", &format!("schema \"{name}\" already exists")));
    }
    touch_database(state, data, &database);
    let owner = owner.unwrap_or(&state.user).to_owned();
    if let Some(database) = data.databases.get_mut(&database) {
        database.schemas.insert(name.to_owned(), owner);
    }
    Ok(Done::tag("CREATE SCHEMA"))
}

pub(super) fn create_extension(
    state: &mut State,
    data: &mut Data,
    name: &str,
    if_not_exists: bool,
) -> Ran {
    let database = state.database.clone();
    let found = data.databases.get(&database).ok_or_else(|| missing(&database))?;
    if found.extensions.iter().any(|one| one == name) {
        if if_not_exists {
            return Ok(Done::tag("CREATE EXTENSION"));
        }
        return Err(Refusal::new("42710", &format!("extension \"{name}\" already exists")));
    }
    if !EXTENSIONS.contains(&name) {
        let message = format!("extension \"{name}\" is not available");
        let hint =
            "The extension must first be installed on the system where PostgreSQL is running.";
        let detail = format!(
            "Could not open extension control file \
             \"/usr/share/postgresql/{}/extension/{name}.control\": No such file or directory.",
            state.server.version.major
        );
        return Err(Refusal::new("0A000", &message).detail(&detail).hint(hint));
    }
    touch_database(state, data, &database);
    if let Some(database) = data.databases.get_mut(&database) {
        database.extensions.push(name.to_owned());
    }
    Ok(Done::tag("CREATE EXTENSION"))
}
