//! Functions of replication and recovery.
//!
//! Must not change anything: what they would change is noted as an effect.

use super::{Answer, missing};
use crate::external::postgres::ast::Name;
use crate::external::postgres::evaluate::{Effect, Scope};
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::replication::not_in_recovery;
use crate::external::postgres::server::held;
use crate::external::postgres::value::{Relation, Value};
use crate::external::postgres::wal;

/// A function of this file in an expression; none when the name is another's.
pub(super) fn call(scope: &Scope, name: &Name, arguments: &[Value]) -> Option<Answer> {
    let server = &scope.state.server;
    Some(match (name.name.as_str(), arguments.len()) {
        ("pg_is_in_recovery", 0) => Ok(Value::Bool(server.standby())),
        ("pg_current_wal_lsn" | "pg_current_wal_insert_lsn" | "pg_current_wal_flush_lsn", 0) => {
            match server.standby() {
                true => Err(Refusal::new("55000", "recovery is in progress")
                    .hint("WAL control functions cannot be executed during recovery.")),
                false => Ok(Value::Position(scope.data.wal.position)),
            }
        }
        ("pg_last_wal_receive_lsn", 0) => {
            let received = held(&server.following).received;
            Ok(received.map_or(Value::Null, Value::Position))
        }
        ("pg_last_wal_replay_lsn", 0) => Ok(match server.standby() {
            true => Value::Position(scope.data.wal.position),
            false => Value::Null,
        }),
        ("pg_last_xact_replay_timestamp", 0) => Ok(match scope.data.wal.changed {
            Some(at) if server.standby() => Value::Text(super::stamp(at)),
            _ => Value::Null,
        }),
        ("pg_wal_lsn_diff", 2) => difference(arguments),
        ("pg_is_wal_replay_paused" | "pg_get_wal_replay_pause_state", 0) => paused(scope, name),
        ("pg_promote", 0..=2) => control(scope, "pg_promote", Effect::Promote, Value::Bool(true)),
        ("pg_wal_replay_resume", 0) => {
            control(scope, "pg_wal_replay_resume", Effect::Resume, Value::text(""))
        }
        ("pg_wal_replay_pause", 0) => {
            control(scope, "pg_wal_replay_pause", Effect::Pause, Value::text(""))
        }
        ("pg_create_physical_replication_slot", 1..=3) => create(scope, arguments),
        ("pg_drop_replication_slot", 1) => drop_slot(scope, arguments),
        ("pg_terminate_backend", 1..=2) => terminate(scope, arguments),
        ("pg_switch_wal", 0) => switch(scope),
        _ => return None,
    })
}

/// A function of this file in `FROM`; none when the name is another's.
pub(super) fn table(
    scope: &Scope,
    name: &Name,
    arguments: &[Value],
) -> Option<Result<Relation, Refusal>> {
    if name.name != "pg_create_physical_replication_slot" {
        return None;
    }
    Some(create(scope, arguments).map(|made| {
        let mut relation = Relation::new(&["slot_name", "lsn"]);
        let text = made.shown().unwrap_or_default();
        let pair = text.trim_matches(['(', ')']).split_once(',').unwrap_or((&text, ""));
        let position = wal::parse(pair.1).map_or(Value::Null, Value::Position);
        relation.rows.push(vec![Value::text(pair.0), position]);
        relation
    }))
}

fn difference(arguments: &[Value]) -> Answer {
    let mut positions = [0_i128; 2];
    for (argument, position) in arguments.iter().zip(&mut positions) {
        let Some(text) = argument.shown() else { return Ok(Value::Null) };
        match argument.position() {
            Some(found) => *position = i128::from(found),
            None => {
                let message = format!("invalid input syntax for type pg_lsn: \"{text}\"");
                return Err(Refusal::new("22P02", &message));
            }
        }
    }
    Ok(Value::Decimal((positions[0] - positions[1]).to_string()))
}

fn paused(scope: &Scope, name: &Name) -> Answer {
    if !scope.state.server.standby() {
        return Err(not_in_recovery());
    }
    let following = held(&scope.state.server.following);
    Ok(match name.name.as_str() {
        "pg_is_wal_replay_paused" => Value::Bool(following.paused),
        _ => Value::text(following.state()),
    })
}

fn control(scope: &Scope, name: &str, effect: Effect, answer: Value) -> Answer {
    if !scope.data.is_superuser(&scope.state.user) {
        return Err(Refusal::new("42501", &format!("permission denied for function {name}")));
    }
    if !scope.state.server.standby() {
        return Err(not_in_recovery());
    }
    scope.effects.borrow_mut().push(effect);
    Ok(answer)
}

/// Who may use slots at all.
fn may_use_slots(scope: &Scope) -> Result<(), Refusal> {
    let role = scope.data.roles.get(&scope.state.user);
    if role.is_some_and(|role| role.superuser || role.replication) {
        return Ok(());
    }
    Err(Refusal::new("42501", "must be superuser or replication role to use replication slots"))
}

fn create(scope: &Scope, arguments: &[Value]) -> Answer {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    may_use_slots(scope)?;
    let name = arguments[0].shown().unwrap_or_default();
    let told = |what: &str| format!("replication slot name \"{name}\" {what}");
    if name.is_empty() {
        return Err(Refusal::new("42602", &told("is too short")));
    }
    if name.len() > 63 {
        return Err(Refusal::new("42622", &told("is too long")));
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if !name.chars().all(plain) {
        let hint = "Replication slot names may only contain lower case letters, numbers, and the \
                    underscore character.";
        return Err(Refusal::new("42602", &told("contains invalid character")).hint(hint));
    }
    if scope.data.slots.contains_key(&name) {
        let message = format!("replication slot \"{name}\" already exists");
        return Err(Refusal::new("42710", &message));
    }
    let most = scope.state.server.number("max_replication_slots");
    if scope.data.slots.len() >= usize::try_from(most).unwrap_or(0) {
        return Err(Refusal::new("53400", "all replication slots are in use")
            .hint("Free one or increase max_replication_slots."));
    }
    let reserve = arguments.get(1).is_some_and(|one| one.truth() == Some(true));
    let temporary = arguments.get(2).is_some_and(|one| one.truth() == Some(true));
    let restart = reserve.then_some(scope.data.wal.redo);
    let shown = restart.map_or_else(String::new, wal::shown);
    let answer = Value::Text(format!("({name},{shown})"));
    if temporary {
        return Err(Refusal::new("0A000", "the model has no temporary slots"));
    }
    scope.effects.borrow_mut().push(Effect::CreateSlot(name, restart));
    Ok(answer)
}

fn drop_slot(scope: &Scope, arguments: &[Value]) -> Answer {
    let Some(name) = arguments[0].shown() else { return Ok(Value::Null) };
    may_use_slots(scope)?;
    let Some(slot) = scope.data.slots.get(&name) else {
        return Err(Refusal::new("42704", &format!("replication slot \"{name}\" does not exist")));
    };
    if let Some(pid) = slot.active {
        let message = format!("replication slot \"{name}\" is active for PID {pid}");
        return Err(Refusal::new("55006", &message));
    }
    scope.effects.borrow_mut().push(Effect::DropSlot(name));
    Ok(Value::text(""))
}

fn terminate(scope: &Scope, arguments: &[Value]) -> Answer {
    let Value::Integer(pid) = arguments[0] else {
        let name = Name { schema: None, name: "pg_terminate_backend".into() };
        return Err(missing(&name, arguments));
    };
    if !scope.data.is_superuser(&scope.state.user) {
        let message = "must be a superuser to terminate superuser process";
        return Err(Refusal::new("42501", message));
    }
    let pid = i32::try_from(pid).unwrap_or(0);
    let found = scope.state.server.senders().contains_key(&pid);
    scope.effects.borrow_mut().push(Effect::Terminate(pid));
    Ok(Value::Bool(found))
}

fn switch(scope: &Scope) -> Answer {
    if scope.state.server.standby() {
        return Err(Refusal::new("55000", "recovery is in progress")
            .hint("WAL control functions cannot be executed during recovery."));
    }
    let position = scope.data.wal.position;
    let rest = wal::SEGMENT - position % wal::SEGMENT;
    scope.effects.borrow_mut().push(Effect::Write(rest));
    Ok(Value::Position(position))
}
