//! Passes that cannot decide: the stored resource does not parse, or the world could not be read.
//!
//! The status tells the trouble; nothing is created or deleted on the strength of a failed read.

use jiff::Timestamp;
use phased::condition::{Truth, Wanted};
use phased::fact::Fate;
use phased::plan::Transition;
use phased::step::Finalizer;
use phased::{Live, Plan, Step, Trouble, Wake};

use super::api::{Phase, ZookeeperClusterStatus};
use super::{FINALIZER, reason, status};
use crate::parts::memory;
use crate::parts::stored::wanted;

/// How often trouble is looked at again, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 30;

/// Plans for a stored resource that does not parse. Whether it asks for volumes to go is not known
/// then, so they are kept.
pub fn unreadable(root: &Live, error: &str, now: Timestamp) -> Plan {
    if root.deletion_time().is_some() {
        let ours = root.metadata.finalizers.iter().flatten().any(|f| f == FINALIZER);
        let steps =
            if ours { vec![Step::Finalizer(Finalizer::Remove(FINALIZER))] } else { Vec::new() };
        return Plan { steps, ..Plan::idle() };
    }
    let message = format!("the stored resource cannot be read: {error}");
    let told = |kind, truth| wanted(kind, truth, &reason::UNREADABLE, &message);
    let conditions = vec![
        told("Ready", Truth::False),
        told("Progressing", Truth::False),
        told("Degraded", Truth::True),
    ];
    stated(root, now, Phase::Pending, conditions)
}

/// Plans for a pass that could not be observed. A read that may succeed next time says nothing
/// about the servers, so what was verified stands; anything else ends it.
pub fn troubled(root: &Live, trouble: &Trouble, now: Timestamp) -> Plan {
    let before: ZookeeperClusterStatus = memory::status(root);
    let message = format!("{}: {}", trouble.reason, trouble.message);
    let told = |kind| wanted(kind, Truth::Unknown, &reason::OBSERVATION_FAILED, &message);
    let phase = before.phase.unwrap_or(Phase::Pending);
    match trouble.fate {
        Fate::WorldMayHeal => stated(root, now, phase, vec![told("Progressing")]),
        Fate::UserMustAct | Fate::WeAreWrong => {
            let phase = if phase == Phase::Ready { Phase::Forming } else { phase };
            let conditions = vec![told("Ready"), told("Progressing"), told("Degraded")];
            stated(root, now, phase, conditions)
        }
    }
}

fn stated(root: &Live, now: Timestamp, phase: Phase, conditions: Vec<Wanted>) -> Plan {
    let before: ZookeeperClusterStatus = memory::status(root);
    let transition = (before.phase != Some(phase)).then(|| Transition {
        from: before.phase.map_or("", Phase::as_str).to_owned(),
        to: phase.as_str().to_owned(),
        reason: conditions.first().map_or("", |c| c.reason),
    });
    // The generation is acted upon only when the spec could be read.
    let generation = before.observed_generation;
    let kept = ZookeeperClusterStatus { phase: Some(phase), ..before };
    let after = status::restate(kept, generation, now, conditions);
    Plan {
        status: status::write(root, &after),
        transition,
        wake: Wake::after(now, LOOK_AGAIN_SECONDS),
        ..Plan::idle()
    }
}
