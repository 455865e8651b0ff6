//! The text of plans, as people and snapshots see it.

use insta::assert_snapshot;
use phased::fact::{Access, Password, Reach, SecretKey, SqlPiece, SqlRequest, SqlText};
use phased::render::{text, text_from};
use phased::step::{
    Action, Apply, CreateOnce, Delete, Derive, Expect, Finalizer, Generate, Propagation, Request,
    TextPiece,
};
use phased::{
    EventNote, KindRef, Note, ObjectId, Plan, Question, Reason, StatusWrite, Step, Transition, Wake,
};
use serde_json::json;

static DEPENDENCY_DOWN: Reason =
    Reason { name: "ExternalDependencyUnavailable", meaning: "m", remedy: "r" };

fn id(kind: &'static str, name: &str) -> ObjectId {
    let kind = KindRef { group: "", version: "v1", kind, plural: "things", namespaced: true };
    ObjectId::new(kind, "shop", name)
}

fn key(name: &str) -> SecretKey {
    SecretKey { namespace: "shop".into(), name: name.into(), key: "password".into() }
}

fn request(access: Access, statements: Vec<SqlText>) -> SqlRequest {
    SqlRequest {
        host: "orders.shop.svc".into(),
        port: 5432,
        user: "postgres".into(),
        password: Password::Secret(key("orders-superuser")),
        database: "app".into(),
        access,
        statements,
        timeout_seconds: 3,
    }
}

fn questions() -> Vec<Question> {
    let wrong = SqlRequest { password: Password::Wrong, ..request(Access::Probe, Vec::new()) };
    vec![
        Question::Object(id("Service", "orders")),
        Question::Events { namespace: "shop".into(), about: vec!["u1".into(), "u2".into()] },
        Question::Reach(Reach::Tcp { host: "cache".into(), port: 6379, timeout_seconds: 2 }),
        Question::Reach(Reach::Http { url: "https://auth/health".into(), timeout_seconds: 2 }),
        Question::Sql(request(Access::ReadOnly, vec![SqlText::plain("SELECT 1;\nSELECT 2")])),
        Question::Sql(wrong),
    ]
}

fn role() -> Step {
    let statement = SqlText(vec![
        SqlPiece::Text("ALTER ROLE \"app\" PASSWORD ".into()),
        SqlPiece::Verifier(key("orders-credentials")),
    ]);
    Step::Act(Action {
        name: "AlterRole",
        gate: "server-ready",
        request: Request::Sql(request(Access::Change, vec![statement, SqlText::plain("SELECT 1")])),
        why: "the login was refused".into(),
    })
}

fn steps() -> Vec<Step> {
    let apply = |name: &str, expect, why: &str| {
        let intent = json!({"spec": {"never": "shown"}});
        Step::Apply(Apply { id: id("Service", name), intent, expect, why: why.into() })
    };
    let delete = |propagation, resource_version| {
        Step::Delete(Delete {
            id: id("Pod", "orders-0"),
            uid: "u3".into(),
            resource_version,
            propagation,
            why: "its revision is superseded".into(),
        })
    };
    vec![
        Step::Finalizer(Finalizer::Add("example.com/finalizer")),
        Step::CreateOnce(CreateOnce {
            id: id("Secret", "orders-credentials"),
            template: json!({}),
            generate: vec![
                Generate::Password { key: "password".into(), length: 32 },
                Generate::Text {
                    key: "uri".into(),
                    pieces: vec![TextPiece::Generated("password".into())],
                },
            ],
            why: "missing".into(),
        }),
        Step::Derive(Derive {
            id: id("Secret", "orders-superuser"),
            uid: "u2".into(),
            keys: vec![("uri".into(), vec![TextPiece::Plain("x".into())])],
            intent: json!({}),
            why: "uri is missing".into(),
        }),
        apply("orders", Expect::Absent, "missing"),
        apply("orders-ro", Expect::Uid("u1".into()), ".spec.type is to change"),
        delete(Propagation::Background, Some("42".into())),
        delete(Propagation::Orphan, None),
        role(),
        Step::Finalizer(Finalizer::Remove("example.com/finalizer")),
    ]
}

fn plan() -> Plan {
    Plan {
        asks: questions(),
        steps: steps(),
        status: Some(StatusWrite {
            status: json!({
                "phase": "Provisioning", "ready": false, "replicas": 0,
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "ExternalDependencyUnavailable",
                        "message": "cache:6379 refuses connections"},
                    {"type": "Progressing", "status": "True", "reason": "Waiting", "message": ""}
                ]
            }),
            uid: "u".into(),
            resource_version: "7".into(),
        }),
        transition: Some(Transition {
            from: String::new(),
            to: "Provisioning".into(),
            reason: "ExternalDependencyUnavailable",
        }),
        events: vec![EventNote {
            warning: true,
            reason: "ExternalDependencyUnavailable",
            action: "Provision",
            message: "cache:6379 refuses connections".into(),
        }],
        notes: vec![
            Note {
                about: None,
                reason: &DEPENDENCY_DOWN,
                message: "cache:6379 refuses connections".into(),
            },
            Note {
                about: Some(id("StatefulSet", "orders")),
                reason: &DEPENDENCY_DOWN,
                message: "held until the dependency answers".into(),
            },
        ],
        wake: Wake::At("2026-01-01T00:00:30Z".parse().expect("a time")),
        stands: None,
    }
}

#[test]
fn a_full_plan_shows_everything_but_what_is_sent() {
    assert_snapshot!(text(&plan()), @r#"
    questions:
      - read Service shop/orders
      - read Events in shop about u1, u2
      - connect to cache:6379 within 2 s
      - GET https://auth/health within 2 s
      - SQL at orders.shop.svc:5432/app as postgres with password of Secret shop/orders-superuser key password, read only, within 3 s
          SELECT 1;
          SELECT 2
      - SQL at orders.shop.svc:5432/app as postgres with a wrong password, rolled back, within 3 s
    steps:
      - add finalizer example.com/finalizer
      - create once Secret shop/orders-credentials making up password, uri: missing
      - derive uri of Secret shop/orders-superuser (uid u2): uri is missing
      - create Service shop/orders: missing
      - apply Service shop/orders-ro (uid u1): .spec.type is to change
      - delete Pod shop/orders-0 (uid u3, resourceVersion 42; dependants afterwards): its revision is superseded
      - delete Pod shop/orders-0 (uid u3; dependants stay): its revision is superseded
      - do AlterRole (gate server-ready): the login was refused
        SQL at orders.shop.svc:5432/app as postgres with password of Secret shop/orders-superuser key password, takes effect, within 3 s
          ALTER ROLE "app" PASSWORD <verifier of Secret shop/orders-credentials key password>
          SELECT 1
      - remove finalizer example.com/finalizer
    status:
      - condition Ready=False ExternalDependencyUnavailable: cache:6379 refuses connections
      - condition Progressing=True Waiting
      - phase: Provisioning
      - ready: false
      - replicas: 0
    moves: nothing -> Provisioning (ExternalDependencyUnavailable)
    events:
      - Warning ExternalDependencyUnavailable (Provision): cache:6379 refuses connections
    notes:
      - ExternalDependencyUnavailable: cache:6379 refuses connections
      - ExternalDependencyUnavailable (StatefulSet shop/orders): held until the dependency answers
    wakes: at 2026-01-01T00:00:30Z
    "#);
}

#[test]
fn an_idle_plan_is_one_line() {
    assert_snapshot!(text(&Plan::idle()), @"wakes: on change");
}

#[test]
fn the_wake_up_can_be_counted_from_now() {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let wake_of =
        |plan: &Plan| text_from(plan, now).lines().last().map(str::to_owned).unwrap_or_default();
    assert_eq!(wake_of(&plan()), "wakes: in 30 s");
    let past = Wake::At("2025-12-31T23:59:00Z".parse().expect("a time"));
    assert_eq!(wake_of(&Plan { wake: past, ..plan() }), "wakes: in 0 s");
    assert_eq!(wake_of(&Plan { wake: Wake::Now, ..plan() }), "wakes: at once");
    assert_eq!(wake_of(&Plan::idle()), "wakes: on change");
}

#[test]
fn a_move_names_both_phases() {
    let mut plan = plan();
    plan.transition.as_mut().expect("a move").from = "Pending".into();
    let text = text(&plan);
    let expected = "moves: Pending -> Provisioning (ExternalDependencyUnavailable)";
    assert!(text.lines().any(|line| line == expected), "{text}");
}
