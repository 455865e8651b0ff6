//! Why the pod of an ordinal is not ready: what to ask, and the cause in what was answered.
//!
//! Must not decide what follows; [`super::deploying`] and [`super::standbys`] do.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use phased::Live;
use phased::fact::{Answer, Question, Reply, SeenEvent};

use super::causes::{self, Cause};
use super::context::Context;

/// Asks for the Events about the set and about the pods and claims of these ordinals.
pub fn question(context: &Context, ordinals: &[u32]) -> Option<Question> {
    let set = context.seen(&context.names.stateful_set())?;
    let mut about = vec![set.uid().to_owned()];
    for ordinal in ordinals {
        about.extend(parts(context, *ordinal).map(|live| live.uid().to_owned()));
    }
    Some(Question::Events { namespace: context.names.namespace.clone(), about })
}

/// Pod and claim of an ordinal, as far as they exist.
fn parts(context: &Context, ordinal: u32) -> impl Iterator<Item = &Live> {
    let claim = context.observed.object(&context.names.claim(ordinal));
    context.pod(ordinal).into_iter().chain(claim)
}

/// The cause that the pod itself shows.
pub fn near_cause(context: &Context, ordinal: u32) -> Option<Cause> {
    let pod = context.pod(ordinal)?.read::<Pod>().ok()?;
    causes::of_pod(&context.names.pod(ordinal).name, &pod)
}

/// Looks at the pod, at the Events, and at the claim, in this order: what lies nearer to the server
/// tells more.
pub fn cause(context: &Context, ordinal: u32, answer: Option<&Answer>) -> Option<Cause> {
    let (pod_id, claim_id) = (context.names.pod(ordinal), context.names.claim(ordinal));
    let pod = context.pod(ordinal).and_then(|live| live.read::<Pod>().ok());
    let claim = context.observed.object(&claim_id);
    let claim = claim.and_then(|live| live.read::<PersistentVolumeClaim>().ok());
    if let Some(cause) = near_cause(context, ordinal) {
        return Some(cause);
    }
    let events = match answer {
        Some(Ok(Reply::Events(events))) => about(context, ordinal, events),
        _ => Vec::new(),
    };
    let hung = || {
        let now = context.observed.now;
        causes::of_probe(&pod_id.name, pod.as_ref()?, &events, now)
    };
    causes::of_events(&events, pod.as_ref(), claim.as_ref())
        .or_else(hung)
        .or_else(|| causes::of_claim(&claim_id.name, claim.as_ref()?))
}

/// The Events that concern an ordinal: those of its pod and claim, and those of the set, of which one
/// that fails to create a pod names it.
fn about(context: &Context, ordinal: u32, events: &[SeenEvent]) -> Vec<SeenEvent> {
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
