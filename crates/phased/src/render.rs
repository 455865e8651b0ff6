//! A plan as stable text, without secrets.
//!
//! The same plan gives the same text in every process; tests and `steadfast plan` rest on it.
//! Must not print what is sent (a template may hold configuration of any size) nor read a clock.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::Value;

use crate::fact::{
    Access, Password, Question, Reach, SecretKey, SqlPiece, SqlRequest, SqlText, ZooKeeperCall,
    ZooKeeperRequest,
};
use crate::plan::{EventNote, Note, Plan};
use crate::step::{
    Action, Apply, CreateOnce, Delete, Derive, ExecRequest, Expect, Finalizer, Generate,
    Propagation, Request, Step,
};
use crate::wake::Wake;

/// The plan as text; the wake-up as a point in time.
pub fn text(plan: &Plan) -> String {
    render(plan, wake(&plan.wake))
}

/// The plan as text; the wake-up counted from `now`, for people.
pub fn text_from(plan: &Plan, now: Timestamp) -> String {
    let wake = match &plan.wake {
        Wake::At(time) => format!("in {} s", time.duration_since(now).as_secs().max(0)),
        other => wake(other),
    };
    render(plan, wake)
}

/// One step in one line, such as `create Service shop/orders: missing`.
pub fn step(step: &Step) -> String {
    match step {
        Step::Apply(apply) => apply_line(apply),
        Step::CreateOnce(create) => create_line(create),
        Step::Derive(derive) => derive_line(derive),
        Step::Delete(delete) => delete_line(delete),
        Step::Finalizer(Finalizer::Add(name)) => format!("add finalizer {name}"),
        Step::Finalizer(Finalizer::Remove(name)) => format!("remove finalizer {name}"),
        Step::Act(action) => action_lines(action),
    }
}

/// A question in words; SQL follows on lines of its own.
pub fn question(question: &Question) -> String {
    match question {
        Question::Object(id) => format!("read {id}"),
        Question::Events { namespace, about } => {
            format!("read Events in {namespace} about {}", about.join(", "))
        }
        Question::Reach(Reach::Tcp { host, port, timeout_seconds }) => {
            format!("connect to {host}:{port} within {timeout_seconds} s")
        }
        Question::Reach(Reach::Http { url, timeout_seconds }) => {
            format!("GET {url} within {timeout_seconds} s")
        }
        Question::Sql(request) => sql(request),
        Question::Word(request) => format!(
            "say {} to {}:{} within {} s",
            request.word, request.host, request.port, request.timeout_seconds
        ),
        Question::ZooKeeper(request) => zookeeper(request),
    }
}

fn render(plan: &Plan, wake: String) -> String {
    let mut out = String::new();
    section(&mut out, "questions", plan.asks.iter().map(question));
    section(&mut out, "steps", plan.steps.iter().map(step));
    if let Some(write) = &plan.status {
        section(&mut out, "status", status_lines(&write.status).into_iter());
    }
    if let Some(t) = &plan.transition {
        let from = if t.from.is_empty() { "nothing" } else { &t.from };
        let _ = writeln!(out, "moves: {from} -> {} ({})", t.to, t.reason);
    }
    section(&mut out, "events", plan.events.iter().map(event));
    section(&mut out, "notes", plan.notes.iter().map(note));
    let _ = writeln!(out, "wakes: {wake}");
    out
}

/// A heading and its items; nothing when there are none. Further lines of an item are indented.
fn section(out: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "{title}:");
    for item in items {
        let _ = writeln!(out, "  - {}", item.replace('\n', "\n    "));
    }
}

fn wake(wake: &Wake) -> String {
    match wake {
        Wake::Now => "at once".to_owned(),
        Wake::At(time) => format!("at {time}"),
        Wake::OnChange => "on change".to_owned(),
    }
}

fn apply_line(apply: &Apply) -> String {
    match &apply.expect {
        Expect::Absent => format!("create {}: {}", apply.id, apply.why),
        Expect::Uid(uid) => format!("apply {} (uid {uid}): {}", apply.id, apply.why),
    }
}

fn create_line(create: &CreateOnce) -> String {
    let keys: Vec<&str> = create
        .generate
        .iter()
        .map(|generate| match generate {
            Generate::Password { key, .. } | Generate::Text { key, .. } => key.as_str(),
        })
        .collect();
    let made =
        if keys.is_empty() { String::new() } else { format!(" making up {}", keys.join(", ")) };
    format!("create once {}{made}: {}", create.id, create.why)
}

fn derive_line(derive: &Derive) -> String {
    let keys: Vec<&str> = derive.keys.iter().map(|(key, _)| key.as_str()).collect();
    format!("derive {} of {} (uid {}): {}", keys.join(", "), derive.id, derive.uid, derive.why)
}

fn delete_line(delete: &Delete) -> String {
    let propagation = match delete.propagation {
        Propagation::Background => "dependants afterwards",
        Propagation::Foreground => "dependants first",
        Propagation::Orphan => "dependants stay",
    };
    let version = match &delete.resource_version {
        Some(version) => format!(", resourceVersion {version}"),
        None => String::new(),
    };
    format!("delete {} (uid {}{version}; {propagation}): {}", delete.id, delete.uid, delete.why)
}

fn action_lines(action: &Action) -> String {
    let request = match &action.request {
        Request::Sql(request) => sql(request),
        Request::ZooKeeper(request) => zookeeper(request),
        Request::Exec(request) => exec(request),
    };
    format!("do {} (gate {}): {}\n{request}", action.name, action.gate, action.why)
}

fn zookeeper(request: &ZooKeeperRequest) -> String {
    let mut out = format!(
        "ZooKeeper at {}:{} within {} s",
        request.host, request.port, request.timeout_seconds
    );
    for call in &request.calls {
        let line = match call {
            ZooKeeperCall::Read { path } => format!("read {path}"),
            ZooKeeperCall::Create { path, data } => format!("create {path} {data:?}"),
            ZooKeeperCall::Write { path, data, version } => {
                format!("write {path} {data:?} over version {version}")
            }
            ZooKeeperCall::Reconfigure { joining, leaving, from } => {
                format!("reconfigure version {from:x}, joining {joining:?}, leaving {leaving:?}")
            }
        };
        let _ = write!(out, "\n  {line}");
    }
    out
}

fn sql(request: &SqlRequest) -> String {
    let access = match request.access {
        Access::ReadOnly => "read only",
        Access::Probe => "rolled back",
        Access::Change => "takes effect",
    };
    let password = match &request.password {
        Password::Secret(key) => format!("password of {}", secret_key(key)),
        Password::Wrong => "a wrong password".to_owned(),
    };
    let mut out = format!(
        "SQL at {}:{}/{} as {} with {password}, {access}, within {} s",
        request.host, request.port, request.database, request.user, request.timeout_seconds
    );
    lines(&mut out, &request.statements);
    out
}

fn exec(request: &ExecRequest) -> String {
    let mut out = format!(
        "exec in {} (uid {}), container {}, within {} s: {}",
        request.pod,
        request.uid,
        request.container,
        request.timeout_seconds,
        request.command.join(" ")
    );
    lines(&mut out, &request.input);
    out
}

/// Each text on a line of its own.
fn lines(out: &mut String, texts: &[SqlText]) {
    for text in texts {
        let _ = write!(out, "\n  {}", sql_text(text).replace('\n', "\n  "));
    }
}

/// The statement with a placeholder where the runner puts what a plan does not hold.
fn sql_text(statement: &SqlText) -> String {
    statement
        .0
        .iter()
        .map(|piece| match piece {
            SqlPiece::Text(text) => text.clone(),
            SqlPiece::Verifier(key) => format!("<verifier of {}>", secret_key(key)),
        })
        .collect()
}

fn secret_key(key: &SecretKey) -> String {
    format!("Secret {}/{} key {}", key.namespace, key.name, key.key)
}

fn status_lines(status: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in status.as_object().into_iter().flatten() {
        match value {
            Value::Array(items) if name == "conditions" => {
                lines.extend(items.iter().map(condition_line));
            }
            Value::String(text) => lines.push(format!("{name}: {text}")),
            other => lines.push(format!("{name}: {other}")),
        }
    }
    lines
}

fn condition_line(condition: &Value) -> String {
    let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
    let line = format!("condition {}={} {}", text("type"), text("status"), text("reason"));
    if text("message").is_empty() { line } else { format!("{line}: {}", text("message")) }
}

fn event(event: &EventNote) -> String {
    let kind = if event.warning { "Warning" } else { "Normal" };
    format!("{kind} {} ({}): {}", event.reason, event.action, event.message)
}

fn note(note: &Note) -> String {
    match &note.about {
        Some(id) => format!("{} ({id}): {}", note.reason.name, note.message),
        None => format!("{}: {}", note.reason.name, note.message),
    }
}
