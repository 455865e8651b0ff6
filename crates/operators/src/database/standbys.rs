//! Standbys of a primary that is verified: what they lack, and what is done about it.
//!
//! Unknown is not down: a standby that does not stream is left alone, since its copy may be needed,
//! unless something proves that a fresh start or a fresh copy helps (docs/design/0002-standbys.md).

use k8s_openapi::api::core::v1::Pod;
use phased::ladder::{Finding, Verdict};
use phased::step::Delete;
use phased::{Live, Question, Step, StepTrouble, Wake};

use super::blueprint::Blueprint;
use super::context::Context;
use super::context::Tending;
use super::stream::{self, Replication, Told};
use super::verify::{self, Target};
use super::{reason, replication, roles, secrets, servers};
use crate::parts::hidden;
use crate::parts::members::{Members, is_ready};
use crate::parts::scene::Scene;
use crate::parts::stall;

/// How often standbys that lack something are looked at, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 5;
/// How often standbys that stream are looked at, in seconds: no watch tells that one stopped.
const VERIFY_SECONDS: i64 = 60;
/// Gate of a first bring-up.
pub const GATE: &str = "StandbysStream";

/// How one standby stands.
struct Standing {
    ordinal: u32,
    /// What it lacks, in words.
    lacking: Option<String>,
    /// Why its pod is to be made again.
    replace: Option<String>,
    /// Whether it holds settings that it no longer needs.
    raised: bool,
}

/// What to ask about standbys, beside what the superuser is asked on the primary.
pub fn questions(context: &Context, blueprint: &Blueprint, target: &Target) -> Vec<Question> {
    let mut all = Vec::new();
    if blueprint.standbys().is_empty() {
        return all;
    }
    all.push(target.replication_login());
    let ready = |n: &u32| context.pod(*n).is_some_and(is_up);
    all.extend(blueprint.standbys().filter(ready).map(|n| target.standby(n)));
    all.extend(events(context, blueprint));
    all
}

/// The question for the Events about standbys that are not ready, if there are such.
fn events(context: &Context, blueprint: &Blueprint) -> Option<Question> {
    let down: Vec<u32> =
        blueprint.standbys().filter(|n| !context.pod(*n).is_some_and(is_up)).collect();
    if down.is_empty() { None } else { stall::question(context, &down) }
}

/// Whether a pod is ready and stays.
pub(super) fn is_up(pod: &Live) -> bool {
    pod.deletion_time().is_none() && pod.read::<Pod>().is_ok_and(|pod| is_ready(&pod))
}

/// Looks after the standbys of a verified primary.
pub fn tend(tending: &mut Tending<'_>, blueprint: &Blueprint, target: &Target) {
    let context = tending.context;
    let Some(found) = context.inspection() else {
        // That the superuser is refused is told already, and is why nothing is known.
        let answer = context.heard(&target.inspect());
        let refused = answer.is_some_and(|a| verify::superuser_refused(a).is_some());
        if !blueprint.standbys().is_empty() && !refused {
            lack(tending, "the primary cannot be asked about its standbys".to_owned());
        }
        return;
    };
    let found = &found.replication;
    let mut lacking = Vec::new();
    match trouble(context) {
        Some(trouble) => lacking.push(trouble.trouble.message.clone()),
        None => {
            let actions = replication::actions(context, blueprint, target, found);
            if !actions.is_empty() {
                tending.judgement.wake = Wake::Now;
            }
            tending.judgement.steps.extend(actions.into_iter().map(Step::Act));
        }
    }
    let all: Vec<Standing> =
        blueprint.standbys().map(|n| stand(context, blueprint, target, found, n)).collect();
    replace(tending, blueprint, &all);
    lacking.extend(all.into_iter().filter_map(|standing| standing.lacking));
    // A slot that is still in use ends by a time-out of the server, of which no watch tells.
    let left = found.slots.iter().any(|slot| !blueprint.standbys().contains(&slot.ordinal));
    if left {
        tending.wake_after(LOOK_AGAIN_SECONDS);
    } else if !blueprint.standbys().is_empty() {
        tending.wake_after(VERIFY_SECONDS);
    }
    if !lacking.is_empty() {
        lack(tending, lacking.join("; "));
    }
}

/// Tells what the standbys lack.
fn lack(tending: &mut Tending<'_>, message: String) {
    let finding = Finding::new(&reason::STANDBY_UNAVAILABLE, message);
    tending.wake_after(LOOK_AGAIN_SECONDS);
    // Whoever waits for a new database waits for all of it, but not for ever.
    let context = tending.context;
    let deadline = super::verifying::deadline(context);
    let patient = deadline.is_none_or(|deadline| context.observed.now < deadline);
    if context.status.serving_since.is_none() && patient {
        tending.judge(Verdict::Waiting { finding, gate: GATE, deadline });
    } else {
        tending.note(None, finding);
    }
}

/// An action about standbys that met trouble in this pass.
pub(super) fn trouble(context: &Context) -> Option<&StepTrouble> {
    let resource = super::resource_id(&context.names);
    let ours = |trouble: &&StepTrouble| {
        trouble.id == resource && replication::ACTIONS.contains(&trouble.verb.as_str())
    };
    context.observed.troubles.iter().find(ours)
}

fn stand(
    context: &Context,
    blueprint: &Blueprint,
    target: &Target,
    found: &Replication,
    ordinal: u32,
) -> Standing {
    let name = context.names.pod(ordinal).name;
    let lacking =
        |words: String| Standing { ordinal, lacking: Some(words), replace: None, raised: false };
    let Some(pod) = context.pod(ordinal) else {
        return lacking(told(context, blueprint, ordinal, format!("pod {name} does not exist")));
    };
    if pod.deletion_time().is_some() {
        return lacking(format!("pod {name} is being deleted"));
    }
    if blueprint.reseed.get(&ordinal).is_some_and(|uid| uid == pod.uid()) {
        let why = "the primary no longer keeps what this standby lacks; it is seeded anew";
        return Standing { replace: Some(why.to_owned()), ..lacking(format!("{name}: {why}")) };
    }
    if !is_up(pod) {
        return lacking(told(context, blueprint, ordinal, format!("pod {name} is not ready")));
    }
    let answer = context.heard(&target.standby(ordinal)).map(stream::told);
    follow(context, blueprint, found, (ordinal, pod), answer)
}

/// How a standby whose pod is ready stands.
fn follow(
    context: &Context,
    blueprint: &Blueprint,
    found: &Replication,
    (ordinal, pod): (u32, &Live),
    answer: Option<Told>,
) -> Standing {
    let name = context.names.pod(ordinal).name;
    let mut standing = Standing { ordinal, lacking: None, replace: None, raised: false };
    let sender = found.sender(&name);
    let endangered = found.slot(ordinal).is_some_and(|slot| slot.is_endangered());
    standing.lacking = match sender.map(|sender| sender.state.as_str()) {
        Some("streaming") if endangered => {
            Some(format!("{name} lags; the primary is about to give up what it lacks"))
        }
        Some("streaming") => None,
        Some(state) => Some(format!("{name} is not up to date (state {state})")),
        None => Some(format!("{name} does not stream")),
    };
    match answer {
        Some(Told::Promoted) => {
            standing.lacking = Some(format!("{name} follows no primary: it was promoted"));
        }
        Some(Told::Standby { identity, .. })
            if blueprint
                .identifier
                .as_ref()
                .is_some_and(|id| *id != identity.system_identifier) =>
        {
            let why = format!("it holds another database ({})", identity.system_identifier);
            standing.lacking = Some(format!("{name}: {why}"));
            standing.replace = sender.is_none().then_some(why);
        }
        Some(Told::Standby { paused: true, .. }) => {
            let words = "its replay is paused; resume it, or delete the pod";
            standing.lacking.get_or_insert(format!("{name}: {words}"));
        }
        Some(Told::Standby { raised, .. }) => standing.raised = raised,
        Some(Told::Unknown(why)) if standing.lacking.is_some() => {
            standing.lacking = standing.lacking.map(|words| format!("{words}: {why}"));
        }
        Some(Told::Unknown(_)) | None => {}
    }
    if sender.is_none() && standing.replace.is_none() && has_old_password(context, pod) {
        let why = "the password of replication was changed after it started";
        standing.replace = Some(why.to_owned());
    }
    standing
}

/// A guard hands the password over when its pod starts.
fn has_old_password(context: &Context, pod: &Live) -> bool {
    let secret = context.seen(&context.names.replication_secret());
    let written = secret.as_ref().and_then(secrets::data_written_at);
    let made = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    matches!((written, made), (Some(written), Some(made)) if written > made)
}

/// The words with the cause of a pod that is not ready.
fn told(context: &Context, blueprint: &Blueprint, ordinal: u32, words: String) -> String {
    let answer = events(context, blueprint).and_then(|q| context.observed.facts.get(&q));
    match stall::cause(context, ordinal, answer) {
        Some(cause) => format!("{words}: {}: {}", cause.finding.reason.name, cause.finding.message),
        None => words,
    }
}

/// Deletes at most one pod, so that its guard looks at the data again. Settings that are no longer
/// needed are a reason only while every standby streams.
fn replace(tending: &mut Tending<'_>, blueprint: &Blueprint, all: &[Standing]) {
    let whole = all.iter().all(|standing| standing.lacking.is_none());
    let chosen = all.iter().rev().find_map(|standing| {
        let raised = || (standing.raised && whole).then(|| LOWERED.to_owned());
        Some((standing.ordinal, standing.replace.clone().or_else(raised)?))
    });
    let Some((ordinal, why)) = chosen else { return };
    let context = tending.context;
    let id = context.names.pod(ordinal);
    let Some(pod) = context.pod(ordinal) else { return };
    // A pod that is being labelled, or rolled, is looked at again.
    let settled = !roles::is_being_labelled(context, ordinal, pod)
        && servers::is_made_from(pod, blueprint)
        && hidden::is_ours(context, ordinal, pod);
    if !settled || context.observed.trouble_of(&id).is_some() {
        return;
    }
    tending.note(Some(id.clone()), Finding::new(&reason::STANDBY_RESTARTED, why.clone()));
    tending.judgement.steps.push(Step::Delete(Delete::of(id, pod, why)));
}

/// Why a standby is restarted after the primary's settings were lowered.
const LOWERED: &str = "the primary runs with lower settings now, and this standby can follow";
