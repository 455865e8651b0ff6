//! The views of replication.
//!
//! Must not change anything.

use crate::external::postgres::evaluate::Scope;
use crate::external::postgres::functions::stamp;
use crate::external::postgres::server::held;
use crate::external::postgres::value::{Relation, Value};

fn position(at: Option<u64>) -> Value {
    at.map_or(Value::Null, Value::Position)
}

/// Whether the user sees more than the existence of others' processes.
fn sees(scope: &Scope) -> bool {
    let (data, user) = (scope.data, &scope.state.user);
    data.is_superuser(user)
        || ["pg_monitor", "pg_read_all_stats"].iter().any(|group| data.is_member(user, group))
}

/// `pg_stat_replication`. Lags are never shown: the real columns are empty too as soon as nothing is
/// left to send.
pub(super) fn senders(scope: &Scope) -> Relation {
    let mut relation = Relation::new(&[
        "pid",
        "usesysid",
        "usename",
        "application_name",
        "client_addr",
        "client_hostname",
        "client_port",
        "backend_start",
        "backend_xmin",
        "state",
        "sent_lsn",
        "write_lsn",
        "flush_lsn",
        "replay_lsn",
        "write_lag",
        "flush_lag",
        "replay_lag",
        "sync_priority",
        "sync_state",
        "reply_time",
    ]);
    let sees = sees(scope);
    for (pid, sender) in scope.state.server.senders() {
        let role = scope.data.roles.get(&sender.user).map_or(0, |role| role.oid);
        let mut row =
            vec![Value::Integer(pid.into()), Value::Integer(role), Value::text(&sender.user)];
        if !sees && sender.user != scope.state.user {
            row.push(Value::text(&sender.application));
            row.resize(relation.columns.len(), Value::Null);
            relation.rows.push(row);
            continue;
        }
        row.extend([
            Value::text(&sender.application),
            Value::text(&sender.address),
            Value::Null,
            Value::Integer(i64::from(pid % 20_000) + 32_768),
            Value::Text(stamp(sender.since)),
            Value::Null,
            Value::text(sender.state),
            position(sender.sent),
            position(sender.flushed),
            position(sender.flushed),
            position(sender.replayed),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Integer(0),
            Value::text("async"),
            Value::Text(stamp(scope.state.server.now())),
        ]);
        relation.rows.push(row);
    }
    relation
}

/// `pg_stat_wal_receiver`.
pub(super) fn receiver(scope: &Scope) -> Relation {
    let mut relation = Relation::new(&[
        "pid",
        "status",
        "receive_start_lsn",
        "receive_start_tli",
        "written_lsn",
        "flushed_lsn",
        "received_tli",
        "last_msg_send_time",
        "last_msg_receipt_time",
        "latest_end_lsn",
        "latest_end_time",
        "slot_name",
        "sender_host",
        "sender_port",
        "conninfo",
    ]);
    let following = held(&scope.state.server.following);
    let Some(stream) = &following.stream else { return relation };
    let mut row = vec![Value::Integer(i64::from(stream.pid) + 1)];
    if !sees(scope) {
        row.resize(relation.columns.len(), Value::Null);
        relation.rows.push(row);
        return relation;
    }
    let now = || Value::Text(stamp(scope.state.server.now()));
    let timeline = || Value::Integer(stream.timeline.into());
    let received = following.received.or(Some(stream.start));
    row.extend([
        Value::text("streaming"),
        Value::Position(stream.start),
        timeline(),
        position(received),
        position(received),
        timeline(),
        now(),
        now(),
        position(received),
        now(),
        Value::optional(stream.slot.as_deref()),
        Value::text(&stream.address),
        Value::Integer(stream.upstream.port().into()),
        Value::Text(stream.upstream.obfuscated()),
    ]);
    relation.rows.push(row);
    relation
}

/// `pg_replication_slots`.
pub(super) fn slots(scope: &Scope) -> Relation {
    let mut columns = vec![
        "slot_name",
        "plugin",
        "slot_type",
        "datoid",
        "database",
        "temporary",
        "active",
        "active_pid",
        "xmin",
        "catalog_xmin",
        "restart_lsn",
        "confirmed_flush_lsn",
        "wal_status",
        "safe_wal_size",
        "two_phase",
    ];
    if scope.state.server.version.major >= 16 {
        columns.push("conflicting");
    }
    let mut relation = Relation::new(&columns);
    let limits = scope.state.server.limits();
    let (wal, all) = (&scope.data.wal, &scope.data.slots);
    for (name, slot) in all {
        let mut row = vec![
            Value::text(name),
            Value::Null,
            Value::text("physical"),
            Value::Null,
            Value::Null,
            Value::Bool(false),
            Value::Bool(slot.active.is_some()),
            slot.active.map_or(Value::Null, |pid| Value::Integer(pid.into())),
            Value::Null,
            Value::Null,
            position(slot.restart),
            Value::Null,
            Value::optional(wal.status(slot, all, limits)),
            wal.safe(slot, limits).map_or(Value::Null, Value::Integer),
            Value::Bool(false),
        ];
        row.resize(relation.columns.len(), Value::Null);
        relation.rows.push(row);
    }
    relation
}
