//! Invariants of the writes: data kept, incarnations named, names valid, order right.
//!
//! That an apply to a name that is believed free is never forced, and that a plan holds at most
//! one status write, the types see to.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{Findings, LintContext, Rule};
use crate::name;
use crate::object::ObjectId;
use crate::plan::Plan;
use crate::step::{Delete, ExecRequest, Expect, Finalizer, Request, Step};

pub(super) fn check(plan: &Plan, context: &LintContext, found: &mut Findings) {
    check_order(&plan.steps, found);
    for step in &plan.steps {
        match step {
            Step::Apply(apply) => {
                if let Expect::Uid(uid) = &apply.expect {
                    check_uid(uid, &apply.id, found);
                }
                check_object(&apply.id, &apply.intent, found);
            }
            Step::CreateOnce(create) => check_object(&create.id, &create.template, found),
            Step::Derive(derive) => {
                check_uid(&derive.uid, &derive.id, found);
                check_object(&derive.id, &derive.intent, found);
            }
            Step::Delete(delete) => check_delete(delete, context, found),
            Step::Finalizer(Finalizer::Add(name) | Finalizer::Remove(name)) => {
                report(name::label_key(name), "finalizer", found);
            }
            Step::Act(action) => {
                let listed = context.ladder.rungs.iter().any(|r| r.gates.contains(&action.gate));
                if !listed {
                    let detail = format!("{} goes through gate {:?}", action.name, action.gate);
                    found.add(Rule::GateIsListed, detail);
                }
                if let Request::Exec(exec) = &action.request {
                    check_exec(exec, found);
                }
            }
        }
    }
}

/// The object that a step writes; `None` for the resource itself and the world outside.
fn object_of(step: &Step) -> Option<&ObjectId> {
    match step {
        Step::Apply(apply) => Some(&apply.id),
        Step::CreateOnce(create) => Some(&create.id),
        Step::Derive(derive) => Some(&derive.id),
        Step::Delete(delete) => Some(&delete.id),
        Step::Finalizer(_) | Step::Act(_) => None,
    }
}

fn check_order(steps: &[Step], found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for id in steps.iter().filter_map(object_of) {
        if !seen.insert(id) {
            found.add(Rule::OneStepAnObject, format!("{id} is written twice"));
        }
    }
    let removal = steps.iter().position(|s| matches!(s, Step::Finalizer(Finalizer::Remove(_))));
    if removal.is_some_and(|place| place + 1 < steps.len()) {
        found.add(Rule::FinalizerGoesLast, "a step follows the removal of the finalizer");
    }
}

fn check_delete(delete: &Delete, context: &LintContext, found: &mut Findings) {
    check_uid(&delete.uid, &delete.id, found);
    let kind = delete.id.kind;
    let holds_data = kind.group.is_empty()
        && matches!(
            kind.kind,
            "PersistentVolumeClaim" | "PersistentVolume" | "Secret" | "Namespace"
        );
    if holds_data && !context.allow_data_deletes {
        found.add(Rule::DataIsKept, format!("deletes {} without the spec asking", delete.id));
    }
}

/// A command names the incarnation of its pod, a program, and its end.
fn check_exec(exec: &ExecRequest, found: &mut Findings) {
    check_uid(&exec.uid, &exec.pod, found);
    report(name::object_name(exec.pod.kind, &exec.pod.name), &exec.pod.to_string(), found);
    report(name::dns_label(&exec.container), &format!("container of {}", exec.pod), found);
    if exec.command.is_empty() || exec.input.is_empty() || exec.timeout_seconds == 0 {
        let detail = format!("the command in {} has no program, no input or no time", exec.pod);
        found.add(Rule::CommandEnds, detail);
    }
}

fn check_uid(uid: &str, id: &ObjectId, found: &mut Findings) {
    if uid.is_empty() {
        found.add(Rule::IncarnationIsNamed, format!("the step about {id} names no uid"));
    }
}

/// The object is what the step says it is, and all of its names and labels are valid.
fn check_object(id: &ObjectId, object: &Value, found: &mut Findings) {
    report(name::object_name(id.kind, &id.name), &id.to_string(), found);
    if id.kind.namespaced {
        report(name::dns_label(&id.namespace), &format!("namespace of {id}"), found);
    }
    let namespace = id.kind.namespaced.then_some(id.namespace.as_str());
    let identity = [
        ("/apiVersion", Some(id.kind.api_version())),
        ("/kind", Some(id.kind.kind.to_owned())),
        ("/metadata/name", Some(id.name.clone())),
        ("/metadata/namespace", namespace.map(str::to_owned)),
    ];
    for (pointer, expected) in identity {
        let declared = object.pointer(pointer).and_then(Value::as_str);
        if declared != expected.as_deref() {
            let detail = format!("{id} declares {pointer} as {declared:?}");
            found.add(Rule::NamesAreValid, detail);
        }
    }
    for pointer in ["/metadata/labels", "/spec/template/metadata/labels"] {
        check_labels(id, object, pointer, found);
    }
    check_selector(id, object, found);
}

fn labels<'a>(object: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

fn check_labels(id: &ObjectId, object: &Value, pointer: &str, found: &mut Findings) {
    for (key, value) in labels(object, pointer).into_iter().flatten() {
        report(name::label_key(key), &id.to_string(), found);
        match value.as_str() {
            Some(text) => report(name::label_value(text), &format!("{id}, label {key}"), found),
            None => found.add(Rule::NamesAreValid, format!("{id}, label {key}: not a text")),
        }
    }
}

fn check_selector(id: &ObjectId, object: &Value, found: &mut Findings) {
    let Some(selector) = labels(object, "/spec/selector/matchLabels") else { return };
    let Some(template) = object.pointer("/spec/template") else { return };
    let empty = Map::new();
    let carried = labels(template, "/metadata/labels").unwrap_or(&empty);
    for (key, value) in selector {
        if carried.get(key) != Some(value) {
            let detail = format!("{id} selects {key}={value}, which its template does not carry");
            found.add(Rule::SelectorMatchesTemplate, detail);
        }
    }
}

fn report(result: Result<(), name::NameError>, about: &str, found: &mut Findings) {
    if let Err(error) = result {
        found.add(Rule::NamesAreValid, format!("{about}: {error}"));
    }
}
