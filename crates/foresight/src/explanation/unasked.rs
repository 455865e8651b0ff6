//! Plans of a world in which nobody but the API server is asked.

use phased::fact::{Fate, Question};
use phased::{Plan, Trouble};

use crate::next::step_line;
use crate::stage::{Progress, Stage};

/// The plan of a world in which nobody answers.
pub(super) fn unheard(stage: &mut Stage, open: &[Question]) -> Progress<Plan> {
    let mut open = open.to_vec();
    for _ in 0..Plan::ROUNDS {
        for question in open {
            let trouble = Trouble {
                fate: Fate::WorldMayHeal,
                reason: "NotAsked".to_owned(),
                message: "not asked from here".to_owned(),
            };
            stage.tell(question, Err(trouble));
        }
        match stage.decide() {
            Progress::Needs(questions) => return Progress::Needs(questions),
            Progress::Done(decision) if decision.open.is_empty() => {
                return Progress::Done(decision.plan);
            }
            Progress::Done(decision) => open = decision.open,
        }
    }
    Progress::Done(Plan::idle())
}

/// What would be done if a resource that is paused were not; `None` of any other.
pub(super) fn held(stage: &mut Stage) -> Progress<Option<Vec<String>>> {
    let root = stage.seen.root.clone();
    if !stage.lift_pause() {
        return Progress::Done(None);
    }
    let plan = match stage.decide() {
        Progress::Done(decision) if decision.open.is_empty() => Progress::Done(decision.plan),
        Progress::Done(decision) => unheard(stage, &decision.open),
        Progress::Needs(questions) => Progress::Needs(questions),
    };
    stage.seen.root = root;
    match plan {
        Progress::Done(plan) => Progress::Done(Some(plan.steps.iter().map(step_line).collect())),
        Progress::Needs(questions) => Progress::Needs(questions),
    }
}
