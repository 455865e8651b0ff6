//! What every plan must satisfy, whatever the controller (design.md section 2, "Plan lint").
//!
//! Run on every plan in tests and in debug builds. A violation is a fault of the controller, never
//! of the user. Must not change a plan, and must not repeat a secret in what it says.

use std::fmt;

use serde_json::Value;

use crate::ladder::LadderDoc;
use crate::plan::Plan;
use crate::wake::Wake;

mod secret;
mod status;
mod steps;

/// What a plan is judged against.
#[derive(Clone, Debug, PartialEq)]
pub struct LintContext {
    /// The controller's ladder: reasons, gates, phases and condition types that may occur.
    pub ladder: LadderDoc,
    /// The status that the server has now: the truth where the plan writes none.
    pub stored_status: Option<Value>,
    /// Whether the spec asks for data to go: volumes and Secrets of a deleted resource, volumes of
    /// standbys that are removed.
    pub allow_data_deletes: bool,
    /// Names of reasons that only a person can end; waiting for a change is enough for these.
    /// Conditions say the same with `Progressing=False` or `Stalled=True`.
    pub blocking: Vec<&'static str>,
    /// Secret values known to the snapshot; none may occur in the plan.
    pub secrets: Vec<Hidden>,
}

impl LintContext {
    /// A context in which no data may go and no secret is known.
    pub fn new(ladder: LadderDoc) -> Self {
        Self {
            ladder,
            stored_status: None,
            allow_data_deletes: false,
            blocking: Vec::new(),
            secrets: Vec::new(),
        }
    }
}

/// A secret value that cannot be printed by mistake.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// Hides `value`.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hidden")
    }
}

/// An invariant that a plan breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The invariant.
    pub rule: Rule,
    /// What breaks it. Never a secret.
    pub detail: String,
}

/// The invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Whatever is not ready says why and when it is looked at again.
    WaitExplainsItself,
    /// Storage, Secrets and Namespaces go only when the spec asks.
    DataIsKept,
    /// A delete, a repair and a status write name the incarnation that they are meant for.
    IncarnationIsNamed,
    /// Names and labels are valid, and the object is the one that the step names.
    NamesAreValid,
    /// A workload's selector matches its own template.
    SelectorMatchesTemplate,
    /// One step for one object.
    OneStepAnObject,
    /// Nothing follows the removal of the finalizer.
    FinalizerGoesLast,
    /// An action names a gate of the ladder.
    GateIsListed,
    /// A command in a container has a program, an input that ends it, and a bound in time.
    CommandEnds,
    /// Phase, `ready`, conditions and notes tell the same story.
    StatusIsTruthful,
    /// Conditions have the standard shape.
    ConditionsAreWellFormed,
    /// Reasons and condition types are documented in the ladder.
    ReasonsAreDocumented,
    /// No secret value is in the plan.
    NoSecretIsTold,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

/// Violations while they are collected.
#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, rule: Rule, detail: impl Into<String>) {
        self.0.push(Violation { rule, detail: detail.into() });
    }
}

/// Every invariant that `plan` breaks; empty for a sound plan.
pub fn check(plan: &Plan, context: &LintContext) -> Vec<Violation> {
    let mut found = Findings::default();
    steps::check(plan, context, &mut found);
    status::check(plan, context, &mut found);
    check_reasons(plan, &context.ladder, &mut found);
    check_wait(plan, context, &mut found);
    secret::check(plan, &context.secrets, &mut found);
    found.0
}

/// Style rule 6: every wait explains itself. A plan with open questions is not final; the runner
/// answers them and plans again.
fn check_wait(plan: &Plan, context: &LintContext, found: &mut Findings) {
    let written = plan.status.as_ref().map(|write| &write.status);
    let Some(status) = written.or(context.stored_status.as_ref()) else { return };
    if !plan.asks.is_empty() || status::is_ready(status) {
        return;
    }
    let reason = status::reason_of(status, "Ready").unwrap_or_default();
    if reason.is_empty() && plan.notes.is_empty() {
        found.add(Rule::WaitExplainsItself, "not ready, and neither a note nor a reason says why");
    }
    if plan.wake != Wake::OnChange {
        return;
    }
    if status::promises_retry(status, &context.ladder) {
        let detail = "failed, and no time to wake for the retry that the status promises";
        found.add(Rule::WaitExplainsItself, detail);
    }
    let blocked = status::has(status, "Progressing", "False")
        || status::has(status, "Stalled", "True")
        || context.blocking.contains(&reason)
        || plan.notes.iter().any(|note| context.blocking.contains(&note.reason.name));
    if !blocked {
        let detail = format!("not ready ({reason}), not blocked on a person, and no time to wake");
        found.add(Rule::WaitExplainsItself, detail);
    }
}

fn check_reasons(plan: &Plan, ladder: &LadderDoc, found: &mut Findings) {
    let used = plan
        .notes
        .iter()
        .map(|note| note.reason.name)
        .chain(plan.events.iter().map(|event| event.reason))
        .chain(plan.transition.iter().map(|transition| transition.reason));
    for reason in used {
        check_reason(reason, ladder, found);
    }
}

/// Whether a reason is documented.
fn check_reason(reason: &str, ladder: &LadderDoc, found: &mut Findings) {
    if !ladder.reasons.iter().any(|known| known.name == reason) {
        found.add(Rule::ReasonsAreDocumented, format!("reason {reason:?} is not in the ladder"));
    }
}
