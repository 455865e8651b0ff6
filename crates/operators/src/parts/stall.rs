//! Why the pod of an ordinal is not ready: what to ask, and the cause in what was answered.
//!
//! Must not decide what follows; the rungs do.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use phased::Live;
use phased::fact::{Answer, Question, Reply, SeenEvent};

use phased::ladder::Finding;

use super::causes::{self, Cause};
use super::hidden;
use super::members::Members;
use super::reason;
use super::tending::Tending;

/// Asks for the Events about the set and about the pods and claims of these ordinals.
pub(crate) fn question(context: &impl Members, ordinals: &[u32]) -> Option<Question> {
    let set = context.seen(&context.set_id())?;
    let mut about = vec![set.uid().to_owned()];
    for ordinal in ordinals {
        about.extend(parts(context, *ordinal).map(|live| live.uid().to_owned()));
    }
    Some(Question::Events { namespace: context.namespace().to_owned(), about })
}

/// Pod and claim of an ordinal, as far as they exist.
fn parts(context: &impl Members, ordinal: u32) -> impl Iterator<Item = &Live> {
    let claim = context.claim(ordinal);
    context.pod(ordinal).into_iter().chain(claim)
}

/// The cause that the pod itself shows.
pub(crate) fn near_cause(context: &impl Members, ordinal: u32) -> Option<Cause> {
    if let Some(cause) = hidden::stranger(context, ordinal) {
        return Some(cause);
    }
    let pod = context.pod(ordinal)?.read::<Pod>().ok()?;
    context.cause_in_pod(&context.pod_id(ordinal).name, &pod)
}

/// Looks at the pod, at the Events, and at the claim, in this order: what lies nearer to the server
/// tells more.
pub(crate) fn cause(
    context: &impl Members,
    ordinal: u32,
    answer: Option<&Answer>,
) -> Option<Cause> {
    let (pod_id, claim_id) = (context.pod_id(ordinal), context.claim_id(ordinal));
    let pod = context.pod(ordinal).and_then(|live| live.read::<Pod>().ok());
    let claim = context.claim(ordinal);
    let claim = claim.and_then(|live| live.read::<PersistentVolumeClaim>().ok());
    if let Some(cause) = near_cause(context, ordinal) {
        return Some(cause);
    }
    let events = match answer {
        Some(Ok(Reply::Events(events))) => about(context, ordinal, events),
        _ => Vec::new(),
    };
    let hung = || {
        let now = context.observed().now;
        causes::of_probe(&pod_id.name, pod.as_ref()?, &events, now)
    };
    causes::of_events(&events, pod.as_ref(), claim.as_ref())
        .or_else(hung)
        .or_else(|| causes::of_claim(&claim_id.name, claim.as_ref()?))
}

/// The Events that concern an ordinal: those of its pod and claim, and those of the set, of which one
/// that fails to create a pod names it.
fn about(context: &impl Members, ordinal: u32, events: &[SeenEvent]) -> Vec<SeenEvent> {
    let own: Vec<&str> = parts(context, ordinal).map(Live::uid).collect();
    let others: Vec<&Live> =
        context.pods().filter(|(n, _)| *n != ordinal).map(|(_, p)| p).collect();
    let others: Vec<&str> = others
        .into_iter()
        .chain(context.claims().filter(|(n, _)| *n != ordinal).map(|(_, claim)| claim))
        .map(Live::uid)
        .collect();
    let concerns = |event: &&SeenEvent| {
        own.contains(&event.about.as_str()) || !others.contains(&event.about.as_str())
    };
    events.iter().filter(concerns).cloned().collect()
}

/// The cause that keeps the pods of these ordinals down: what a pod itself shows before what Events
/// tell. Asks for the Events if none shows it.
pub(crate) fn find<S: Members>(tending: &mut Tending<'_, S>, down: &[u32]) -> Option<Cause> {
    let context = tending.context;
    let near = down.iter().find_map(|n| near_cause(context, *n));
    if near.is_some() {
        return near;
    }
    let question = question(context, down)?;
    let answer = context.observed().facts.get(&question);
    match answer {
        None => {
            tending.ask(question);
            return None;
        }
        Some(Err(trouble)) => {
            let message = format!("Events cannot be read: {}", trouble.message);
            tending.note(None, Finding::new(&reason::READ_FAILED, message));
        }
        Some(Ok(_)) => {}
    }
    down.iter().find_map(|n| cause(context, *n, answer))
}

/// A rollout that made no progress for so long.
pub(crate) fn exceeded(patience_seconds: i64, message: &str, cause: Option<Cause>) -> Finding {
    let cause = cause.map_or_else(
        || "no cause was found in pods, claims and Events".to_owned(),
        |c| format!("{}: {}", c.finding.reason.name, c.finding.message),
    );
    let message = format!("no progress for {patience_seconds} seconds ({message}); {cause}");
    Finding::new(&reason::PROGRESS_DEADLINE_EXCEEDED, message)
}
