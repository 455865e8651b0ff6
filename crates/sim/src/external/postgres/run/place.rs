//! Where a table is or goes, and who may change it.
//!
//! Must not touch rows.

use std::cell::RefCell;

use crate::external::postgres::ast::{CreateTable, Name};
use crate::external::postgres::catalog;
use crate::external::postgres::data::Data;
use crate::external::postgres::evaluate::Scope;
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::session::State;

/// Schema and name of the user's table that a name means.
pub(super) fn place(state: &State, data: &Data, name: &Name) -> Result<(String, String), Refusal> {
    let scope = Scope { state, data, effects: RefCell::default() };
    match catalog::find(&scope, name) {
        Some((schema, _)) => Ok((schema, name.name.clone())),
        None => Err(catalog::absent(name)),
    }
}

pub(super) fn is_temporary(state: &State, name: &Name) -> bool {
    matches!(name.schema.as_deref(), None | Some("pg_temp"))
        && state.temporary.contains_key(&name.name)
}

/// Where a new table goes: none is the session's temporary schema.
pub(super) fn schema_of(
    state: &State,
    data: &Data,
    wanted: &CreateTable,
) -> Result<Option<String>, Refusal> {
    let database = data.databases.get(&state.database);
    let Some(database) = database else { return Ok(None) };
    let said = wanted.name.schema.clone();
    if wanted.temporary || said.as_deref() == Some("pg_temp") {
        if said.as_deref().is_some_and(|schema| schema != "pg_temp") {
            let message = "cannot create temporary relation in non-temporary schema";
            return Err(Refusal::new("42P16", message));
        }
        if !data.may(&state.user, database, 'T') {
            let message = format!(
                "permission denied to create temporary tables in database \"{}\"",
                state.database
            );
            return Err(Refusal::new("42501", &message));
        }
        return Ok(None);
    }
    let path = match said {
        Some(schema) => vec![schema],
        None => state.search_path(data),
    };
    let known =
        |schema: &&String| database.schemas.contains_key(*schema) || *schema == "pg_catalog";
    let Some(schema) = path.iter().find(known) else {
        let first = wanted.name.schema.as_ref();
        return Err(match first {
            Some(schema) => Refusal::new("3F000", &format!("schema \"{schema}\" does not exist")),
            None => Refusal::new("3F000", "no schema has been selected to create in"),
        });
    };
    if schema == "pg_catalog" && !data.is_superuser(&state.user) {
        return Err(Refusal::new("42501", "permission denied for schema pg_catalog"));
    }
    if schema == "pg_catalog" {
        let message = format!("permission denied to create \"pg_catalog.{}\"", wanted.name.name);
        let detail = "System catalog modifications are currently disallowed.";
        return Err(Refusal::new("42501", &message).detail(detail));
    }
    let owner = match database.schemas[schema].as_str() {
        "pg_database_owner" => database.owner.clone(),
        owner => owner.to_owned(),
    };
    let open = schema == "public" && state.server.version.major < 15;
    if !open && !data.is_superuser(&state.user) && !data.is_member(&state.user, &owner) {
        return Err(Refusal::new("42501", &format!("permission denied for schema {schema}")));
    }
    Ok(Some(schema.clone()))
}

pub(super) fn owned(state: &State, data: &Data, place: &(String, String)) -> Result<(), Refusal> {
    let table = data.databases.get(&state.database).and_then(|one| one.tables.get(place));
    let ours = table.is_some_and(|table| data.is_member(&state.user, &table.owner));
    if ours || data.is_superuser(&state.user) {
        return Ok(());
    }
    Err(Refusal::new("42501", &format!("must be owner of table {}", place.1)))
}

pub(super) fn writable(
    state: &State,
    data: &Data,
    place: &(String, String),
    privilege: &str,
) -> Result<(), Refusal> {
    let table = data.databases.get(&state.database).and_then(|one| one.tables.get(place));
    let may = table.is_some_and(|table| {
        data.is_member(&state.user, &table.owner)
            || table.grants.iter().any(|(to, held)| {
                (held == privilege || held == "all")
                    && (to == "public" || data.is_member(&state.user, to))
            })
    });
    if may || data.is_superuser(&state.user) {
        return Ok(());
    }
    Err(Refusal::new("42501", &format!("permission denied for table {}", place.1)))
}
