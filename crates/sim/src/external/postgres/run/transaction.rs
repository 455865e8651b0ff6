//! Transactions: what a block keeps, and how it is taken back.
//!
//! Changes are made at once and undone from a list, so other sessions see them before the commit;
//! the crate's README names this difference.

use super::Done;
use crate::external::postgres::data::{Data, Database, Role};
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::session::{Block, State, Temporary};

/// How one thing was before a transaction touched it.
#[derive(Clone, Debug)]
pub(in crate::external::postgres) enum Undo {
    Role(String, Option<Role>),
    Database(String, Option<Database>),
    Temporary(String, Option<Temporary>),
}

pub(in crate::external::postgres) fn begin(state: &mut State, read_only: Option<bool>) -> Done {
    let mut done = Done::tag("BEGIN");
    if state.block != Block::None {
        let message = "there is already a transaction in progress";
        done.warning = Some(Refusal::new("25001", message));
    } else {
        state.read_only = read_only;
    }
    state.block = Block::Open;
    done
}

pub(in crate::external::postgres) fn end(state: &mut State, data: &mut Data, keep: bool) -> Done {
    let failed = state.block == Block::Failed;
    let mut done = Done::tag(if keep && !failed { "COMMIT" } else { "ROLLBACK" });
    if state.block == Block::None {
        let message = "there is no transaction in progress";
        done.warning = Some(Refusal::new("25P01", message));
    }
    if !keep || failed {
        undo_in(state, data, 0);
    }
    close(state);
    done
}

pub(in crate::external::postgres) fn close(state: &mut State) {
    state.undo.clear();
    state.savepoints.clear();
    state.local.clear();
    state.read_only = None;
    state.block = Block::None;
    state.temporary.retain(|_, one| !one.drop_on_commit);
}

pub(in crate::external::postgres) fn savepoint(
    state: &State,
    name: &str,
) -> Result<usize, Refusal> {
    let found = state.savepoints.iter().rposition(|one| one.0 == name);
    found.ok_or_else(|| Refusal::new("3B001", &format!("savepoint \"{name}\" does not exist")))
}

/// The end of an implicit transaction that went well.
pub(in crate::external::postgres) fn commit(state: &mut State) {
    close(state);
}

/// The end of an implicit transaction that failed.
pub(in crate::external::postgres) fn rollback(state: &mut State) {
    undo(state, 0);
    close(state);
}

/// Takes back what was done after the first `keep` changes.
pub(in crate::external::postgres) fn undo(state: &mut State, keep: usize) {
    let server = state.server.clone();
    undo_in(state, &mut server.data(), keep);
}

pub(in crate::external::postgres) fn undo_in(state: &mut State, data: &mut Data, keep: usize) {
    fn restore<T>(map: &mut std::collections::BTreeMap<String, T>, name: String, old: Option<T>) {
        match old {
            Some(old) => drop(map.insert(name, old)),
            None => drop(map.remove(&name)),
        }
    }
    while state.undo.len() > keep {
        match state.undo.pop() {
            Some(Undo::Role(name, old)) => restore(&mut data.roles, name, old),
            Some(Undo::Database(name, old)) => restore(&mut data.databases, name, old),
            Some(Undo::Temporary(name, old)) => restore(&mut state.temporary, name, old),
            None => {}
        }
    }
}

pub(in crate::external::postgres) fn touch_role(state: &mut State, data: &Data, name: &str) {
    state.undo.push(Undo::Role(name.to_owned(), data.roles.get(name).cloned()));
}

pub(in crate::external::postgres) fn touch_database(state: &mut State, data: &Data, name: &str) {
    state.undo.push(Undo::Database(name.to_owned(), data.databases.get(name).cloned()));
}
