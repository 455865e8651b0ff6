//! A controller in a small world: how it is asked, and how what it plans is done.

use std::ops::DerefMut;

use phased::fact::Question;
use phased::step::Step;
use phased::{Answer, Controller, Facts, Live, ObjectId, Observed, Plan, StepTrouble};

use super::Stored;

/// A world around the stored objects, with what its controller asks and does beside them.
pub trait Play: DerefMut<Target = Stored> {
    /// The controller.
    type Of: Controller;
    /// Types of the conditions that it writes.
    const CONDITIONS: &'static [&'static str];

    /// Whether its watches show the object.
    fn shows(id: &ObjectId, live: &Live) -> bool;
    /// Fails for a plan against the rules.
    fn lint(&self, plan: &Plan);
    /// Answers what the stored objects alone cannot.
    fn answer(&mut self, question: &Question) -> Answer;
    /// Carries a step out. Answers whether the resource itself was changed.
    fn carry_out(&mut self, step: &Step) -> Result<bool, Box<StepTrouble>>;
}

/// What a controller sees.
pub type Seen<W> = Observed<<<W as Play>::Of as Controller>::Resource>;

/// What the controller sees.
pub fn observe<W: Play>(world: &W, facts: Facts, troubles: &[StepTrouble]) -> Seen<W> {
    let root = Live::new(world.root.clone()).unwrap();
    Observed {
        resource: serde_json::from_value(world.root.clone()).unwrap(),
        objects: world.wanted(&W::Of::wants(&root), W::shows),
        root,
        facts,
        troubles: troubles.to_vec(),
        now: world.now,
        settings: world.settings.clone(),
    }
}

/// Plans, answering questions, and lints every plan on the way.
pub fn plan<W: Play>(world: &mut W, troubles: &[StepTrouble]) -> Plan {
    let mut facts = Facts::new();
    for round in 0..=Plan::ROUNDS {
        let observed = observe(world, facts.clone(), troubles);
        let plan = W::Of::plan(&observed);
        assert_eq!(plan, W::Of::plan(&observed), "a plan is a function");
        world.lint(&plan);
        if plan.asks.is_empty() {
            return plan;
        }
        assert!(round < Plan::ROUNDS, "asks for ever: {:?}", plan.asks);
        for question in plan.asks {
            assert!(!facts.contains_key(&question), "asked twice: {question:?}");
            let known = (**world).answer(&question);
            let answer = known.unwrap_or_else(|| Play::answer(world, &question));
            facts.insert(question, answer);
        }
    }
    unreachable!()
}

/// One pass: plan, carry out, write the status.
pub fn pass<W: Play>(world: &mut W) -> Plan {
    let plan = plan(world, &[]);
    let mut root_changed = false;
    for step in &plan.steps {
        if world.crashes(true) {
            return plan;
        }
        let done = world.carry_out(step);
        if world.crashes(false) {
            return plan;
        }
        match done {
            Ok(changed) => root_changed |= changed,
            Err(trouble) => {
                let plan = self::plan(world, &[*trouble]);
                report(world, &plan, false);
                return plan;
            }
        }
    }
    if plan.status.is_none() || !world.crashes(true) {
        report(world, &plan, root_changed);
        world.crashes(false);
    }
    plan
}

fn report<W: Play>(world: &mut W, plan: &Plan, root_changed: bool) {
    if let Some(write) = &plan.status {
        world.report(write, W::CONDITIONS, root_changed);
    }
}
