//! `GRANT` and `REVOKE`: membership, and privileges on databases and tables.
//!
//! Privileges on other objects are accepted without effect.

use super::roles::absent;
use super::{Done, Ran, touch_database, touch_role};
use crate::external::postgres::ast::Name;
use crate::external::postgres::data::Data;
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::session::State;

pub(super) fn grant(
    state: &mut State,
    data: &mut Data,
    grant: bool,
    privileges: &[String],
    on: Option<&(String, Vec<Name>)>,
    to: &[String],
) -> Ran {
    let tag = if grant { "GRANT" } else { "REVOKE" };
    for role in to.iter().filter(|role| *role != "public") {
        if !data.roles.contains_key(role) {
            return Err(absent(role));
        }
    }
    match on {
        None => membership(state, data, grant, privileges, to)?,
        Some((kind, names)) if kind == "database" => {
            for name in names {
                database(state, data, grant, privileges, &name.name, to)?;
            }
        }
        Some((kind, names)) if kind == "table" => {
            for name in names {
                table(state, data, grant, privileges, name, to)?;
            }
        }
        Some(_) => {}
    }
    let shown = if on.is_none() { format!("{tag} ROLE") } else { tag.to_owned() };
    Ok(Done::tag(&shown))
}

fn membership(
    state: &mut State,
    data: &mut Data,
    grant: bool,
    groups: &[String],
    to: &[String],
) -> Result<(), Refusal> {
    let me = data.roles.get(&state.user);
    if !me.is_some_and(|me| me.superuser || me.create_role) {
        let message = format!("must have admin option on role \"{}\"", groups[0]);
        return Err(Refusal::new("42501", &message));
    }
    for group in groups {
        if !data.roles.contains_key(group) {
            return Err(absent(group));
        }
        for role in to {
            touch_role(state, data, role);
            if let Some(role) = data.roles.get_mut(role) {
                role.member_of.retain(|one| one != group);
                if grant {
                    role.member_of.push(group.clone());
                }
            }
        }
    }
    Ok(())
}

fn database(
    state: &mut State,
    data: &mut Data,
    grant: bool,
    privileges: &[String],
    name: &str,
    to: &[String],
) -> Result<(), Refusal> {
    let Some(found) = data.databases.get(name) else {
        return Err(Refusal::new("3D000", &format!("database \"{name}\" does not exist")));
    };
    let owner = found.owner.clone();
    if !data.is_superuser(&state.user) && !data.is_member(&state.user, &owner) {
        return Err(Refusal::new("42501", &format!("permission denied for database {name}")));
    }
    let mut letters = Vec::new();
    for privilege in privileges {
        match privilege.as_str() {
            "connect" => letters.push('c'),
            "temporary" | "temp" => letters.push('T'),
            "create" => letters.push('C'),
            "all" => letters.extend(['C', 'T', 'c']),
            other => {
                let message =
                    format!("invalid privilege type {} for database", other.to_uppercase());
                return Err(Refusal::new("0LP01", &message));
            }
        }
    }
    touch_database(state, data, name);
    let Some(found) = data.databases.get_mut(name) else { return Ok(()) };
    let held = found.explicit();
    for role in to {
        let grantee = if role == "public" { String::new() } else { role.clone() };
        let entry = held.entry(grantee.clone()).or_default();
        entry.retain(|letter| !letters.contains(letter));
        if grant {
            entry.extend(&letters);
            entry.sort_by_key(|letter| ['C', 'T', 'c'].iter().position(|one| one == letter));
        }
        if entry.is_empty() {
            held.remove(&grantee);
        }
    }
    Ok(())
}

fn table(
    state: &mut State,
    data: &mut Data,
    grant: bool,
    privileges: &[String],
    name: &Name,
    to: &[String],
) -> Result<(), Refusal> {
    let place = super::place::place(state, data, name)?;
    let database = state.database.clone();
    touch_database(state, data, &database);
    let found = data.databases.get_mut(&database).and_then(|one| one.tables.get_mut(&place));
    let Some(found) = found else { return Ok(()) };
    for role in to {
        for privilege in privileges {
            found.grants.retain(|one| one != &(role.clone(), privilege.clone()));
            if grant {
                found.grants.push((role.clone(), privilege.clone()));
            }
        }
    }
    Ok(())
}
