//! Invariants of the status: one story told by phase, `ready`, conditions and notes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{Findings, LintContext, Rule, check_reason};
use crate::ladder::LadderDoc;
use crate::plan::{Note, Plan};

/// The longest reason and message that the API accepts in a condition, in bytes.
const REASON_LIMIT: usize = 1024;
const MESSAGE_LIMIT: usize = 32_768;

pub(super) fn check(plan: &Plan, context: &LintContext, found: &mut Findings) {
    let Some(write) = &plan.status else {
        if plan.transition.is_some() {
            found.add(Rule::StatusIsTruthful, "a move between phases without a status write");
        }
        return;
    };
    if write.uid.is_empty() || write.resource_version.is_empty() {
        let detail = "the status write names no uid or no resourceVersion";
        found.add(Rule::IncarnationIsNamed, detail);
    }
    check_phase(&write.status, plan, &context.ladder, found);
    check_notes(&write.status, &plan.notes, &context.ladder, found);
    check_conditions(&write.status, &context.ladder, found);
}

/// Whether the status claims to be ready, in its condition or in `ready`.
pub(super) fn is_ready(status: &Value) -> bool {
    has(status, "Ready", "True") || status.get("ready") == Some(&Value::Bool(true))
}

/// Whether the condition of that type has that status.
pub(super) fn has(status: &Value, kind: &str, expected: &str) -> bool {
    condition(status, kind).and_then(|c| c.get("status")).and_then(Value::as_str) == Some(expected)
}

/// The reason of the condition of that type.
pub(super) fn reason_of<'a>(status: &'a Value, kind: &str) -> Option<&'a str> {
    condition(status, kind)?.get("reason")?.as_str()
}

/// Whether the status stands aside, in a failure, with a time for the next try in its retry ledger.
pub(super) fn promises_retry(status: &Value, ladder: &LadderDoc) -> bool {
    let phase = status.get("phase").and_then(Value::as_str).unwrap_or_default();
    let aside = ladder.aside.iter().any(|(aside, _)| *aside == phase);
    aside && status.pointer("/retry/nextTry").is_some_and(Value::is_string)
}

fn conditions(status: &Value) -> impl Iterator<Item = &Value> {
    status.get("conditions").and_then(Value::as_array).into_iter().flatten()
}

fn condition<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    conditions(status).find(|c| c.get("type").and_then(Value::as_str) == Some(kind))
}

/// `ready`, the condition `Ready` and the top rung's phase come and go together.
fn check_phase(status: &Value, plan: &Plan, ladder: &LadderDoc, found: &mut Findings) {
    let condition = condition(status, "Ready").map(|_| has(status, "Ready", "True"));
    let field = status.get("ready").and_then(Value::as_bool);
    if let (Some(condition), Some(field)) = (condition, field)
        && condition != field
    {
        let detail = format!("ready is {field}, the condition Ready says {condition}");
        found.add(Rule::StatusIsTruthful, detail);
    }
    let Some(phase) = status.get("phase").and_then(Value::as_str) else { return };
    let known = ladder.rungs.iter().any(|rung| rung.phase == phase)
        || ladder.aside.iter().any(|(aside, _)| *aside == phase);
    if !known {
        found.add(Rule::StatusIsTruthful, format!("phase {phase:?} is not in the ladder"));
    }
    let settled = ladder.rungs.last().is_some_and(|rung| rung.phase == phase);
    if let Some(ready) = condition.or(field)
        && ready != settled
    {
        let detail = format!("phase is {phase}, and ready is {ready}");
        found.add(Rule::StatusIsTruthful, detail);
    }
    if let Some(transition) = &plan.transition
        && transition.to != phase
    {
        let detail = format!("moves to {}, and the status says {phase}", transition.to);
        found.add(Rule::StatusIsTruthful, detail);
    }
}

/// A ready resource has no rung unmet: a note with a rung's reason is a contradiction, unless
/// another condition (such as `Degraded`) tells of it.
fn check_notes(status: &Value, notes: &[Note], ladder: &LadderDoc, found: &mut Findings) {
    if !is_ready(status) {
        return;
    }
    for note in notes {
        let name = note.reason.name;
        let unmet = ladder.rungs.iter().any(|r| r.reasons.iter().any(|known| known.name == name));
        let told = conditions(status).any(|c| {
            let text = |field: &str| c.get(field).and_then(Value::as_str);
            text("type") != Some("Ready") && text("reason") == Some(name)
        });
        if unmet && !told {
            let detail = format!("ready, while a note with reason {name} tells of a rung unmet");
            found.add(Rule::StatusIsTruthful, detail);
        }
    }
}

fn check_conditions(status: &Value, ladder: &LadderDoc, found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for condition in conditions(status) {
        let text = |field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = text("type");
        let historical = ladder.historical.contains(&kind);
        for fault in faults(condition).into_iter().filter(|_| !historical) {
            found.add(Rule::ConditionsAreWellFormed, format!("condition {kind:?}: {fault}"));
        }
        if !seen.insert(kind) {
            found.add(Rule::ConditionsAreWellFormed, format!("condition {kind:?} occurs twice"));
        }
        if !ladder.conditions.iter().any(|(known, _)| *known == kind) {
            let detail = format!("condition type {kind:?} is not in the ladder");
            found.add(Rule::ReasonsAreDocumented, detail);
        }
        if !historical {
            check_reason(text("reason"), ladder, found);
        }
    }
}

/// What is wrong with one condition, by the rules of `metav1.Condition`.
fn faults(condition: &Value) -> Vec<&'static str> {
    let text = |field: &str| condition.get(field).and_then(Value::as_str);
    let holds = [
        (text("type").is_some_and(|kind| !kind.is_empty()), "no type"),
        (
            matches!(text("status"), Some("True" | "False" | "Unknown")),
            "status is not True, False or Unknown",
        ),
        (text("reason").is_some_and(is_reason), "reason is not a CamelCase word"),
        (
            text("message").is_some_and(|message| message.len() <= MESSAGE_LIMIT),
            "no message, or one that is too long",
        ),
        (
            text("lastTransitionTime").is_some_and(|time| time.parse::<Timestamp>().is_ok()),
            "no lastTransitionTime",
        ),
        (condition.get("observedGeneration").is_some_and(Value::is_i64), "no observedGeneration"),
    ];
    holds.into_iter().filter(|(sound, _)| !sound).map(|(_, fault)| fault).collect()
}

fn is_reason(reason: &str) -> bool {
    reason.len() <= REASON_LIMIT
        && reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && !reason.ends_with([',', ':'])
        && reason.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':'))
}
