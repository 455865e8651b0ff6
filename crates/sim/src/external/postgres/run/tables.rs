//! Tables and their rows.
//!
//! Must not know catalogs.

use std::cell::RefCell;

use super::place::{is_temporary, owned, place, schema_of, writable};
use super::{Done, Ran, Undo, over_row, touch_database};
use crate::external::postgres::ast::{CreateTable, Expression, Name, Query};
use crate::external::postgres::catalog;
use crate::external::postgres::data::{Data, Table};
use crate::external::postgres::evaluate::Scope;
use crate::external::postgres::functions;
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::session::{State, Temporary};
use crate::external::postgres::value::Value;

pub(super) fn create(state: &mut State, data: &mut Data, wanted: &CreateTable) -> Ran {
    let name = &wanted.name.name;
    let schema = schema_of(state, data, wanted)?;
    let database = state.database.clone();
    let taken = match &schema {
        None => state.temporary.contains_key(name),
        Some(schema) => data
            .databases
            .get(&database)
            .is_some_and(|one| one.tables.contains_key(&(schema.clone(), name.clone()))),
    };
    if taken {
        if wanted.if_not_exists {
            let message = format!("relation \"{name}\" already exists, skipping");
            let warning = Some(Refusal::new("42P07", &message));
            return Ok(Done { warning, ..Done::tag("CREATE TABLE") });
        }
        return Err(Refusal::new("42P07", &format!("relation \"{name}\" already exists")));
    }
    let mut table = Table {
        oid: data.oid(),
        owner: state.user.clone(),
        columns: wanted.columns.clone(),
        rows: Vec::new(),
        next_serial: 1,
        grants: Vec::new(),
    };
    let mut tag = "CREATE TABLE".to_owned();
    if let Some(query) = &wanted.rows {
        let scope = Scope { state, data, effects: RefCell::default() };
        let relation = scope.query(query)?;
        table.columns = relation.columns.iter().map(|name| column(name)).collect();
        tag = format!("SELECT {}", relation.rows.len());
        table.rows = relation.rows;
    }
    match schema {
        None => {
            state.undo.push(Undo::Temporary(name.clone(), None));
            let drop_on_commit = wanted.drop_on_commit;
            state.temporary.insert(name.clone(), Temporary { table, drop_on_commit });
        }
        Some(schema) => {
            touch_database(state, data, &database);
            if let Some(database) = data.databases.get_mut(&database) {
                database.tables.insert((schema, name.clone()), table);
            }
        }
    }
    Ok(Done::tag(&tag))
}

fn column(name: &str) -> crate::external::postgres::ast::TableColumn {
    crate::external::postgres::ast::TableColumn {
        name: name.to_owned(),
        kind: "text".to_owned(),
        unique: false,
        required: false,
        serial: false,
    }
}

pub(super) fn remove(state: &mut State, data: &mut Data, names: &[Name], if_exists: bool) -> Ran {
    for name in names {
        if is_temporary(state, name) {
            let old = state.temporary.remove(&name.name);
            state.undo.push(Undo::Temporary(name.name.clone(), old));
            continue;
        }
        match place(state, data, name) {
            Ok(place) => {
                owned(state, data, &place)?;
                let database = state.database.clone();
                touch_database(state, data, &database);
                if let Some(database) = data.databases.get_mut(&database) {
                    database.tables.remove(&place);
                }
            }
            Err(_) if if_exists => {}
            Err(_) => {
                let message = format!("table \"{}\" does not exist", name.name);
                return Err(Refusal::new("42P01", &message));
            }
        }
    }
    Ok(Done::tag("DROP TABLE"))
}

/// Works on a table's copy and puts it back: a failure leaves the table as it was.
fn change<T>(
    state: &mut State,
    data: &mut Data,
    name: &Name,
    privilege: &str,
    work: impl FnOnce(&State, &Data, &mut Table) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    if is_temporary(state, name) {
        let Some(before) = state.temporary.get(&name.name).cloned() else {
            return Err(catalog::absent(name));
        };
        let mut after = before.clone();
        let answer = work(state, data, &mut after.table)?;
        state.undo.push(Undo::Temporary(name.name.clone(), Some(before)));
        state.temporary.insert(name.name.clone(), after);
        return Ok(answer);
    }
    let place = place(state, data, name)?;
    writable(state, data, &place, privilege)?;
    let database = state.database.clone();
    let found = data.databases.get(&database).and_then(|one| one.tables.get(&place)).cloned();
    let mut table = found.ok_or_else(|| catalog::absent(name))?;
    let answer = work(state, data, &mut table)?;
    touch_database(state, data, &database);
    if let Some(database) = data.databases.get_mut(&database) {
        database.tables.insert(place, table);
    }
    Ok(answer)
}

pub(super) fn truncate(state: &mut State, data: &mut Data, names: &[Name]) -> Ran {
    for name in names {
        change(state, data, name, "truncate", |_, _, table| {
            table.rows.clear();
            Ok(())
        })?;
    }
    Ok(Done::tag("TRUNCATE TABLE"))
}

pub(super) fn insert(
    state: &mut State,
    data: &mut Data,
    name: &Name,
    columns: &[String],
    rows: &Query,
) -> Ran {
    let relation = {
        let scope = Scope { state, data, effects: RefCell::default() };
        scope.query(rows)?
    };
    let count = change(state, data, name, "insert", |_, _, table| {
        let count = relation.rows.len();
        for row in relation.rows {
            insert_row(table, &name.name, columns, row)?;
        }
        Ok(count)
    })?;
    Ok(Done::tag(&format!("INSERT 0 {count}")))
}

fn insert_row(
    table: &mut Table,
    name: &str,
    columns: &[String],
    row: Vec<Value>,
) -> Result<(), Refusal> {
    let mut places = Vec::new();
    for column in columns {
        let place = table.columns.iter().position(|one| one.name == *column);
        places.push(place.ok_or_else(|| no_column(column, name))?);
    }
    if columns.is_empty() {
        places = (0..table.columns.len()).collect();
    }
    if row.len() > places.len() {
        let message = "INSERT has more expressions than target columns";
        return Err(Refusal::new("42601", message));
    }
    if row.len() < places.len() && !columns.is_empty() {
        let message = "INSERT has more target columns than expressions";
        return Err(Refusal::new("42601", message));
    }
    let mut full: Vec<Option<Value>> = table.columns.iter().map(|_| None).collect();
    for (place, value) in places.into_iter().zip(row) {
        full[place] = Some(value);
    }
    let mut stored = Vec::new();
    for (column, value) in table.columns.clone().iter().zip(full) {
        let value = match value {
            Some(value) => functions::cast(value, &column.kind)?,
            None if column.serial => {
                table.next_serial += 1;
                Value::Integer(table.next_serial - 1)
            }
            None => Value::Null,
        };
        stored.push(value);
    }
    check(table, name, &stored, None)?;
    table.rows.push(stored);
    Ok(())
}

fn no_column(column: &str, table: &str) -> Refusal {
    let message = format!("column \"{column}\" of relation \"{table}\" does not exist");
    Refusal::new("42703", &message)
}

/// NOT NULL and uniqueness of a row, which may replace the one at `except`.
fn check(table: &Table, name: &str, row: &[Value], except: Option<usize>) -> Result<(), Refusal> {
    for (index, column) in table.columns.iter().enumerate() {
        if column.required && row[index].is_null() {
            let message = format!(
                "null value in column \"{}\" of relation \"{name}\" violates not-null constraint",
                column.name
            );
            let shown = row.iter().map(|one| one.shown().unwrap_or_else(|| "null".into()));
            let detail =
                format!("Failing row contains ({}).", shown.collect::<Vec<_>>().join(", "));
            return Err(Refusal::new("23502", &message).detail(&detail));
        }
        let taken =
            column.unique
                && !row[index].is_null()
                && table.rows.iter().enumerate().any(|(at, other)| {
                    Some(at) != except && other[index].order(&row[index]).is_eq()
                });
        if taken {
            let suffix =
                if column.required { "pkey".to_owned() } else { format!("{}_key", column.name) };
            let message =
                format!("duplicate key value violates unique constraint \"{name}_{suffix}\"");
            let shown = row[index].shown().unwrap_or_default();
            let detail = format!("Key ({})=({shown}) already exists.", column.name);
            return Err(Refusal::new("23505", &message).detail(&detail));
        }
    }
    Ok(())
}

fn names(table: &Table) -> Vec<String> {
    table.columns.iter().map(|column| column.name.clone()).collect()
}

fn chosen(
    state: &State,
    data: &Data,
    table: &Table,
    name: &str,
    filter: Option<&Expression>,
) -> Result<Vec<usize>, Refusal> {
    let columns = names(table);
    let mut found = Vec::new();
    for (index, row) in table.rows.iter().enumerate() {
        let fits = match filter {
            Some(filter) => {
                over_row(state, data, filter, (name, &columns), row)?.truth() == Some(true)
            }
            None => true,
        };
        if fits {
            found.push(index);
        }
    }
    Ok(found)
}

pub(super) fn update(
    state: &mut State,
    data: &mut Data,
    name: &Name,
    set: &[(String, Expression)],
    filter: Option<&Expression>,
) -> Ran {
    let count = change(state, data, name, "update", |state, data, table| {
        let rows = chosen(state, data, table, &name.name, filter)?;
        let columns = names(table);
        for index in &rows {
            let mut row = table.rows[*index].clone();
            for (column, expression) in set {
                let place = columns.iter().position(|one| one == column);
                let place = place.ok_or_else(|| no_column(column, &name.name))?;
                let old = &table.rows[*index];
                let value = over_row(state, data, expression, (&name.name, &columns), old)?;
                row[place] = functions::cast(value, &table.columns[place].kind)?;
            }
            check(table, &name.name, &row, Some(*index))?;
            table.rows[*index] = row;
        }
        Ok(rows.len())
    })?;
    Ok(Done::tag(&format!("UPDATE {count}")))
}

pub(super) fn delete(
    state: &mut State,
    data: &mut Data,
    name: &Name,
    filter: Option<&Expression>,
) -> Ran {
    let count = change(state, data, name, "delete", |state, data, table| {
        let rows = chosen(state, data, table, &name.name, filter)?;
        let mut index = 0;
        table.rows.retain(|_| {
            index += 1;
            !rows.contains(&(index - 1))
        });
        Ok(rows.len())
    })?;
    Ok(Done::tag(&format!("DELETE {count}")))
}
