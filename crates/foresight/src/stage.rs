//! Where a controller is played: its resource, the objects around it, and answers to its questions.
//!
//! One [`Stage::pass`] is what `runner::pass` does, on data: plan, answer, plan again, carry out.
//! What is not known here is asked of the caller ([`Progress::Needs`]), who may read but not write.

use std::collections::{BTreeMap, BTreeSet};

use phased::fact::{Answer, Question, Reach, Reply, SqlRequest, WordRequest, ZooKeeperRequest};
use phased::pause;
use phased::step::Action;
use phased::{Live, ObjectId, Past, Plan, Seen, StepTrouble, Subject};
use serde_json::Value;

use crate::happening::Happening;
use crate::service::Services;
use crate::workload::{What, Workloads};
use crate::world::{self, World};

/// How often what a live read finds may change a pass.
const LOOKS: usize = 16;

/// How far something came.
#[derive(Debug)]
pub enum Progress<T> {
    /// These must be answered first; see [`Stage::tell`].
    Needs(Vec<Question>),
    /// It is done.
    Done(T),
}

/// Whether answers of the outside are supposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// As the plan hopes: for forecasts.
    Supposed,
    /// Not at all: for explanations.
    Unasked,
}

/// How a plan was come by.
#[derive(Debug)]
pub struct Decision {
    /// The plan.
    pub plan: Plan,
    /// Questions that nobody here may answer; the plan is without their answers.
    pub open: Vec<Question>,
}

/// A controller on its stage.
pub struct Stage {
    pub(crate) subject: &'static dyn Subject,
    /// The snapshot; its objects and facts are made anew for each pass.
    pub seen: Seen,
    /// Everything else.
    pub world: World,
    outside: Outside,
    told: BTreeMap<Question, Answer>,
    pub(crate) found: BTreeMap<ObjectId, Live>,
    /// The snapshot of the beginning.
    begun: Seen,
    /// Actions that were carried out.
    pub(crate) done: Vec<Action>,
    /// Objects that were deleted from above their dependants, as they were, without status.
    pub(crate) orphaning: BTreeMap<ObjectId, Value>,
    /// What was supposed of the outside, in words.
    pub supposed: BTreeSet<String>,
    /// What happened.
    pub log: Vec<Happening>,
    /// How many ready pods each Service had.
    pub services: Services,
    workloads: Workloads,
}

impl Stage {
    /// A stage for `seen`, whose `objects` are all that is known of the cluster.
    pub fn new(subject: &'static dyn Subject, mut seen: Seen, outside: Outside) -> Self {
        let begun = seen.clone();
        let world = World::of(std::mem::take(&mut seen.objects));
        let mut workloads = Workloads::default();
        workloads.learn(&world);
        let mut services = Services::default();
        services.look(&world);
        Self {
            subject,
            seen,
            world,
            outside,
            told: BTreeMap::new(),
            found: BTreeMap::new(),
            begun,
            done: Vec::new(),
            orphaning: BTreeMap::new(),
            supposed: BTreeSet::new(),
            log: Vec::new(),
            services,
            workloads,
        }
    }

    /// Takes an answer to a question that was needed.
    pub fn tell(&mut self, question: Question, answer: Answer) {
        self.told.insert(question, answer);
    }

    /// Says of an object that it is gone, whatever was read of it.
    pub(crate) fn forget(&mut self, id: &ObjectId) {
        self.world.remove(id);
        self.told.insert(Question::Object(id.clone()), Ok(Reply::Object(None)));
    }

    /// The field manager of the controller.
    pub fn manager(&self) -> String {
        format!("steadfast/{}", self.subject.name())
    }

    /// The resource.
    pub fn resource(&self) -> ObjectId {
        let metadata = &self.seen.root.metadata;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        ObjectId::new(self.subject.kind(), text(&metadata.namespace), text(&metadata.name))
    }

    /// Lets Kubernetes' own controllers make one move.
    pub fn let_move(&mut self) -> bool {
        let Some(moved) = self.workloads.next(&mut self.world, self.seen.now) else { return false };
        self.services.look(&self.world);
        if moved.what != What::Noticed {
            self.log.push(Happening::Moved(moved));
        }
        true
    }

    /// The plan for what is there now, with all answers that can be had.
    pub fn decide(&mut self) -> Progress<Decision> {
        self.seen.objects =
            self.world.select(&self.subject.wants(&self.seen.root), &self.subject.watches());
        let found = self.found.clone();
        self.seen.objects.extend(found);
        self.seen.facts.clear();
        loop {
            let plan = self.subject.plan(&self.seen);
            let asked: Vec<Question> =
                plan.asks.iter().filter(|q| !self.seen.facts.contains_key(*q)).cloned().collect();
            let mut needs = Vec::new();
            let mut open = Vec::new();
            for question in &asked {
                match self.answer(question) {
                    Heard::Answer(answer) => {
                        self.seen.facts.insert(question.clone(), *answer);
                    }
                    Heard::Needs(question) => needs.push(question),
                    Heard::Nothing => open.push(question.clone()),
                }
            }
            if !needs.is_empty() {
                return Progress::Needs(needs);
            }
            if asked.is_empty() || !open.is_empty() {
                return Progress::Done(Decision { plan, open });
            }
        }
    }

    fn answer(&mut self, question: &Question) -> Heard {
        match question {
            Question::Object(id) => match self.world.get(id) {
                Some(live) => Heard::answer(Ok(Reply::Object(Some(live.clone())))),
                None => self.heard(question.clone()),
            },
            Question::Events { namespace, about } => {
                let about: Vec<String> =
                    about.iter().filter(|uid| !world::is_forecast(uid)).cloned().collect();
                if about.is_empty() {
                    return Heard::answer(Ok(Reply::Events(Vec::new())));
                }
                self.heard(Question::Events { namespace: namespace.clone(), about })
            }
            Question::Reach(_) | Question::Sql(_) | Question::Word(_) | Question::ZooKeeper(_)
                if self.outside == Outside::Unasked =>
            {
                self.told.get(question).cloned().map_or(Heard::Nothing, Heard::answer)
            }
            Question::Reach(reach) => {
                let (Reach::Tcp { host, .. } | Reach::Http { url: host, .. }) = reach;
                self.supposed.insert(format!("{host} answers"));
                Heard::answer(Ok(Reply::Reached))
            }
            Question::Sql(SqlRequest { host, .. })
            | Question::Word(WordRequest { host, .. })
            | Question::ZooKeeper(ZooKeeperRequest { host, .. }) => {
                let past = Past { seen: &self.begun, done: &self.done };
                match self.subject.suppose(&self.seen, question, &past) {
                    Some(reply) => {
                        self.supposed.insert(format!("the server at {host} answers as it should"));
                        Heard::answer(Ok(reply))
                    }
                    None => Heard::Nothing,
                }
            }
        }
    }

    fn heard(&self, question: Question) -> Heard {
        match self.told.get(&question) {
            Some(answer) => Heard::answer(answer.clone()),
            None => Heard::Needs(question),
        }
    }

    /// One pass: plan, carry out, write the status. Steps that the server would refuse go into the
    /// status, as in a real pass.
    pub fn pass(&mut self) -> Progress<Decision> {
        self.seen.troubles.clear();
        self.found.clear();
        for _ in 0..LOOKS {
            let decision = match self.decide() {
                Progress::Needs(questions) => return Progress::Needs(questions),
                Progress::Done(decision) => decision,
            };
            match self.carry_out(&decision.plan) {
                Carried::Needs(question) => return Progress::Needs(vec![question]),
                Carried::Through => {
                    self.write_status(&decision.plan);
                    return Progress::Done(decision);
                }
                Carried::Found(id, live) => {
                    self.found.insert(id, *live);
                }
                Carried::Refused(trouble) => return self.tell_refusal(trouble),
            }
        }
        Progress::Done(Decision { plan: Plan::idle(), open: Vec::new() })
    }

    fn tell_refusal(&mut self, trouble: StepTrouble) -> Progress<Decision> {
        self.log.push(Happening::Refused {
            id: trouble.id.clone(),
            message: trouble.trouble.message.clone(),
        });
        self.seen.troubles.push(trouble);
        match self.decide() {
            Progress::Needs(questions) => Progress::Needs(questions),
            Progress::Done(decision) => {
                self.write_status(&decision.plan);
                let plan = Plan { steps: Vec::new(), ..decision.plan };
                Progress::Done(Decision { plan, ..decision })
            }
        }
    }

    fn carry_out(&mut self, plan: &Plan) -> Carried {
        for step in &plan.steps {
            match self.carry(step) {
                Carried::Through => self.services.look(&self.world),
                other => return other,
            }
        }
        Carried::Through
    }

    /// What is known of a name: in the world, or by a live read.
    pub(crate) fn look(&self, id: &ObjectId) -> Result<Option<Live>, Box<Question>> {
        if let Some(live) = self.world.get(id) {
            return Ok(Some(live.clone()));
        }
        let question = Question::Object(id.clone());
        match self.told.get(&question) {
            Some(Ok(Reply::Object(live))) => Ok(live.clone()),
            // Unreadable: the write itself would tell.
            Some(_) => Ok(None),
            None => Err(Box::new(question)),
        }
    }

    fn write_status(&mut self, plan: &Plan) {
        if let Some(write) = &plan.status {
            let mut value = self.seen.root.value.clone();
            let others = conditions_of_others(&value["status"], &write.status);
            value["status"] = write.status.clone();
            if !others.is_empty() {
                let ours = value["status"]["conditions"].as_array().cloned().unwrap_or_default();
                let all: Vec<Value> = ours.into_iter().chain(others).collect();
                value["status"]["conditions"] = Value::from(all);
            }
            self.set_root(value);
        }
        if let Some(transition) = &plan.transition {
            let note = plan.notes.first().map(|note| note.message.clone());
            self.log.push(Happening::Phase(transition.clone(), note.unwrap_or_default()));
        }
        self.log.extend(plan.events.iter().cloned().map(Happening::Event));
    }

    /// Takes the pause off the resource; whether there was one.
    pub(crate) fn lift_pause(&mut self) -> bool {
        let paused = pause::is_paused(&self.seen.root);
        if paused {
            let mut value = self.seen.root.value.clone();
            if let Some(annotations) = value["metadata"]["annotations"].as_object_mut() {
                annotations.remove(pause::PAUSED_ANNOTATION);
            }
            self.set_root(value);
        }
        paused
    }

    pub(crate) fn set_root(&mut self, value: Value) {
        if let Ok(live) = Live::new(value) {
            self.seen.root = live;
        }
    }
}

/// Conditions of types that the written status does not speak of.
fn conditions_of_others(before: &Value, written: &Value) -> Vec<Value> {
    let list = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let ours = list(written);
    let stays = |c: &Value| ours.iter().all(|o| o["type"] != c["type"]);
    list(before).into_iter().filter(stays).collect()
}

enum Heard {
    Answer(Box<Answer>),
    Needs(Question),
    Nothing,
}

impl Heard {
    fn answer(answer: Answer) -> Self {
        Self::Answer(Box::new(answer))
    }
}

/// What became of a step.
pub(crate) enum Carried {
    Through,
    Found(ObjectId, Box<Live>),
    Refused(StepTrouble),
    Needs(Question),
}
