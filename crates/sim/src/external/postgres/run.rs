//! Statements: what they change, and when they are refused.
//!
//! Must not wait; locks and delays are `session`'s.

mod access;
mod databases;
mod place;
mod roles;
mod setting;
mod tables;
mod transaction;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use super::ast::{Expression, Query, Statement};
use super::data::Data;
use super::evaluate::{Effect, Scope};
use super::refusal::Refusal;
use super::server::{Server, held};
use super::session::{Block, State};
use super::value::{Relation, Value};
use super::wal::Slot;
pub(super) use setting::check_setting;
use setting::{alter_system, set, show};
pub(super) use transaction::{Undo, commit, rollback, undo};
use transaction::{begin, end, savepoint, touch_database, touch_role, undo_in};

/// What a statement answers.
#[derive(Default)]
pub(super) struct Done {
    pub(super) tag: String,
    pub(super) rows: Option<Relation>,
    pub(super) warning: Option<Refusal>,
    pub(super) sleep: Duration,
    /// Whether the server is to read its files again.
    pub(super) reload: bool,
    /// What is done to the server once the data are free.
    pub(super) afterwards: Vec<Effect>,
}

impl Done {
    fn tag(tag: &str) -> Done {
        Done { tag: tag.to_owned(), ..Done::default() }
    }
}

type Ran = Result<Done, Refusal>;

/// Runs one statement; `several` says that it shares its message, and so its transaction.
pub(super) fn execute(state: &mut State, statement: &Statement, several: bool) -> Ran {
    let ends =
        matches!(statement, Statement::Commit | Statement::Rollback | Statement::RollbackTo(_));
    if state.block == Block::Failed && !ends {
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        return Err(Refusal::new("25P02", message));
    }
    let server = state.server.clone();
    let mut data = server.data();
    if let Some(tag) = writes(state, statement) {
        guard(state, &data, tag)?;
    }
    let alone = matches!(
        statement,
        Statement::CreateDatabase { .. }
            | Statement::DropDatabase { .. }
            | Statement::AlterSystem { .. }
    );
    if alone && (several || state.block != Block::None) {
        let tag = writes(state, statement).unwrap_or_default();
        let message = format!("{tag} cannot run inside a transaction block");
        return Err(Refusal::new("25001", &message));
    }
    let done = dispatch(state, &mut data, statement)?;
    if writes(state, statement).is_some() {
        data.wal.write(RECORD, server.now());
    }
    drop(data);
    afterwards(&server, &done)?;
    Ok(done)
}

/// Bytes of log that a statement writes, more or less.
const RECORD: u64 = 0x100;

/// What needs the data unlocked: the ends of recovery and of processes, and the news to standbys.
fn afterwards(server: &Arc<Server>, done: &Done) -> Result<(), Refusal> {
    for effect in &done.afterwards {
        match effect {
            Effect::Promote => server.promote()?,
            Effect::Pause => held(&server.following).paused = true,
            Effect::Resume => server.resume(),
            Effect::Terminate(pid) => drop(server.terminate(*pid)),
            Effect::Checkpoint if server.standby() => {}
            Effect::Checkpoint => server.checkpoint(),
            Effect::Set { .. }
            | Effect::Reload
            | Effect::Sleep(_)
            | Effect::CreateSlot(..)
            | Effect::DropSlot(_)
            | Effect::Write(_) => {}
        }
    }
    if !server.senders().is_empty() {
        server.changed.notify_waiters();
    }
    Ok(())
}

fn dispatch(state: &mut State, data: &mut Data, statement: &Statement) -> Ran {
    if state.server.standby() {
        recovering(statement)?;
    }
    match statement {
        Statement::Query(query) => select(state, data, query),
        Statement::Show(name) => show(state, data, name),
        Statement::Set { local, name, value } => set(state, *local, name, value.as_deref()),
        Statement::Reset(name) => {
            match name {
                Some(name) => drop(state.settings.remove(&name.to_lowercase())),
                None => state.settings.clear(),
            }
            Ok(Done::tag("RESET"))
        }
        Statement::Begin { read_only } => Ok(begin(state, *read_only)),
        Statement::Commit => Ok(end(state, data, true)),
        Statement::Rollback => Ok(end(state, data, false)),
        Statement::Savepoint(name) => {
            state.savepoints.push((name.clone(), state.undo.len()));
            Ok(Done::tag("SAVEPOINT"))
        }
        Statement::Release(name) => {
            let at = savepoint(state, name)?;
            state.savepoints.truncate(at);
            Ok(Done::tag("RELEASE"))
        }
        Statement::RollbackTo(name) => {
            let at = savepoint(state, name)?;
            let keep = state.savepoints[at].1;
            undo_in(state, data, keep);
            state.block = Block::Open;
            Ok(Done::tag("ROLLBACK"))
        }
        other => define(state, data, other),
    }
}

/// Statements that change roles, databases or tables.
fn define(state: &mut State, data: &mut Data, statement: &Statement) -> Ran {
    match statement {
        Statement::CreateRole { name, login, options } => {
            roles::create(state, data, name, *login, options)
        }
        Statement::AlterRole { name, options } => roles::alter(state, data, name, options),
        Statement::AlterRoleSet { name, setting, value } => {
            roles::set(state, data, name, setting, value.as_deref())
        }
        Statement::DropRole { names, if_exists } => roles::remove(state, data, names, *if_exists),
        Statement::CreateDatabase { name, owner, template } => {
            databases::create(state, data, name, owner.as_deref(), template.as_deref())
        }
        Statement::AlterDatabase { name, change } => databases::alter(state, data, name, change),
        Statement::DropDatabase { name, if_exists } => {
            databases::remove(state, data, name, *if_exists)
        }
        Statement::Grant { grant, privileges, on, to } => {
            access::grant(state, data, *grant, privileges, on.as_ref(), to)
        }
        Statement::Comment { kind, name, text } => {
            databases::comment(state, data, kind, name, text.as_deref())
        }
        Statement::CreateSchema { name, if_not_exists, owner } => {
            databases::create_schema(state, data, name, *if_not_exists, owner.as_deref())
        }
        Statement::CreateExtension { name, if_not_exists } => {
            databases::create_extension(state, data, name, *if_not_exists)
        }
        Statement::CreateTable(table) => tables::create(state, data, table),
        Statement::DropTable { names, if_exists } => tables::remove(state, data, names, *if_exists),
        Statement::Truncate(names) => tables::truncate(state, data, names),
        Statement::Insert { table, columns, rows, returning } => {
            let _ = returning;
            tables::insert(state, data, table, columns, rows)
        }
        Statement::Update { table, set, filter } => {
            tables::update(state, data, table, set, filter.as_ref())
        }
        Statement::Delete { table, filter } => tables::delete(state, data, table, filter.as_ref()),
        Statement::AlterSystem { name, value } => alter_system(state, data, name, value.as_deref()),
        Statement::Lock(_) => match state.block {
            Block::Open => Ok(Done::tag("LOCK TABLE")),
            _ => Err(Refusal::new("25P01", "LOCK TABLE can only be used in transaction blocks")),
        },
        Statement::Quiet("CHECKPOINT") => {
            Ok(Done { afterwards: vec![Effect::Checkpoint], ..Done::tag("CHECKPOINT") })
        }
        Statement::Quiet(tag) => Ok(Done::tag(tag)),
        // The rest is handled by `dispatch`, which asks here last.
        _ => Err(Refusal::new("XX000", "statement was not dispatched")),
    }
}

/// The command tag of a statement that a read-only transaction refuses.
fn writes(state: &State, statement: &Statement) -> Option<&'static str> {
    let temporary = |name: &super::ast::Name| state.temporary.contains_key(&name.name);
    Some(match statement {
        Statement::CreateRole { .. } => "CREATE ROLE",
        Statement::AlterRole { .. } | Statement::AlterRoleSet { .. } => "ALTER ROLE",
        Statement::DropRole { .. } => "DROP ROLE",
        Statement::CreateDatabase { .. } => "CREATE DATABASE",
        Statement::AlterDatabase { .. } => "ALTER DATABASE",
        Statement::DropDatabase { .. } => "DROP DATABASE",
        Statement::Grant { grant, .. } => {
            if *grant {
                "GRANT"
            } else {
                "REVOKE"
            }
        }
        Statement::Comment { .. } => "COMMENT",
        Statement::CreateSchema { .. } => "CREATE SCHEMA",
        Statement::CreateExtension { .. } => "CREATE EXTENSION",
        Statement::CreateTable(_) => "CREATE TABLE",
        Statement::DropTable { .. } => "DROP TABLE",
        Statement::Truncate(_) => "TRUNCATE TABLE",
        Statement::Insert { table, .. } if !temporary(table) => "INSERT",
        Statement::Update { table, .. } if !temporary(table) => "UPDATE",
        Statement::Delete { table, .. } if !temporary(table) => "DELETE",
        Statement::AlterSystem { .. } => "ALTER SYSTEM",
        _ => return None,
    })
}

fn guard(state: &State, data: &Data, tag: &str) -> Result<(), Refusal> {
    if state.is_read_only(data) && tag != "ALTER SYSTEM" {
        let message = format!("cannot execute {tag} in a read-only transaction");
        return Err(Refusal::new("25006", &message));
    }
    if state.server.condition().disk_full {
        let message = "could not extend file \"base/5/16388\": No space left on device";
        return Err(Refusal::new("53100", message).hint("Check free disk space."));
    }
    Ok(())
}

/// What no standby does, whatever the transaction says of itself.
fn recovering(statement: &Statement) -> Result<(), Refusal> {
    let tag = match statement {
        Statement::Begin { read_only: Some(false) } => None,
        Statement::Set { name, value, .. } if name == "transaction_read_only" => {
            match value.as_deref().and_then(super::settings::boolean) {
                Some(false) => None,
                _ => return Ok(()),
            }
        }
        Statement::Lock(_) => Some("LOCK TABLE"),
        Statement::Quiet(tag @ ("VACUUM" | "ANALYZE" | "REINDEX")) => Some(*tag),
        _ => return Ok(()),
    };
    Err(match tag {
        Some(tag) => Refusal::new("25006", &format!("cannot execute {tag} during recovery")),
        None => Refusal::new("0A000", "cannot set transaction read-write mode during recovery"),
    })
}

/// Names on which a statement needs a lock.
pub(super) fn locks(statement: &Statement) -> Vec<String> {
    match statement {
        Statement::CreateRole { name, .. }
        | Statement::AlterRole { name, .. }
        | Statement::CreateDatabase { name, .. }
        | Statement::AlterDatabase { name, .. }
        | Statement::DropDatabase { name, .. } => vec![name.clone()],
        Statement::Insert { table, .. }
        | Statement::Update { table, .. }
        | Statement::Delete { table, .. } => vec![table.name.clone()],
        Statement::Lock(names) | Statement::Truncate(names) => {
            names.iter().map(|name| name.name.clone()).collect()
        }
        Statement::Grant { on: Some((_, names)), .. } => {
            names.iter().map(|name| name.name.clone()).collect()
        }
        Statement::Comment { name, .. } => vec![name.name.clone()],
        Statement::Query(query) => query
            .from
            .iter()
            .filter_map(|from| match &from.source {
                super::ast::Source::Table(name) => Some(name.name.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn select(state: &mut State, data: &mut Data, query: &Query) -> Ran {
    let scope = Scope { state, data, effects: RefCell::default() };
    let rows = scope.query(query)?;
    let effects = scope.effects.into_inner();
    let mut done = Done::tag(&format!("SELECT {}", rows.rows.len()));
    done.rows = Some(rows);
    for effect in effects {
        carry_out(state, data, effect, &mut done)?;
    }
    Ok(done)
}

fn carry_out(
    state: &mut State,
    data: &mut Data,
    effect: Effect,
    done: &mut Done,
) -> Result<(), Refusal> {
    match effect {
        Effect::Set { name, value, local } => {
            set(state, local, &name, Some(&value))?;
        }
        Effect::Reload => done.reload = true,
        Effect::Sleep(seconds) => {
            done.sleep = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default();
        }
        // Slots are no part of a transaction: a roll-back leaves them as they are.
        Effect::CreateSlot(name, restart) => {
            data.slots.insert(name, Slot { restart, ..Slot::default() });
        }
        Effect::DropSlot(name) => drop(data.slots.remove(&name)),
        Effect::Write(bytes) => data.wal.write(bytes, state.server.now()),
        Effect::Promote
        | Effect::Pause
        | Effect::Resume
        | Effect::Terminate(_)
        | Effect::Checkpoint => {
            done.afterwards.push(effect);
        }
    }
    Ok(())
}

/// An expression over one row of a table.
fn over_row(
    state: &State,
    data: &Data,
    expression: &Expression,
    table: (&str, &[String]),
    row: &[Value],
) -> Result<Value, Refusal> {
    let scope = Scope { state, data, effects: RefCell::default() };
    scope.row(expression, table.0, table.1, row)
}
