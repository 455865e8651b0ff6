//! The pods of a resource's StatefulSet and their claims, by ordinal.
//!
//! The set has the resource's name, and its claim template is called `data`. Must not decide what
//! follows from a pod's state.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use phased::child::RESOURCE_UID_ANNOTATION;
use phased::fact::{Question, Reply};
use phased::{KindRef, Live, ObjectId};

use super::causes::{self, Cause};
use super::kinds::{claim_kind, pod_kind, stateful_set_kind};
use super::scene::Scene;

/// Label of a pod with the revision that it was made from.
pub(crate) const REVISION_LABEL: &str = "controller-revision-hash";

/// Name of the pod of an ordinal.
pub(crate) fn pod_name(set: &str, ordinal: u32) -> String {
    format!("{set}-{ordinal}")
}

/// Name of the claim of an ordinal.
pub(crate) fn claim_name(set: &str, ordinal: u32) -> String {
    format!("data-{set}-{ordinal}")
}

/// The ordinal that a pod's name ends with, if it is one of this set.
pub(crate) fn ordinal_of_pod(set: &str, pod: &str) -> Option<u32> {
    ordinal(pod.strip_prefix(set)?.strip_prefix('-')?)
}

/// The ordinal that a claim's name ends with, if it is one of this set.
pub(crate) fn ordinal_of_claim(set: &str, claim: &str) -> Option<u32> {
    ordinal_of_pod(set, claim.strip_prefix("data-")?)
}

/// An ordinal as Kubernetes writes it: no sign, no zero in front.
pub(crate) fn ordinal(text: &str) -> Option<u32> {
    let number: u32 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

/// Whether a pod says that it is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|s| s.conditions.as_ref());
    conditions.into_iter().flatten().any(|c| c.type_ == "Ready" && c.status == "True")
}

/// The same of a pod as it was seen; one that does not fit its type is not ready.
pub(crate) fn is_ready_live(pod: &Live) -> bool {
    pod.read::<Pod>().is_ok_and(|pod| is_ready(&pod))
}

/// Whether the pod runs another revision than the one that the set moves to, and is not ready: it
/// holds an ordered set up for ever (kubernetes 67250).
pub(crate) fn blocks(pod: &Live, update_revision: &str) -> bool {
    let superseded = pod.label(REVISION_LABEL).is_some_and(|r| r != update_revision);
    superseded && !is_ready_live(pod) && pod.deletion_time().is_none()
}

/// A controller whose servers are the pods of one set.
pub(crate) trait Members: Scene {
    /// The set.
    fn set_id(&self) -> ObjectId {
        self.id_of(stateful_set_kind(), self.name().to_owned())
    }

    /// The pod of an ordinal.
    fn pod_id(&self, ordinal: u32) -> ObjectId {
        self.id_of(pod_kind(), pod_name(self.name(), ordinal))
    }

    /// The claim of an ordinal.
    fn claim_id(&self, ordinal: u32) -> ObjectId {
        self.id_of(claim_kind(), claim_name(self.name(), ordinal))
    }

    /// An object in the resource's namespace.
    fn id_of(&self, kind: KindRef, name: String) -> ObjectId {
        ObjectId::new(kind, self.namespace(), name)
    }

    /// The set, typed.
    fn stateful_set(&self) -> Option<StatefulSet> {
        self.seen(&self.set_id())?.read().ok()
    }

    /// Our pods by ordinal, from the lowest, as the watch shows them or a live read found them.
    fn pods(&self) -> std::vec::IntoIter<(u32, &Live)> {
        self.by_ordinal(pod_kind(), ordinal_of_pod)
    }

    /// Our claims by ordinal, from the lowest, as the watch shows them or a live read found them.
    fn claims(&self) -> std::vec::IntoIter<(u32, &Live)> {
        self.by_ordinal(claim_kind(), ordinal_of_claim)
    }

    /// Objects of a kind whose names tell an ordinal.
    fn by_ordinal(
        &self,
        kind: KindRef,
        read: fn(&str, &str) -> Option<u32>,
    ) -> std::vec::IntoIter<(u32, &Live)> {
        let asked = self.observed().facts.iter().filter_map(|(question, answer)| {
            let (Question::Object(id), Ok(Reply::Object(Some(live)))) = (question, answer) else {
                return None;
            };
            let here = id.kind == kind && id.namespace == self.namespace();
            here.then_some((id, live))
        });
        let named = |(id, live): (&ObjectId, _)| Some((read(self.name(), &id.name)?, live));
        let mut found: BTreeMap<u32, &Live> = asked.filter_map(named).collect();
        found.extend(self.observed().of_kind(kind).filter_map(named));
        found.into_iter().collect::<Vec<_>>().into_iter()
    }

    /// The pod of an ordinal, as the watch shows it or a live read found it.
    fn pod(&self, ordinal: u32) -> Option<&Live> {
        self.known(&self.pod_id(ordinal))
    }

    /// The claim of an ordinal, as the watch shows it or a live read found it.
    fn claim(&self, ordinal: u32) -> Option<&Live> {
        self.known(&self.claim_id(ordinal))
    }

    /// Whether a claim carries this very resource's mark, which only its own set and its controller
    /// give.
    fn is_marked(&self, claim: &Live) -> bool {
        claim.annotation(RESOURCE_UID_ANNOTATION) == Some(self.observed().root.uid())
    }

    /// The cause that a pod itself shows for not being ready.
    fn cause_in_pod(&self, name: &str, pod: &Pod) -> Option<Cause> {
        causes::of_pod(name, pod)
    }
}
