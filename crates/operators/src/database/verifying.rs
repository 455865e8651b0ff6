//! The rung `Verifying`: login by password, refusal of a wrong one, owner, round-trip.
//!
//! The evidence counts only from this Database's own server: it tells whose it is (fault catalogue
//! PG-24). Must not touch Kubernetes objects.

use phased::condition::Truth;
use phased::fact::{Answer, Fate};
use phased::ladder::{Finding, Judgement, Verdict};
use phased::pause::BECAUSE_PAUSED;
use phased::{Question, StepTrouble};

use super::api::Phase;
use super::blueprint::Blueprint;
use super::context::Context;
use super::context::Tending;
use super::verify::{self, Evidence, Heard, Identity, Inspection, Target};
use super::{config, reason, recovery, remedy, replication, standbys};
use crate::parts::scene::Scene;

/// Gate of everything that waits for the server to answer.
const GATE: &str = "ServerAnswers";
/// Shortest and longest pause between two tries, in seconds.
const PAUSE_SECONDS: std::ops::RangeInclusive<i64> = 5..=60;

/// Judges the server.
pub fn verify(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    let (Some(blueprint), Some(target)) = (&context.blueprint, context.target()) else {
        return tending.judgement;
    };
    let questions = [target.probe(), target.wrong_password(), target.inspect()];
    let also = standbys::questions(context, blueprint, &target);
    let all = questions.iter().chain(&also);
    let open: Vec<Question> = all.filter_map(|question| context.unheard(question)).collect();
    if !open.is_empty() {
        ask(&mut tending, open);
        return tending.judgement;
    }
    let [Some(probed), Some(refused), Some(inspected)] =
        questions.each_ref().map(|q| context.heard(q))
    else {
        return tending.judgement;
    };
    match verify::probed(probed) {
        Heard::Clear(evidence) => match weigh(blueprint, &evidence) {
            Err(objection) => object(&mut tending, objection),
            Ok(()) if lacks(&evidence, &target) => mend(&mut tending, blueprint, &target, ""),
            Ok(()) => {
                hear_refusal(&mut tending, verify::wrongly_let_in(refused));
                recovery::aside(&mut tending, blueprint, inspected);
                note_collation(&mut tending, &target, &evidence);
                if tending.judgement.verdict == Verdict::Done {
                    standbys::tend(&mut tending, blueprint, &target);
                }
            }
        },
        Heard::Later(finding) if is_shut_out(&finding, inspected) => {
            mend(&mut tending, blueprint, &target, "53300");
        }
        Heard::Later(finding) => later(&mut tending, finding),
        Heard::Refused(finding) => tending.judge(Verdict::Failed(finding)),
        Heard::Lacking(code) => mend(&mut tending, blueprint, &target, &code),
    }
    tending.judgement
}

/// Why evidence does not count.
pub enum Objection {
    /// It may pass by itself.
    Passing(Finding),
    /// It stays until somebody acts.
    Lasting(Finding),
}

fn object(tending: &mut Tending<'_>, objection: Objection) {
    match objection {
        Objection::Passing(finding) => later(tending, finding),
        Objection::Lasting(finding) => tending.judge(Verdict::Failed(finding)),
    }
}

fn ask(tending: &mut Tending<'_>, questions: impl IntoIterator<Item = Question>) {
    tending.judgement.asks.extend(questions);
    tending.judge(Verdict::Asking);
}

/// Whether the server is ours, holds the recorded data, and takes writes.
///
/// # Errors
/// Why what it tells does not count.
pub fn recognise(blueprint: &Blueprint, identity: &Identity) -> Result<(), Objection> {
    let lasting = |reason, message: String| Err(Objection::Lasting(Finding::new(reason, message)));
    match identity.resource.as_deref() {
        Some(resource) if resource == blueprint.identity => {}
        Some(other) => {
            let message =
                format!("the server that answers belongs to another Database (uid {other})");
            return lasting(&reason::WRONG_SERVER, message);
        }
        None => {
            let message = "the server that answers does not run with this Database's configuration";
            return lasting(&reason::WRONG_SERVER, message.to_owned());
        }
    }
    if let Some(recorded) = blueprint.identifier.as_ref().filter(|_| !blueprint.may_bootstrap())
        && *recorded != identity.system_identifier
    {
        let message = format!(
            "the server holds data with the system identifier {}, and {recorded} is recorded",
            identity.system_identifier
        );
        return lasting(&reason::DIFFERENT_DATA, message);
    }
    if !(verify::OLDEST_MAJOR..=verify::NEWEST_MAJOR).contains(&identity.major) {
        let message = format!("the server is PostgreSQL {}", identity.version);
        return lasting(&reason::UNSUPPORTED_SERVER, message);
    }
    if let Some(why) = identity.read_only {
        return lasting(&reason::READ_ONLY_SERVER, format!("the server takes no writes: {why}"));
    }
    Ok(())
}

fn weigh(blueprint: &Blueprint, evidence: &Evidence) -> Result<(), Objection> {
    recognise(blueprint, &evidence.identity)?;
    let wanted = config::restart_digest(blueprint);
    if evidence.identity.config.as_deref() != Some(wanted.as_str()) {
        let message = "the server runs with another version of its configuration file";
        return Err(Objection::Passing(Finding::new(&reason::CONFIGURATION_NOT_IN_FORCE, message)));
    }
    if !evidence.round_trip {
        let message = "the value that was written was not read back";
        return Err(Objection::Lasting(Finding::new(&reason::VERIFICATION_FAILED, message)));
    }
    Ok(())
}

/// Whether the superuser must put something right although the application may log in.
fn lacks(evidence: &Evidence, target: &Target) -> bool {
    !evidence.bootstrapped || evidence.owner.as_deref() != Some(target.username.as_str())
}

/// Whether the server has no connection for the role because the role's own limit is zero, which
/// does not pass by itself.
fn is_shut_out(finding: &Finding, inspected: &Answer) -> bool {
    let found = verify::inspected(inspected);
    finding.reason == &reason::SERVER_NOT_ACCEPTING
        && matches!(found, Heard::Clear(found) if found.role.is_some_and(|r| r.shut_out))
}

fn hear_refusal(tending: &mut Tending<'_>, heard: Heard<()>) {
    match heard {
        Heard::Clear(()) => {}
        Heard::Later(finding) => later(tending, finding),
        Heard::Refused(finding) => tending.judge(Verdict::Failed(finding)),
        Heard::Lacking(code) => {
            let message = format!("the login with a wrong password ended with {code}");
            tending.judge(Verdict::Failed(Finding::new(&reason::VERIFICATION_FAILED, message)));
        }
    }
}

fn note_collation(tending: &mut Tending<'_>, target: &Target, evidence: &Evidence) {
    if let Some((recorded, actual)) = &evidence.collation {
        let message = format!(
            "database {:?}: its indexes were built with collation version {recorded}, and the image \
             brings {actual}; rebuild them (REINDEX DATABASE), then run ALTER DATABASE {} REFRESH \
             COLLATION VERSION",
            target.database,
            super::sql::identifier(&target.database)
        );
        tending.note(None, Finding::new(&reason::COLLATION_VERSION_MISMATCH, message));
    }
}

/// Looks around as the superuser, then acts on what is missing.
fn mend(tending: &mut Tending<'_>, blueprint: &Blueprint, target: &Target, lacking: &str) {
    let inspect = target.inspect();
    let Some(answer) = tending.context.heard(&inspect) else {
        ask(tending, [inspect]);
        return;
    };
    match verify::inspected(answer) {
        Heard::Clear(found) => match recognise(blueprint, &found.identity) {
            Err(objection) => object(tending, objection),
            Ok(()) if is_gone(blueprint, &found) => {
                let message = format!(
                    "database {:?} existed and is gone; it is never made anew by itself",
                    target.database
                );
                let finding = Finding::new(&reason::DATA_MISSING, message);
                tending.judge(Verdict::Failed(tending.context.with_way_out(finding)));
            }
            Ok(()) => act(tending, target, &found, lacking),
        },
        Heard::Later(finding) => later(tending, finding),
        Heard::Refused(finding) if finding.reason == &reason::SUPERUSER_LOGIN_FAILED => {
            recovery::await_recovery(tending, blueprint, finding);
        }
        Heard::Refused(finding) => tending.judge(Verdict::Failed(finding)),
        Heard::Lacking(code) => {
            let message = format!("the superuser's session ended with {code}");
            tending.judge(Verdict::Failed(Finding::new(&reason::VERIFICATION_FAILED, message)));
        }
    }
}

/// Whether a database is missing that was there. An identifier is recorded by the first login that
/// went through to the end, so what bring-up has yet to make is not gone.
fn is_gone(blueprint: &Blueprint, found: &Inspection) -> bool {
    found.owner.is_none() && !blueprint.may_bootstrap()
}

fn act(tending: &mut Tending<'_>, target: &Target, found: &Inspection, lacking: &str) {
    let context = tending.context;
    let actions = remedy::actions(target, found, lacking);
    if actions.is_empty() {
        let message =
            format!("the login failed with {lacking}, and the superuser finds nothing amiss");
        tending.judge(Verdict::Failed(Finding::new(&reason::VERIFICATION_FAILED, message)));
        return;
    }
    let names: Vec<&str> = actions.iter().map(|a| a.name).collect();
    let secret = context.seen(&context.names.credentials_secret());
    let version = secret.as_ref().map_or("", |s| s.resource_version());
    let why: Vec<&str> = actions.iter().map(|a| a.why.as_str()).collect();
    let message =
        format!("{}: {} (credentials of version {version})", names.join(", "), why.join("; "));
    if context.paused() {
        let message = format!("{message}; it is not done, because {BECAUSE_PAUSED}");
        tending.judge(Verdict::Blocked(Finding::new(&reason::PREPARING_DATABASE, message)));
        return;
    }
    if let Some(trouble) = action_trouble(context) {
        refused_action(tending, &message, trouble);
        return;
    }
    if already_tried(context, &message) {
        let message = format!("{message}, and it did not help");
        tending.judge(Verdict::Failed(Finding::new(&reason::ACTION_FAILED, message)));
        return;
    }
    tending.judgement.steps.extend(remedy::steps(actions));
    tending.judge(Verdict::Working(Finding::new(&reason::PREPARING_DATABASE, message)));
    // Nothing in the cluster changes by an action, so nothing else would wake us.
    tending.judgement.wake = phased::Wake::Now;
}

/// Whether the last pass did just this: the status is written after the steps. A retry that is due
/// may do it again.
fn already_tried(context: &Context, message: &str) -> bool {
    let status = &context.status;
    if status.observed_generation != context.observed.root.metadata.generation {
        return false;
    }
    let ready = status.conditions.iter().find(|c| c.type_ == "Ready");
    let just_done = ready.is_some_and(|c| {
        c.status == Truth::False.as_str()
            && c.reason == reason::PREPARING_DATABASE.name
            && c.message == message
    });
    let failed = status.phase == Some(Phase::Failed)
        && status.retry.as_ref().is_some_and(|r| {
            r.reason == reason::ACTION_FAILED.name
                && r.message.starts_with(message)
                && !phased::retry::is_due(r, context.observed.now)
        });
    just_done || failed
}

/// An action that met trouble in this pass.
fn action_trouble(context: &Context) -> Option<&StepTrouble> {
    let resource = super::resource_id(&context.names);
    let others = ["patch", recovery::ACTION];
    let ours = |verb: &str| !others.contains(&verb) && !replication::ACTIONS.contains(&verb);
    context.observed.troubles.iter().find(|t| t.id == resource && ours(&t.verb))
}

/// What the server refused is a failure with a retry; what did not reach it is tried again soon.
fn refused_action(tending: &mut Tending<'_>, message: &str, trouble: &StepTrouble) {
    let finding =
        Finding::new(&reason::ACTION_FAILED, format!("{message}: {}", trouble.trouble.message));
    if trouble.trouble.reason.starts_with("SQLSTATE") || trouble.trouble.fate != Fate::WorldMayHeal
    {
        tending.judge(Verdict::Failed(finding));
    } else {
        later(tending, finding);
    }
}

/// Not now. After the deadline it counts as a failure, until its retry is due.
fn later(tending: &mut Tending<'_>, finding: Finding) {
    let context = tending.context;
    let status = &context.status;
    let now = context.observed.now;
    let same_failure = status.phase == Some(Phase::Failed)
        && status.observed_generation == context.observed.root.metadata.generation
        && status
            .retry
            .as_ref()
            .is_some_and(|r| r.reason == finding.reason.name && !phased::retry::is_due(r, now));
    let deadline = deadline(context);
    if same_failure || deadline.is_some_and(|d| now >= d) {
        tending.judge(Verdict::Failed(finding));
        return;
    }
    tending.judge(Verdict::Waiting { finding, gate: GATE, deadline });
    tending.wake_after(pause_seconds(context));
    if let Some(deadline) = deadline {
        let wake = tending.judgement.wake.clone().earliest(phased::Wake::At(deadline));
        tending.judgement.wake = wake;
    }
}

/// Until when the phase may wait, once it is shown.
pub fn deadline(context: &Context) -> Option<jiff::Timestamp> {
    let patience = context.blueprint.as_ref().map_or(600, |b| b.valid.progress_deadline_seconds);
    let since = verifying_since(context)?;
    since.checked_add(jiff::SignedDuration::from_secs(patience)).ok()
}

fn verifying_since(context: &Context) -> Option<jiff::Timestamp> {
    let status = &context.status;
    (status.phase == Some(Phase::Verifying)).then(|| status.phase_since.as_ref().map(|t| t.0))?
}

/// Pauses grow with the time that the phase has lasted, so that no counter is needed.
fn pause_seconds(context: &Context) -> i64 {
    let now = context.observed.now.as_second();
    let waited = verifying_since(context).map_or(0, |since| now - since.as_second());
    (waited / 4).clamp(*PAUSE_SECONDS.start(), *PAUSE_SECONDS.end())
}
