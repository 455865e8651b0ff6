//! Roles: made, changed, removed.
//!
//! Must not keep a password: it is hashed here or refused.

use super::{Done, Ran, check_setting, touch_role};
use crate::external::postgres::ast::RoleOption;
use crate::external::postgres::data::{Data, Role};
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::scram::Verifier;
use crate::external::postgres::session::State;

pub(super) fn create(
    state: &mut State,
    data: &mut Data,
    name: &str,
    login: bool,
    options: &[RoleOption],
) -> Ran {
    let me = data.roles.get(&state.user);
    let may = me.is_some_and(|role| role.superuser || role.create_role);
    if !may {
        return Err(Refusal::new("42501", "permission denied to create role"));
    }
    if name.starts_with("pg_") {
        let message = format!("role name \"{name}\" is reserved");
        let detail = "Role names starting with \"pg_\" are reserved.";
        return Err(Refusal::new("42939", &message).detail(detail));
    }
    if matches!(name, "public" | "none") {
        return Err(Refusal::new("42939", &format!("role name \"{name}\" is reserved")));
    }
    if data.roles.contains_key(name) {
        return Err(Refusal::new("42710", &format!("role \"{name}\" already exists")));
    }
    if options.contains(&RoleOption::Superuser(true)) && !data.is_superuser(&state.user) {
        return Err(Refusal::new("42501", "must be superuser to create superusers"));
    }
    let replication = options.contains(&RoleOption::Replication(true));
    if replication && !data.is_superuser(&state.user) {
        return Err(Refusal::new("42501", "must be superuser to create replication users"));
    }
    touch_role(state, data, name);
    let mut role = Role { login, ..Role::new(data.oid()) };
    apply(state, data, &mut role, options)?;
    data.roles.insert(name.to_owned(), role);
    Ok(Done::tag("CREATE ROLE"))
}

pub(super) fn alter(state: &mut State, data: &mut Data, name: &str, options: &[RoleOption]) -> Ran {
    let Some(mut role) = data.roles.get(name).cloned() else {
        return Err(absent(name));
    };
    let me = data.roles.get(&state.user);
    let superuser = me.is_some_and(|role| role.superuser);
    let creator = me.is_some_and(|role| role.create_role);
    let own_password = name == state.user
        && options.iter().all(|option| matches!(option, RoleOption::Password(_)));
    if role.superuser && !superuser && !own_password {
        let message = "must be superuser to alter superuser roles or change superuser attribute";
        return Err(Refusal::new("42501", message));
    }
    let replication = role.replication
        || options.iter().any(|option| matches!(option, RoleOption::Replication(_)));
    if replication && !superuser && !own_password {
        let message =
            "must be superuser to alter replication roles or change replication attribute";
        return Err(Refusal::new("42501", message));
    }
    if !superuser && !creator && !own_password {
        return Err(Refusal::new("42501", "permission denied"));
    }
    touch_role(state, data, name);
    apply(state, data, &mut role, options)?;
    data.roles.insert(name.to_owned(), role);
    Ok(Done::tag("ALTER ROLE"))
}

fn apply(
    state: &State,
    data: &Data,
    role: &mut Role,
    options: &[RoleOption],
) -> Result<(), Refusal> {
    for option in options {
        match option {
            RoleOption::Superuser(on) => role.superuser = *on,
            RoleOption::CreateDatabase(on) => role.create_database = *on,
            RoleOption::CreateRole(on) => role.create_role = *on,
            RoleOption::Login(on) => role.login = *on,
            RoleOption::Replication(on) => role.replication = *on,
            RoleOption::Inherit(on) => role.inherit = *on,
            RoleOption::BypassRls(on) => role.bypass_rls = *on,
            RoleOption::ConnectionLimit(limit) => role.connection_limit = *limit,
            RoleOption::ValidUntil(until) => {
                role.valid_until = Some(until.clone()).filter(|until| until != "infinity");
            }
            RoleOption::Password(password) => {
                role.verifier = password.as_deref().and_then(|text| hashed(state, text));
            }
            RoleOption::MemberOf(groups) => {
                for group in groups {
                    if !data.roles.contains_key(group) {
                        return Err(absent(group));
                    }
                    role.member_of.push(group.clone());
                }
            }
        }
    }
    Ok(())
}

/// A verifier is kept as it is, a password is hashed, an empty one is none.
fn hashed(state: &State, text: &str) -> Option<Verifier> {
    if let Some(verifier) = Verifier::parse(text) {
        return Some(verifier);
    }
    let mut salt = [0; 16];
    salt[..8].copy_from_slice(&state.server.random().to_be_bytes());
    salt[8..].copy_from_slice(&state.server.random().to_be_bytes());
    (!text.is_empty()).then(|| Verifier::of(text, salt))
}

pub(super) fn set(
    state: &mut State,
    data: &mut Data,
    name: &str,
    setting: &str,
    value: Option<&str>,
) -> Ran {
    if !data.roles.contains_key(name) {
        return Err(absent(name));
    }
    if !data.is_superuser(&state.user) && name != state.user {
        return Err(Refusal::new("42501", "permission denied"));
    }
    let kept = value.map(|value| check_setting(state, setting, value)).transpose()?;
    touch_role(state, data, name);
    if let Some(role) = data.roles.get_mut(name) {
        match kept {
            Some((setting, value)) => drop(role.settings.insert(setting, value)),
            None => drop(role.settings.remove(setting)),
        }
    }
    Ok(Done::tag("ALTER ROLE"))
}

pub(super) fn remove(state: &mut State, data: &mut Data, names: &[String], if_exists: bool) -> Ran {
    for name in names {
        let Some(role) = data.roles.get(name) else {
            if if_exists {
                continue;
            }
            return Err(absent(name));
        };
        let me = data.roles.get(&state.user);
        if !me.is_some_and(|me| me.superuser || (me.create_role && !role.superuser)) {
            return Err(Refusal::new("42501", "permission denied to drop role"));
        }
        if *name == state.user {
            return Err(Refusal::new("55006", "current user cannot be dropped"));
        }
        let owned = dependents(state, data, name);
        if !owned.is_empty() {
            let message =
                format!("role \"{name}\" cannot be dropped because some objects depend on it");
            return Err(Refusal::new("2BP01", &message).detail(&owned.join("\n")));
        }
        touch_role(state, data, name);
        data.roles.remove(name);
    }
    Ok(Done::tag("DROP ROLE"))
}

/// What a role owns: here by name, in other databases by number.
fn dependents(state: &State, data: &Data, role: &str) -> Vec<String> {
    let owned = data.databases.iter().filter(|(_, one)| one.owner == role);
    let mut found: Vec<String> =
        owned.map(|(name, _)| format!("owner of database {name}")).collect();
    for (name, database) in &data.databases {
        let schemas = database.schemas.iter().filter(|(_, owner)| *owner == role);
        let tables = database.tables.iter().filter(|(_, table)| table.owner == role);
        if *name == state.database {
            found.extend(schemas.map(|(schema, _)| format!("owner of schema {schema}")));
            found.extend(tables.map(|((_, table), _)| format!("owner of table {table}")));
            continue;
        }
        match schemas.count() + tables.count() {
            0 => {}
            1 => found.push(format!("1 object in database {name}")),
            several => found.push(format!("{several} objects in database {name}")),
        }
    }
    found
}

pub(super) fn absent(name: &str) -> Refusal {
    Refusal::new("42704", &format!("role \"{name}\" does not exist"))
}
