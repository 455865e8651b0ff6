//! From where a status stands to a climb, and from the climb to its outcome and the plan around it:
//! the move that is told, the notes, how long a phase is shown, when to look again.
//!
//! Must not know which phases there are.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use phased::ladder::{Climb, Finding, Judgement, Ladder, Stand, Verdict};
use phased::plan::{EventNote, Transition};
use phased::{Note, Plan, Settings, Stands, Wake};

use super::reason;
use super::scene::Scene;

/// How often a wait is looked at when its rung named no time, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 5;

/// The outcome of a climb in one piece; `P` are the phases of the controller.
pub struct Outcome<P> {
    /// The phase to show.
    pub phase: P,
    /// Why.
    pub finding: Finding,
    /// Whether every rung holds.
    pub ready: bool,
    /// Whether the operator is at work or waits for progress.
    pub progressing: bool,
    /// Whether a person must act or a retry must come.
    pub stuck: bool,
}

/// Reads a climb. `phase` is that of its rung, `failed` the one beside the ladder, and `settled` what
/// is told when every rung holds.
pub(crate) fn outcome<C, P>(
    ladder: &Ladder<C>,
    climb: &Climb,
    (phase, failed): (P, P),
    settled: Finding,
) -> Outcome<P> {
    let at = |phase, finding: &Finding, progressing, stuck| Outcome {
        phase,
        finding: finding.clone(),
        ready: false,
        progressing,
        stuck,
    };
    let advancing = |message: String| Finding::new(&reason::ADVANCING, message);
    match (&climb.verdict, ladder.rungs.get(climb.index + 1)) {
        (Verdict::Done, None) => Outcome { ready: true, ..at(phase, &settled, false, false) },
        (Verdict::Done, Some(above)) => {
            let (here, next) = (climb.phase, above.doc.phase);
            let message = format!("{here} waits for nothing more; {next} follows");
            at(phase, &advancing(message), true, false)
        }
        (Verdict::Working(finding) | Verdict::Waiting { finding, .. }, _) => {
            at(phase, finding, true, false)
        }
        (Verdict::Blocked(finding), _) => at(phase, finding, false, true),
        (Verdict::Failed(finding), _) => at(failed, finding, false, true),
        // A plan with questions writes no status; this arm only keeps the match whole.
        (Verdict::Asking, _) => {
            at(phase, &advancing("questions are being answered".to_owned()), true, false)
        }
    }
}

/// Where the stored phase stands. One that is no rung's is aside: `Failed`.
pub(crate) fn stand<C>(ladder: &Ladder<C>, phase: Option<&str>, may_advance: bool) -> Stand {
    match phase.map(|phase| ladder.index_of(phase)) {
        None => Stand::New,
        Some(None) => Stand::Aside,
        Some(Some(index)) => Stand::At { index, may_advance },
    }
}

/// The plan of a climb whose questions are all answered, but for its status and its wake-up.
pub(crate) fn plan<S: Scene, P>(
    scene: &S,
    climb: &Climb,
    outcome: &Outcome<P>,
    transition: Option<Transition>,
) -> Plan {
    let unmet = (!outcome.ready).then_some(&outcome.finding);
    let moved = transition.iter().map(|t| moved(t, outcome.stuck, &outcome.finding));
    let steps = if scene.paused() { Vec::new() } else { climb.judgement.steps.clone() };
    Plan {
        steps,
        events: moved.chain(sent(scene, climb).iter().cloned()).collect(),
        transition,
        notes: notes(unmet, scene.paused(), &climb.judgement),
        stands: Some(Stands { phase: climb.phase, verdict: climb.verdict.clone() }),
        ..Plan::idle()
    }
}

/// The events of what is really written: not while paused, and not in the words about a step that
/// was refused, after which nothing more is written.
pub(crate) fn sent<'a, S: Scene>(scene: &S, climb: &'a Climb) -> &'a [EventNote] {
    if scene.paused() || !scene.observed().troubles.is_empty() {
        return &[];
    }
    &climb.judgement.events
}

/// When to look again: as the rungs say, at `times`, soon while there is progress to come, and when
/// what is settled is to be verified anew.
pub(crate) fn wake<S: Scene>(
    scene: &S,
    climb: &Climb,
    progressing: bool,
    times: &[Option<Timestamp>],
) -> Wake {
    let observed = scene.observed();
    let settled = Wake::after(observed.now, i64::from(observed.settings.verify_every_seconds));
    let mut wake = climb.judgement.wake.clone();
    if scene.paused() && wake == Wake::Now {
        wake = Wake::OnChange;
    }
    for time in times.iter().flatten() {
        wake = wake.earliest(Wake::At(*time));
    }
    match (wake, progressing && !scene.paused()) {
        (Wake::OnChange, true) => Wake::after(observed.now, LOOK_AGAIN_SECONDS),
        (Wake::OnChange, false) => settled,
        (wake, _) => wake.earliest(settled),
    }
}

/// The move from one phase to another; `None` when it stays.
pub(crate) fn transition(
    before: Option<&str>,
    to: &'static str,
    finding: &Finding,
) -> Option<Transition> {
    (before != Some(to)).then(|| Transition {
        from: before.unwrap_or_default().to_owned(),
        to: to.to_owned(),
        reason: finding.reason.name,
    })
}

/// The Event about a move.
fn moved(transition: &Transition, warning: bool, finding: &Finding) -> EventNote {
    let from = if transition.from.is_empty() { "(new)" } else { &transition.from };
    let Transition { to, reason, .. } = transition;
    EventNote {
        warning,
        reason: reason::PHASE_CHANGED.name,
        action: "ChangePhase",
        message: format!("{from} -> {to}: {reason}: {}", finding.message),
    }
}

/// Why something is not done: what the phase waits for, a pause, then what the rungs noted.
fn notes(unmet: Option<&Finding>, paused: bool, judgement: &Judgement) -> Vec<Note> {
    let note = |reason, message: &str| Note { about: None, reason, message: message.to_owned() };
    let mut notes: Vec<Note> = unmet.iter().map(|f| note(f.reason, &f.message)).collect();
    if paused {
        notes.push(note(&reason::PAUSED, "nothing but the status is written"));
    }
    for more in &judgement.notes {
        if !notes.contains(more) {
            notes.push(more.clone());
        }
    }
    notes
}

/// When the phase has been shown long enough, if that is still to come.
pub(crate) fn dwell_end(
    since: Option<&Time>,
    settings: &Settings,
    now: Timestamp,
) -> Option<Timestamp> {
    let dwell = SignedDuration::from_secs(i64::from(settings.phase_dwell_seconds));
    let end = since?.0.checked_add(dwell).ok()?;
    (now < end).then_some(end)
}
