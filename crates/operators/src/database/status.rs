//! The one status of a pass: phase, `ready` and conditions from one climb, so that they cannot
//! disagree (reference/database.md section 5).
//!
//! Must not contain anything that changes merely because time passes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use phased::Live;
use phased::condition::{self, Truth, Wanted, whole_second};
use phased::ladder::{Climb, Finding, Verdict};
use phased::plan::StatusWrite;
use phased::retry;
use serde_json::json;

use super::api::{DatabaseStatus, Phase};
use super::context::Context;
use super::names::PORT;
use super::phases::LADDER;
use super::verify::{self, Evidence, Heard};
use super::{deploying, growth, labels, reason};
use crate::parts::hidden;
use crate::parts::members::{Members, is_ready_live};
use crate::parts::scene::Scene;
use crate::parts::stored::{self, wanted};
use crate::parts::{course, reverts};

/// Conditions of this controller.
const OURS: [&str; 3] = ["Ready", "Progressing", "Degraded"];

/// The outcome of a climb in one piece.
pub type Outcome = course::Outcome<Phase>;

/// Reads a climb.
pub fn outcome(climb: &Climb) -> Outcome {
    let message = "the server runs this generation, its login is verified and a round-trip works";
    let settled = Finding::new(&reason::ALL_CHECKS_PASSED, message);
    course::outcome(&LADDER, climb, (phase_of(climb.phase), Phase::Failed), settled)
}

fn phase_of(name: &str) -> Phase {
    [
        Phase::Pending,
        Phase::Provisioning,
        Phase::Configuring,
        Phase::Deploying,
        Phase::Verifying,
        Phase::Ready,
    ]
    .into_iter()
    .find(|p| p.as_str() == name)
    .unwrap_or(Phase::Failed)
}

/// The status after this pass.
pub fn compose(context: &Context, climb: &Climb, outcome: &Outcome) -> DatabaseStatus {
    let before = &context.status;
    let now = context.observed.now;
    let generation = context.observed.root.metadata.generation;
    let evidence = evidence(context);
    let mut after = DatabaseStatus {
        phase: Some(outcome.phase),
        phase_since: stored::since(
            before.phase_since.as_ref(),
            before.phase == Some(outcome.phase),
            now,
        ),
        ready: Some(outcome.ready),
        observed_generation: generation,
        retry: retry_after(before, outcome, generation, now),
        reverts: reverts::after(before.reverts.as_ref(), course::sent(context, climb), now),
        last_verified: last_verified(context, outcome, now),
        progress: progress(context),
        ..DatabaseStatus::default()
    };
    record(context, outcome, evidence.as_ref(), &mut after);
    let wanted = conditions(context, climb, outcome, &after);
    after.conditions =
        condition::settle(&before.conditions, wanted, generation.unwrap_or_default(), now);
    after
}

/// What was seen, and what cannot be seen again.
fn record(
    context: &Context,
    outcome: &Outcome,
    evidence: Option<&Evidence>,
    after: &mut DatabaseStatus,
) {
    let before = &context.status;
    let names = &context.names;
    let set = context.stateful_set();
    let in_set = set.as_ref().and_then(|s| s.spec.as_ref()?.replicas).unwrap_or(1);
    let wanted = context.blueprint.as_ref().and_then(|b| i32::try_from(b.valid.replicas).ok());
    let wanted = wanted.unwrap_or(in_set);
    let ready = set.as_ref().and_then(|s| s.status.as_ref()?.ready_replicas).unwrap_or_default();
    let secret = context.seen(&names.credentials_secret());
    let service = context.seen(&names.client_service());
    let domain = &context.observed.settings.cluster_domain;
    after.replicas = Some(wanted);
    after.ready_replicas = Some(ready);
    after.replica_summary = Some(format!("{ready}/{wanted}"));
    after.primary = set.is_some().then(|| names.primary_pod().name);
    after.secret_name = secret.map(|_| names.credentials_secret().name);
    after.endpoint = service.map(|_| format!("{}:{PORT}", names.host(domain)));
    let first = outcome.ready.then(|| Time(whole_second(context.observed.now)));
    after.serving_since = before.serving_since.clone().or(first);
    let learned = context.blueprint.as_ref().and_then(|b| b.identifier.clone());
    after.system_identifier = learned.or_else(|| before.system_identifier.clone());
    let version = evidence.map(|e| e.identity.version.clone());
    after.server_version = version.or_else(|| before.server_version.clone());
    let claim = context.claim(0).map(|claim| claim.uid().to_owned());
    let settled = outcome.ready || before.system_identifier.is_none() || before.volume.is_none();
    after.volume =
        if settled { claim.or_else(|| before.volume.clone()) } else { before.volume.clone() };
}

/// What the application's session found, if it was ours.
fn evidence(context: &Context) -> Option<Evidence> {
    let answer = context.heard(&context.target()?.probe())?;
    let Heard::Clear(evidence) = verify::probed(answer) else { return None };
    let identity = &context.blueprint.as_ref()?.identity;
    (evidence.identity.resource.as_ref() == Some(identity)).then_some(evidence)
}

/// The ledger of failures: counted when a retry is due, when the reason changes or when the spec
/// does; forgotten on success.
fn retry_after(
    before: &DatabaseStatus,
    outcome: &Outcome,
    generation: Option<i64>,
    now: Timestamp,
) -> Option<retry::Retry> {
    let same_spec = before.observed_generation == generation;
    let ledger = before.retry.as_ref().filter(|_| same_spec);
    if outcome.ready {
        return None;
    }
    if outcome.phase != Phase::Failed {
        return ledger.cloned();
    }
    match ledger {
        Some(r) if r.reason == outcome.finding.reason.name && !retry::is_due(r, now) => {
            Some(r.clone())
        }
        _ => Some(retry::after_failure(ledger, &outcome.finding, now)),
    }
}

/// When the outcome of verification last changed.
fn last_verified(context: &Context, outcome: &Outcome, now: Timestamp) -> Option<Time> {
    let before = &context.status;
    let asked =
        context.target().is_some_and(|target| context.observed.facts.contains_key(&target.probe()));
    let changed = before.ready.unwrap_or_default() != outcome.ready;
    if asked && changed { Some(Time(whole_second(now))) } else { before.last_verified.clone() }
}

fn progress(context: &Context) -> Option<phased::deadline::Progress> {
    let set = context.stateful_set()?;
    deploying::progress(context, &set).map(|(progress, _)| progress)
}

fn conditions(
    context: &Context,
    climb: &Climb,
    outcome: &Outcome,
    after: &DatabaseStatus,
) -> Vec<Wanted> {
    let finding = &outcome.finding;
    let ready = Wanted {
        kind: "Ready",
        status: Truth::from_bool(outcome.ready),
        reason: finding.reason.name,
        message: finding.message.clone(),
    };
    let lacking = climb.judgement.notes.iter().any(|n| n.reason == &reason::STANDBY_UNAVAILABLE);
    let progressing = if outcome.ready && lacking {
        let message = "the primary serves; the condition Degraded says what its standbys lack";
        wanted("Progressing", Truth::False, &reason::STANDBY_UNAVAILABLE, message)
    } else if outcome.ready {
        wanted(
            "Progressing",
            Truth::False,
            &reason::RECONCILIATION_COMPLETE,
            "nothing is left to do",
        )
    } else {
        let truth = Truth::from_bool(outcome.progressing);
        wanted("Progressing", truth, finding.reason, &finding.message)
    };
    let progressing = if context.paused() {
        let message = "the annotation steadfast.dev/paused is \"true\"; remove it to go on";
        wanted("Progressing", Truth::False, &reason::PAUSED, message)
    } else {
        progressing
    };
    vec![ready, progressing, degraded(context, climb, outcome, after)]
}

/// The table of reference/database.md section 4, and what a Ready database may lack.
fn degraded(context: &Context, climb: &Climb, outcome: &Outcome, after: &DatabaseStatus) -> Wanted {
    let finding = &outcome.finding;
    if !outcome.ready {
        return if outcome.stuck {
            wanted("Degraded", Truth::True, finding.reason, &finding.message)
        } else if finding.reason == &reason::STANDBY_UNAVAILABLE {
            let message = "not served yet; its standbys are awaited";
            wanted("Degraded", Truth::False, &reason::NOT_YET_SERVING, message)
        } else if after.system_identifier.is_some() && runs(context, climb) {
            wanted("Degraded", Truth::True, finding.reason, &finding.message)
        } else if after.system_identifier.is_some() {
            let message = format!("{}: {}", finding.reason.name, finding.message);
            wanted("Degraded", Truth::True, &reason::PRIMARY_UNAVAILABLE, &message)
        } else {
            wanted("Degraded", Truth::False, &reason::NOT_YET_SERVING, "not served yet")
        };
    }
    let noted = [
        &reason::SUPERUSER_LOGIN_FAILED,
        &reason::ACTION_FAILED,
        &reason::STANDBY_UNAVAILABLE,
        &reason::COLLATION_VERSION_MISMATCH,
    ];
    let notes = &climb.judgement.notes;
    if let Some(note) = noted.iter().find_map(|r| notes.iter().find(|n| n.reason == *r)) {
        return wanted("Degraded", Truth::True, note.reason, &note.message);
    }
    let accepted = context.observed.root.annotation(labels::ACCEPT_DATA_LOSS_ANNOTATION);
    if accepted.is_some() && accepted == after.system_identifier.as_deref() {
        let message = "the annotation steadfast.dev/accept-data-loss names the data that are served; \
                       remove it, or the loss of them counts as accepted";
        return wanted("Degraded", Truth::True, &reason::DATA_LOSS_ACCEPTED, message);
    }
    if context.claim(0).is_some_and(|c| c.deletion_time().is_some()) {
        let message = format!(
            "{} is marked for deletion and goes when the pod does; take a dump now",
            context.names.data_claim()
        );
        return wanted("Degraded", Truth::True, &reason::VOLUME_TERMINATING, &message);
    }
    if let Some(message) = growth::pending(context) {
        return wanted("Degraded", Truth::True, &reason::VOLUME_RESIZING, &message);
    }
    if let Some(message) = reverts::fight(after.reverts.as_ref()) {
        return wanted("Degraded", Truth::True, &reason::MANAGERS_FIGHT, &message);
    }
    wanted("Degraded", Truth::False, &reason::ALL_CHECKS_PASSED, "nothing is lacking")
}

/// Whether the primary runs as far as its pod tells, and nothing was found against the server: what
/// is not in force then is something else.
fn runs(context: &Context, climb: &Climb) -> bool {
    let asked = phase_of(climb.phase) == Phase::Verifying && climb.verdict != Verdict::Done;
    let runs = |pod: &Live| {
        pod.deletion_time().is_none() && is_ready_live(pod) && hidden::is_ours(context, 0, pod)
    };
    !asked && context.pod(0).is_some_and(runs)
}

/// The write, when the stored status is not already this one.
pub fn write(root: &Live, after: &DatabaseStatus) -> Option<StatusWrite> {
    stored::write(root, json!(after), &OURS)
}

/// The stored status with other words in its conditions: for passes that could not look.
pub fn restate(
    before: DatabaseStatus,
    generation: Option<i64>,
    now: Timestamp,
    wanted: Vec<Wanted>,
) -> DatabaseStatus {
    let conditions: Vec<Condition> =
        condition::settle(&before.conditions, wanted, generation.unwrap_or_default(), now);
    let conditions = stored::keep_others(&before.conditions, conditions, &OURS);
    DatabaseStatus { conditions, ..before }
}
