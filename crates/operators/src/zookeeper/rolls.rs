//! How far a roll is released: the partition of the set.
//!
//! A pod is released only when those before it are back in the ensemble and a quorum serves without
//! it (docs/design/0004-zookeeper.md). While a template stays, the partition only falls.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::StatefulSet;
use phased::Question;
use phased::ladder::Finding;

use super::hearing::{Hearing, Servers};
use super::reason;
use crate::parts::members::{self, REVISION_LABEL};

/// How far the roll is released, and what that waits for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rolling {
    /// The lowest ordinal that the set may make anew.
    pub partition: u32,
    /// Questions without an answer yet.
    pub asks: Vec<Question>,
    /// What the next pod waits for.
    pub waits: Option<Finding>,
}

/// What the set shows of its roll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    /// Its status speaks of the generation that is stored.
    pub observed: bool,
    /// Revision of settled pods.
    pub current: String,
    /// Revision that the set moves to.
    pub update: String,
    /// Pods of the update revision.
    pub updated: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Pods that there are to be.
    pub wanted: i32,
    /// The partition.
    pub partition: u32,
}

impl Revisions {
    /// Reads a set.
    pub fn read(set: &StatefulSet) -> Self {
        let spec = set.spec.clone().unwrap_or_default();
        let status = set.status.clone().unwrap_or_default();
        let rolling = spec.update_strategy.and_then(|strategy| strategy.rolling_update);
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or_default();
        Self {
            observed: status.observed_generation >= set.metadata.generation,
            current: status.current_revision.unwrap_or_default(),
            update: status.update_revision.unwrap_or_default(),
            updated: status.updated_replicas.unwrap_or_default(),
            ready: status.ready_replicas.unwrap_or_default(),
            wanted: spec.replicas.unwrap_or(1),
            partition: u32::try_from(partition).unwrap_or_default(),
        }
    }

    /// Every pod is made from the template that the set has seen.
    pub fn is_settled(&self) -> bool {
        self.observed && self.current == self.update && self.updated == self.wanted
    }
}

/// Decides for a set whose template stays as it is.
pub fn release(revisions: &Revisions, servers: &Servers<'_>) -> Rolling {
    let kept = |partition| Rolling { partition, ..Rolling::default() };
    if !revisions.observed || revisions.partition == 0 {
        return kept(revisions.partition);
    }
    if revisions.is_settled() {
        return kept(0);
    }
    match servers.serving() {
        Hearing::Asks(asks) => Rolling { asks, ..kept(revisions.partition) },
        Hearing::Silent(_) => fall(revisions, servers, &BTreeSet::new()),
        Hearing::Told(serving) => fall(revisions, servers, &serving),
    }
}

fn fall(revisions: &Revisions, servers: &Servers<'_>, serving: &BTreeSet<u32>) -> Rolling {
    let mut rolling = next(revisions, servers, serving);
    // A pod that is down and not of the new revision holds an ordered set up for ever, and takes
    // nothing away by being made anew.
    let blocking = servers.pods.iter().find(|(_, pod)| members::blocks(pod, &revisions.update));
    if let Some((ordinal, _)) = blocking {
        rolling.partition = rolling.partition.min(*ordinal);
    }
    rolling.partition = rolling.partition.min(revisions.partition);
    rolling
}

/// From the highest ordinal down to the first that is not back yet, or not to be released yet.
fn next(revisions: &Revisions, servers: &Servers<'_>, serving: &BTreeSet<u32>) -> Rolling {
    let count = u32::try_from(revisions.wanted).unwrap_or_default();
    let waits = |ordinal, reason, why: &str| {
        let message = format!("{} {why}", servers.pod_name(ordinal));
        Some(Finding::new(reason, message))
    };
    for ordinal in (0..count).rev() {
        let pod = servers.pods.get(&ordinal);
        let updated = pod.is_some_and(|pod| pod.label(REVISION_LABEL) == Some(&revisions.update));
        if updated && serving.contains(&ordinal) {
            continue;
        }
        if updated || pod.is_none() {
            let waits =
                waits(ordinal, &reason::MEMBER_REJOINING, "has not rejoined the ensemble yet");
            return Rolling { partition: ordinal, waits, ..Rolling::default() };
        }
        if !servers.ready.contains(&ordinal) || may_leave(ordinal, count, serving) {
            return Rolling { partition: ordinal, ..Rolling::default() };
        }
        let why = "is not made anew yet: no quorum would serve without it";
        let waits = waits(ordinal, &reason::QUORUM_AT_RISK, why);
        return Rolling { partition: ordinal + 1, waits, ..Rolling::default() };
    }
    Rolling::default()
}

/// Whether a quorum serves without this member, which is ready. Of one or two members none can be
/// spared, so there it suffices that all others serve.
fn may_leave(ordinal: u32, count: u32, serving: &BTreeSet<u32>) -> bool {
    let others = serving.iter().filter(|other| **other != ordinal).count();
    let needed =
        if count <= 2 { (count as usize).saturating_sub(1) } else { count as usize / 2 + 1 };
    others >= needed
}
