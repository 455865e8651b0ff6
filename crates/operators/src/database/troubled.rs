//! Passes that cannot decide: the stored resource does not parse, or the world could not be read.
//!
//! The status tells the trouble; nothing is created or deleted on the strength of a failed read
//! (fault catalogue G-82, PG-05). A deletion is let through (PG-02).

use jiff::Timestamp;
use phased::condition::{Truth, Wanted};
use phased::fact::Fate;
use phased::plan::Transition;
use phased::step::Finalizer;
use phased::{Live, Plan, Step, Trouble, Wake};

use super::api::{DatabaseStatus, Phase};
use super::{FINALIZER, reason, status};
use crate::parts::memory;
use crate::parts::stored::wanted;

/// How often trouble is looked at again, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 30;

/// Plans for a stored resource that does not parse. What the deletion policy would have asked for
/// is not known for sure then, so volumes and Secrets are kept.
pub fn unreadable(root: &Live, error: &str, now: Timestamp) -> Plan {
    if root.deletion_time().is_some() {
        let ours = root.metadata.finalizers.iter().flatten().any(|f| f == FINALIZER);
        let steps =
            if ours { vec![Step::Finalizer(Finalizer::Remove(FINALIZER))] } else { Vec::new() };
        return Plan { steps, ..Plan::idle() };
    }
    let message = format!("the stored resource cannot be read: {error}");
    let conditions = vec![
        wanted("Ready", Truth::False, &reason::UNREADABLE, &message),
        wanted("Progressing", Truth::False, &reason::UNREADABLE, &message),
        wanted("Degraded", Truth::True, &reason::UNREADABLE, &message),
    ];
    stated(root, now, (Phase::Pending, false), conditions)
}

/// Plans for a pass that could not be observed. A read that may succeed next time says nothing
/// about the server, so what was verified stands; anything else ends it.
pub fn troubled(root: &Live, trouble: &Trouble, now: Timestamp) -> Plan {
    let before: DatabaseStatus = memory::status(root);
    let message = format!("{}: {}", trouble.reason, trouble.message);
    let told = |kind, status| wanted(kind, status, &reason::OBSERVATION_FAILED, &message);
    let phase = before.phase.unwrap_or(Phase::Pending);
    match trouble.fate {
        Fate::WorldMayHeal => {
            let ready = before.ready.unwrap_or_default();
            stated(root, now, (phase, ready), vec![told("Progressing", Truth::Unknown)])
        }
        Fate::UserMustAct | Fate::WeAreWrong => {
            let phase = if phase == Phase::Ready { Phase::Verifying } else { phase };
            let conditions = vec![
                told("Ready", Truth::Unknown),
                told("Progressing", Truth::Unknown),
                told("Degraded", Truth::Unknown),
            ];
            stated(root, now, (phase, false), conditions)
        }
    }
}

fn stated(
    root: &Live,
    now: Timestamp,
    (phase, ready): (Phase, bool),
    conditions: Vec<Wanted>,
) -> Plan {
    let before: DatabaseStatus = memory::status(root);
    let transition = (before.phase != Some(phase)).then(|| Transition {
        from: before.phase.map_or("", Phase::as_str).to_owned(),
        to: phase.as_str().to_owned(),
        reason: conditions.first().map_or("", |c| c.reason),
    });
    // The generation is acted upon only when the spec could be read.
    let generation = before.observed_generation;
    let kept = DatabaseStatus { phase: Some(phase), ready: Some(ready), ..before };
    let after = status::restate(kept, generation, now, conditions);
    Plan {
        status: status::write(root, &after),
        transition,
        wake: Wake::after(now, LOOK_AGAIN_SECONDS),
        ..Plan::idle()
    }
}
