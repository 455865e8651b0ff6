//! Each invariant with a plan that keeps it and plans that break it.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use phased::fact::{Access, Password, SecretKey, SqlRequest, SqlText};
use phased::ladder::{LadderDoc, RungDoc};
use phased::lint::{Hidden, LintContext, Rule, check};
use phased::step::{
    Action, Apply, CreateOnce, Delete, Derive, Expect, Finalizer, Generate, Propagation, Request,
};
use phased::{
    EventNote, KindRef, Note, ObjectId, Plan, Question, Reason, StatusWrite, Step, Transition, Wake,
};
use serde_json::{Value, json};

static READY: Reason = Reason { name: "AllGood", meaning: "m", remedy: "r" };
static WAITING: Reason = Reason { name: "Rolling", meaning: "m", remedy: "r" };
static REFUSED: Reason = Reason { name: "ShrinkRefused", meaning: "m", remedy: "r" };
static UNKNOWN: Reason = Reason { name: "NobodyKnows", meaning: "m", remedy: "r" };

static RUNG_REASONS: &[&Reason] = &[&WAITING, &REFUSED];
static TOP_REASONS: &[&Reason] = &[&READY];
const SECRET_VALUE: &str = "hunter2-hunter2-hunter2";

fn context() -> LintContext {
    let rung = |phase, gates, reasons| RungDoc {
        phase,
        leaves_when: "",
        effects: &[],
        gates,
        reasons,
        wait: "",
        tends: false,
    };
    LintContext::new(LadderDoc {
        kind: "Thing",
        rungs: vec![
            rung("Deploying", &["rolled-out"], RUNG_REASONS),
            rung("Ready", &[], TOP_REASONS),
        ],
        aside: vec![("Failed", "")],
        reasons: vec![&READY, &WAITING, &REFUSED],
        conditions: vec![("Ready", ""), ("Progressing", ""), ("Degraded", "")],
        historical: vec![],
    })
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "text",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1})
}

fn status(phase: &str, ready: bool, reason: &str) -> StatusWrite {
    let truth = if ready { "True" } else { "False" };
    StatusWrite {
        status: json!({"phase": phase, "ready": ready,
            "conditions": [condition("Ready", truth, reason)]}),
        uid: "u".into(),
        resource_version: "1".into(),
    }
}

fn kind(group: &'static str, kind: &'static str) -> KindRef {
    KindRef { group, version: "v1", kind, plural: "things", namespaced: true }
}

fn id(of: KindRef, name: &str) -> ObjectId {
    ObjectId::new(of, "ns", name)
}

fn object(id: &ObjectId, more: Value) -> Value {
    let mut object = json!({"apiVersion": id.kind.api_version(), "kind": id.kind.kind,
        "metadata": {"name": id.name, "namespace": id.namespace, "labels": {"app": "x"}}});
    let fields = more.as_object().expect("an object").clone();
    object.as_object_mut().expect("an object").extend(fields);
    object
}

fn apply(id: ObjectId, more: Value) -> Step {
    let intent = object(&id, more);
    Step::Apply(Apply { id, intent, expect: Expect::Absent, why: "missing".into() })
}

fn delete(id: ObjectId) -> Step {
    Step::Delete(Delete {
        id,
        uid: "u1".into(),
        resource_version: None,
        propagation: Propagation::Background,
        why: "not wanted".into(),
    })
}

fn stateful_set(labels: Value) -> Step {
    apply(
        id(kind("apps", "StatefulSet"), "db"),
        json!({"spec": {"selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": labels}}}}),
    )
}

fn act(gate: &'static str) -> Step {
    let password = SecretKey { namespace: "ns".into(), name: "s".into(), key: "k".into() };
    Step::Act(Action {
        name: "CreateRole",
        gate,
        request: Request::Sql(SqlRequest {
            host: "h".into(),
            port: 5432,
            user: "u".into(),
            password: Password::Secret(password),
            database: "d".into(),
            access: Access::Change,
            statements: vec![SqlText::plain("SELECT 1")],
            timeout_seconds: 3,
        }),
        why: "absent".into(),
    })
}
fn create_once() -> Step {
    let id = id(kind("", "Secret"), "credentials");
    Step::CreateOnce(CreateOnce {
        template: object(&id, json!({"type": "Opaque"})),
        id,
        generate: vec![Generate::Password { key: "password".into(), length: 24 }],
        why: "missing".into(),
    })
}

fn derive() -> Derive {
    let id = id(kind("", "Secret"), "other");
    Derive {
        intent: object(&id, json!({})),
        id,
        uid: "u2".into(),
        keys: vec![("uri".into(), Vec::new())],
        why: "uri is missing".into(),
    }
}

/// A plan in the middle of a roll-out that uses every kind of step and breaks no rule.
fn sound() -> Plan {
    Plan {
        steps: vec![
            Step::Finalizer(Finalizer::Add("example.com/finalizer")),
            create_once(),
            Step::Derive(derive()),
            stateful_set(json!({"app": "x", "more": "y"})),
            delete(id(kind("", "Service"), "old")),
            act("rolled-out"),
        ],
        status: Some(status("Deploying", false, "Rolling")),
        transition: Some(Transition {
            from: String::new(),
            to: "Deploying".into(),
            reason: "Rolling",
        }),
        events: vec![EventNote {
            warning: false,
            reason: "Rolling",
            action: "Reconcile",
            message: "m".into(),
        }],
        notes: vec![note(&WAITING)],
        wake: Wake::Now,
        ..Plan::idle()
    }
}

fn note(reason: &'static Reason) -> Note {
    Note { about: None, reason, message: "m".into() }
}

fn rules(plan: &Plan, context: &LintContext) -> Vec<Rule> {
    let found = check(plan, context);
    assert!(
        found.iter().all(|v| !v.to_string().contains(SECRET_VALUE)),
        "a violation must not tell the secret"
    );
    let mut rules: Vec<Rule> = found.into_iter().map(|v| v.rule).collect();
    rules.dedup();
    rules
}

/// Breaks the sound plan in one way and expects just that rule.
fn breaks(rule: Rule, spoil: impl FnOnce(&mut Plan)) {
    let mut plan = sound();
    spoil(&mut plan);
    assert_eq!(rules(&plan, &context()), [rule], "{:?}", check(&plan, &context()));
}

/// Changes the sound plan in a way that is allowed.
fn allows(change: impl FnOnce(&mut Plan, &mut LintContext)) {
    let (mut plan, mut context) = (sound(), context());
    change(&mut plan, &mut context);
    assert_eq!(check(&plan, &context), []);
}

/// Makes the plan one of a settled resource.
fn settle(plan: &mut Plan) {
    plan.status = Some(status("Ready", true, "AllGood"));
    plan.transition = None;
    plan.notes = Vec::new();
    plan.wake = Wake::OnChange;
}

fn status_of(plan: &mut Plan) -> &mut Value {
    &mut plan.status.as_mut().expect("a status").status
}

#[test]
fn a_sound_plan_breaks_nothing() {
    allows(|_, _| {});
    allows(|plan, _| settle(plan));
    assert_eq!(check(&Plan::idle(), &context()), []);
}

#[test]
fn a_wait_has_a_wake_up() {
    breaks(Rule::WaitExplainsItself, |plan| plan.wake = Wake::OnChange);
    allows(|plan, _| plan.wake = Wake::At("2026-01-01T00:00:00Z".parse().expect("a time")));
}

#[test]
fn a_wait_for_a_person_needs_no_time() {
    allows(|plan, context| {
        plan.wake = Wake::OnChange;
        context.blocking = vec!["Rolling"];
    });
    allows(|plan, _| {
        plan.wake = Wake::OnChange;
        let conditions = status_of(plan)["conditions"].as_array_mut().expect("conditions");
        conditions.push(condition("Progressing", "False", "Rolling"));
    });
}

#[test]
fn a_promised_retry_is_woken_for() {
    let failed = |plan: &mut Plan| {
        plan.status = Some(status("Failed", false, "Rolling"));
        plan.transition = None;
        let status = status_of(plan);
        status["retry"] = json!({"nextTry": "2026-01-01T00:01:00Z"});
        let conditions = status["conditions"].as_array_mut().expect("conditions");
        conditions.push(condition("Progressing", "False", "Rolling"));
    };
    breaks(Rule::WaitExplainsItself, |plan| {
        failed(plan);
        plan.wake = Wake::OnChange;
    });
    allows(|plan, _| {
        failed(plan);
        plan.wake = Wake::At("2026-01-01T00:01:00Z".parse().expect("a time"));
    });
}

#[test]
fn a_wait_is_judged_by_the_stored_status_where_none_is_written() {
    let mut context = context();
    context.stored_status = Some(status("Deploying", false, "Rolling").status);
    let waiting = Plan { notes: vec![note(&WAITING)], ..Plan::idle() };
    assert_eq!(rules(&waiting, &context), [Rule::WaitExplainsItself]);
    let asking =
        Plan { asks: vec![Question::Object(id(kind("", "Service"), "x"))], ..waiting.clone() };
    assert_eq!(check(&asking, &context), []);
    context.stored_status = Some(status("Ready", true, "AllGood").status);
    assert_eq!(check(&Plan::idle(), &context), []);
}

#[test]
fn a_wait_says_why() {
    let mut context = context();
    context.stored_status = Some(json!({"phase": "Deploying"}));
    let mute = Plan { wake: Wake::Now, ..Plan::idle() };
    assert_eq!(rules(&mute, &context), [Rule::WaitExplainsItself]);
}

#[test]
fn data_is_deleted_only_when_the_spec_asks() {
    for data in ["PersistentVolumeClaim", "PersistentVolume", "Secret", "Namespace"] {
        let step = delete(id(kind("", data), "precious"));
        breaks(Rule::DataIsKept, |plan| plan.steps.push(step.clone()));
        allows(|plan, context| {
            plan.steps.push(step);
            context.allow_data_deletes = true;
        });
    }
}

#[test]
fn incarnations_are_named() {
    breaks(Rule::IncarnationIsNamed, |plan| {
        let Step::Delete(delete) = &mut plan.steps[4] else { panic!("a delete") };
        delete.uid = String::new();
    });
    breaks(Rule::IncarnationIsNamed, |plan| {
        let Step::Apply(apply) = &mut plan.steps[3] else { panic!("an apply") };
        apply.expect = Expect::Uid(String::new());
    });
    breaks(Rule::IncarnationIsNamed, |plan| {
        plan.steps[2] = Step::Derive(Derive { uid: String::new(), ..derive() });
    });
    for spoil in [
        |write: &mut StatusWrite| write.uid = String::new(),
        |write: &mut StatusWrite| write.resource_version = String::new(),
    ] {
        breaks(Rule::IncarnationIsNamed, |plan| spoil(plan.status.as_mut().expect("a status")));
    }
}

#[test]
fn names_and_labels_are_valid() {
    let service = kind("", "Service");
    let steps = [
        apply(id(service, "9lives"), json!({})),
        apply(id(service, &"x".repeat(64)), json!({})),
        apply(id(kind("apps", "StatefulSet"), &"x".repeat(53)), json!({})),
        apply(ObjectId::new(service, "", "x"), json!({})),
        apply(id(service, "x"), json!({"kind": "Secret"})),
        apply(id(service, "x"), json!({"metadata": {"name": "y", "namespace": "ns"}})),
        apply(id(service, "x"), json!({"metadata": {"name": "x", "namespace": "other"}})),
        apply(
            id(service, "x"),
            json!({"metadata": {"name": "x", "namespace": "ns", "labels": {"a": "b".repeat(64)}}}),
        ),
        apply(
            id(service, "x"),
            json!({"metadata": {"name": "x", "namespace": "ns", "labels": {"a b": "c"}}}),
        ),
        apply(
            id(service, "x"),
            json!({"metadata": {"name": "x", "namespace": "ns", "labels": {"a": 1}}}),
        ),
        apply(
            id(service, "x"),
            json!({"spec": {"template": {"metadata": {"labels": {"a": "-"}}}}}),
        ),
        Step::Finalizer(Finalizer::Add("not a key")),
    ];
    for step in steps {
        breaks(Rule::NamesAreValid, |plan| plan.steps.push(step));
    }
}

#[test]
fn a_selector_matches_its_template() {
    for labels in [json!({}), json!({"app": "y"})] {
        breaks(Rule::SelectorMatchesTemplate, |plan| plan.steps[3] = stateful_set(labels));
    }
}

#[test]
fn one_object_is_written_once() {
    breaks(Rule::OneStepAnObject, |plan| plan.steps.push(create_once()));
    breaks(Rule::OneStepAnObject, |plan| {
        plan.steps.push(apply(id(kind("", "Service"), "old"), json!({})));
    });
}

#[test]
fn nothing_follows_the_removal_of_the_finalizer() {
    breaks(Rule::FinalizerGoesLast, |plan| {
        plan.steps.insert(5, Step::Finalizer(Finalizer::Remove("example.com/finalizer")));
    });
    allows(|plan, _| {
        plan.steps.push(Step::Finalizer(Finalizer::Remove("example.com/finalizer")));
    });
}

#[test]
fn an_action_goes_through_a_listed_gate() {
    breaks(Rule::GateIsListed, |plan| plan.steps[5] = act("back-door"));
}

#[test]
fn phase_ready_and_conditions_agree() {
    let stories: [fn(&mut Plan); 5] = [
        |plan| status_of(plan)["ready"] = json!(true),
        |plan| status_of(plan)["conditions"][0]["status"] = json!("True"),
        |plan| {
            status_of(plan)["phase"] = json!("Ready");
            plan.transition = None;
        },
        |plan| {
            status_of(plan)["phase"] = json!("Dreaming");
            plan.transition = None;
        },
        |plan| plan.transition.as_mut().expect("a move").to = "Failed".into(),
    ];
    for story in stories {
        let mut plan = sound();
        story(&mut plan);
        assert!(rules(&plan, &context()).contains(&Rule::StatusIsTruthful), "{plan:?}");
    }
    breaks(Rule::StatusIsTruthful, |plan| plan.status = None);
    breaks(Rule::StatusIsTruthful, |plan| {
        settle(plan);
        status_of(plan)["phase"] = json!("Failed");
    });
}

#[test]
fn a_ready_resource_has_no_rung_unmet() {
    breaks(Rule::StatusIsTruthful, |plan| {
        settle(plan);
        plan.notes = vec![note(&REFUSED)];
    });
    allows(|plan, _| {
        settle(plan);
        plan.notes = vec![note(&REFUSED)];
        let conditions = status_of(plan)["conditions"].as_array_mut().expect("conditions");
        conditions.push(condition("Degraded", "True", "ShrinkRefused"));
    });
}

#[test]
fn conditions_have_the_standard_shape() {
    let faults = [
        ("status", json!("true")),
        ("message", json!(null)),
        ("message", json!("x".repeat(32_769))),
        ("lastTransitionTime", json!("yesterday")),
        ("lastTransitionTime", json!(null)),
        ("observedGeneration", json!("1")),
    ];
    for (field, value) in faults {
        breaks(Rule::ConditionsAreWellFormed, |plan| {
            status_of(plan)["conditions"][0][field] = value;
        });
    }
    for reason in ["", "two words", "9Lives", "Ends:"] {
        let mut plan = sound();
        status_of(&mut plan)["conditions"][0]["reason"] = json!(reason);
        assert!(rules(&plan, &context()).contains(&Rule::ConditionsAreWellFormed), "{reason:?}");
    }
    breaks(Rule::ConditionsAreWellFormed, |plan| {
        let conditions = status_of(plan)["conditions"].as_array_mut().expect("conditions");
        conditions.push(condition("Ready", "False", "Rolling"));
    });
}

#[test]
fn reasons_and_condition_types_are_documented() {
    breaks(Rule::ReasonsAreDocumented, |plan| plan.notes.push(note(&UNKNOWN)));
    breaks(Rule::ReasonsAreDocumented, |plan| plan.events[0].reason = "NobodyKnows");
    breaks(Rule::ReasonsAreDocumented, |plan| {
        plan.transition.as_mut().expect("a move").reason = "NobodyKnows";
    });
    for (kind, reason) in [("Progressing", "NobodyKnows"), ("Surprise", "Rolling")] {
        breaks(Rule::ReasonsAreDocumented, |plan| {
            let conditions = status_of(plan)["conditions"].as_array_mut().expect("conditions");
            conditions.push(condition(kind, "True", reason));
        });
    }
}

#[test]
fn no_secret_is_told() {
    // base64 of `SECRET_VALUE` alone, and after one and two other bytes (`u:`, `postgres://u:`).
    let encoded = [
        "aHVudGVyMi1odW50ZXIyLWh1bnRlcjI=",
        "dTpodW50ZXIyLWh1bnRlcjItaHVudGVyMg==",
        "cG9zdGdyZXM6Ly91Omh1bnRlcjItaHVudGVyMi1odW50ZXIyQGg=",
    ];
    let leaks: [fn(&mut Plan); 4] = [
        |plan| plan.notes[0].message = format!("password is {SECRET_VALUE}"),
        |plan| plan.events[0].message = SECRET_VALUE.into(),
        |plan| status_of(plan)["conditions"][0]["message"] = json!(SECRET_VALUE),
        |plan| {
            let Step::Act(Action { request, .. }) = &mut plan.steps[5] else { panic!() };
            let Request::Sql(sql) = request else { panic!() };
            sql.statements = vec![SqlText::plain(format!("x '{SECRET_VALUE}'"))];
        },
    ];
    let mut context = context();
    context.secrets = vec![Hidden::new("another-secret"), Hidden::new(SECRET_VALUE)];
    assert_eq!(check(&sound(), &context), []);
    for (number, leak) in leaks.iter().enumerate() {
        let mut plan = sound();
        leak(&mut plan);
        assert_eq!(rules(&plan, &context), [Rule::NoSecretIsTold], "leak {number}");
    }
    for text in encoded {
        let mut plan = sound();
        plan.steps.push(apply(id(kind("", "ConfigMap"), "c"), json!({"data": {"a": text}})));
        assert_eq!(rules(&plan, &context), [Rule::NoSecretIsTold], "{text}");
    }
    assert!(!format!("{context:?}").contains(SECRET_VALUE));
}

#[test]
fn an_escaped_secret_is_found() {
    let mut context = context();
    context.secrets = vec![Hidden::new("with \"quotes\" and \\")];
    let mut plan = sound();
    plan.notes[0].message = "with \"quotes\" and \\".into();
    assert_eq!(rules(&plan, &context), [Rule::NoSecretIsTold]);
    assert_eq!(check(&plan, &context).len(), 2, "in the text and in the Debug form");
}
