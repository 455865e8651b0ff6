//! One pass over one resource: observe, plan, carry out, report.
//!
//! Decides nothing about the resource. How a pass ends ([`End`]) becomes the time of the next one
//! in the driver.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use phased::fact::Fate;
use phased::step::{Finalizer, Step};
use phased::{
    Controller, KindRef, Live, ObjectId, Observed, Plan, Settings, StepTrouble, Trouble, Wake,
    controller,
};

use crate::api::Server;
use crate::clock::Clock;
use crate::external::Outside;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::report::Reporter;
use crate::review::review;
use crate::status::write_status;
use crate::steps::{Done, Hands};
use crate::store::Store;
use crate::trouble::ApiError;
use crate::watch::Selection;

/// What passes work with, shared by all controllers.
#[derive(Clone)]
pub(crate) struct Means {
    /// The API server.
    pub(crate) server: Server,
    /// What is known of the cluster.
    pub(crate) store: Store,
    /// What the watches tell of, by kind.
    pub(crate) selections: Arc<BTreeMap<KindRef, Selection>>,
    /// Facts and actions outside the watched objects.
    pub(crate) outside: Arc<dyn Outside>,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
    /// Passwords and jitter.
    pub(crate) random: Arc<dyn Random>,
    /// Counters.
    pub(crate) metrics: Metrics,
    /// Events.
    pub(crate) reporter: Reporter,
    /// What the operator was started with.
    pub(crate) settings: Settings,
}

impl Means {
    /// Takes in what the server answered about an object. What no watch tells of is not kept, or
    /// nobody would ever say that it has changed or is gone.
    pub(crate) fn learn(&self, id: &ObjectId, live: Live) {
        let told = self.selections.get(&id.kind).is_none_or(|selection| selection.keeps(&live));
        if told {
            self.store.put(id, live);
        } else {
            self.store.forget(id, &live);
        }
    }
}

/// How a pass ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum End {
    /// The plan was carried out; look again then.
    Settled(Wake),
    /// Something was written: look at once whether it did what it should. The delay grows while
    /// passes in a row write, so that no hot loop is possible.
    Wrote,
    /// The view was stale: look again at once.
    LookAgain,
    /// Something could not be done.
    Troubled {
        /// Who must act.
        fate: Fate,
        /// How long the server asked us to stay away.
        retry_after: Option<Duration>,
    },
    /// The resource does not exist.
    Gone,
}

/// How often live reads may change the view within one pass.
const LOOKS: usize = 16;

/// What carrying the steps of a plan led to.
enum Carried {
    Through,
    Seen(ObjectId, Box<Live>),
    Failed(StepTrouble, Option<Duration>),
    Stale,
}

/// One pass of controller `C` over the resource `id`.
pub(crate) async fn pass<C: Controller>(means: &Means, id: &ObjectId) -> End {
    let Some(root) = means.store.get(id) else { return End::Gone };
    let root = root.as_ref().clone();
    let view = match root.read::<C::Resource>() {
        Ok(resource) => Observed {
            resource,
            objects: means.store.select(&C::wants(&root)),
            root,
            facts: phased::Facts::new(),
            troubles: Vec::new(),
            now: means.clock.now(),
            settings: means.settings.clone(),
        },
        Err(error) => return unreadable::<C>(means, id, &root, &error.to_string()).await,
    };
    Pass::<C> { means, id, view, rounds: 0, manager: controller::manager::<C>() }.run().await
}

async fn unreadable<C: Controller>(means: &Means, id: &ObjectId, root: &Live, error: &str) -> End {
    means.metrics.unreadable(C::NAME);
    tracing::error!(object = %id, error, "resource does not parse");
    let plan = C::unreadable(root, error, &means.settings, means.clock.now());
    let manager = controller::manager::<C>();
    let hands = Hands { means, manager: &manager, root: id };
    for step in &plan.steps {
        if let Err(error) = hands.carry_out(step, root).await {
            return end_of(&error);
        }
    }
    match write_status(means, id, &plan, &manager).await {
        Ok(_) => End::Settled(plan.wake),
        Err(error) => end_of(&error),
    }
}

/// The trouble of a pass that panicked.
pub(crate) fn panicked() -> Trouble {
    Trouble {
        fate: Fate::WeAreWrong,
        reason: "InternalError".to_owned(),
        message: "the operator met a fault of its own with this resource; its log has the details"
            .to_owned(),
    }
}

/// The trouble of a pass that was cut off.
pub(crate) fn timed_out(bound: Duration) -> Trouble {
    Trouble {
        fate: Fate::WorldMayHeal,
        reason: "PassTimedOut".to_owned(),
        message: format!("the cluster did not answer within {} s; tried again", bound.as_secs()),
    }
}

/// Lets the status tell of a pass that could not end by itself.
pub(crate) async fn report<C: Controller>(means: &Means, id: &ObjectId, trouble: &Trouble) {
    let Some(root) = means.store.get(id) else { return };
    let plan = C::troubled(&root, trouble, means.clock.now());
    // Whether it is written or not is told there; the next pass comes either way.
    let _ = write_status(means, id, &plan, &controller::manager::<C>()).await;
}

struct Pass<'a, C: Controller> {
    means: &'a Means,
    id: &'a ObjectId,
    view: Observed<C::Resource>,
    rounds: usize,
    manager: String,
}

impl<C: Controller> Pass<'_, C> {
    async fn run(&mut self) -> End {
        for _ in 0..LOOKS {
            let plan = self.decide().await;
            review::<C>(&plan, &self.view, &self.means.metrics);
            match self.carry_out(&plan).await {
                Carried::Through => return self.finish(&plan).await,
                Carried::Seen(id, live) => {
                    self.view.objects.insert(id, *live);
                }
                Carried::Stale => return End::LookAgain,
                Carried::Failed(trouble, retry_after) => {
                    return self.tell(trouble, retry_after).await;
                }
            }
        }
        End::LookAgain
    }

    /// Plans, answering questions for as many rounds as a pass has.
    async fn decide(&mut self) -> Plan {
        loop {
            let plan = C::plan(&self.view);
            let open: Vec<_> =
                plan.asks.iter().filter(|q| !self.view.facts.contains_key(*q)).collect();
            if open.is_empty() {
                return plan;
            }
            if self.rounds >= Plan::ROUNDS {
                tracing::error!(object = %self.id, "a plan asks for more rounds than a pass has");
                return plan;
            }
            self.rounds += 1;
            let answers =
                join_all(open.iter().map(|question| self.means.outside.answer(question))).await;
            for (question, answer) in open.into_iter().zip(answers) {
                self.view.facts.insert(question.clone(), answer);
            }
        }
    }

    async fn carry_out(&mut self, plan: &Plan) -> Carried {
        let hands = Hands { means: self.means, manager: &self.manager, root: self.id };
        for step in &plan.steps {
            match hands.carry_out(step, &self.view.root).await {
                Ok(Done::Written(Some(live))) if matches!(step, Step::Finalizer(_)) => {
                    // The patch tested the version, so nothing but the finalizers differs.
                    self.view.root = live;
                }
                Ok(Done::Written(_) | Done::Already) => {}
                Ok(Done::Found(id, live)) => return Carried::Seen(id, Box::new(live)),
                Err(ApiError::LookAgain(why)) => {
                    tracing::debug!(object = %self.id, why, "looking again");
                    refresh(self.means, &subject_of(step, self.id).0).await;
                    return Carried::Stale;
                }
                Err(error) => {
                    tracing::warn!(object = %self.id, step = %name_of(step), %error, "step failed");
                    let (id, verb) = subject_of(step, self.id);
                    let trouble = StepTrouble { id, verb, trouble: error.trouble() };
                    return Carried::Failed(trouble, retry_after_of(&error));
                }
            }
        }
        Carried::Through
    }

    async fn finish(&mut self, plan: &Plan) -> End {
        let released =
            plan.steps.iter().any(|s| matches!(s, Step::Finalizer(Finalizer::Remove(_))));
        if released {
            self.announce(plan);
            return End::Settled(plan.wake.clone());
        }
        match write_status(self.means, self.id, &self.rebased(plan), &self.manager).await {
            Ok(written) => {
                if written {
                    self.announce(plan);
                } else {
                    self.publish(plan);
                }
                if plan.steps.is_empty() { End::Settled(plan.wake.clone()) } else { End::Wrote }
            }
            Err(error) => end_of(&error),
        }
    }

    /// The plan with the version of the root after our own finalizer write.
    fn rebased(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        if let Some(status) = &mut plan.status {
            self.view.root.resource_version().clone_into(&mut status.resource_version);
        }
        plan
    }

    /// Lets the status tell of a step that failed, and ends the pass.
    async fn tell(&mut self, trouble: StepTrouble, retry_after: Option<Duration>) -> End {
        let fate = trouble.trouble.fate;
        self.view.troubles.push(trouble);
        let plan = self.decide().await;
        // Events speak of what was done; of what was not, only a move may be told.
        let events = if plan.transition.is_some() { plan.events.clone() } else { Vec::new() };
        match self.finish(&Plan { steps: Vec::new(), events, ..plan }).await {
            End::Settled(_) | End::Wrote => End::Troubled { fate, retry_after },
            other => other,
        }
    }

    fn announce(&self, plan: &Plan) {
        if let Some(moved) = &plan.transition {
            let from = if moved.from.is_empty() { "New" } else { &moved.from };
            tracing::info!(
                controller = C::NAME, namespace = %self.id.namespace, name = %self.id.name,
                from, to = %moved.to, reason = moved.reason,
                "STATE TRANSITION: {from} -> {}", moved.to
            );
            self.means.metrics.moved(C::NAME, &moved.to);
        }
        self.publish(plan);
    }

    fn publish(&self, plan: &Plan) {
        for event in &plan.events {
            self.means.reporter.publish(self.id, &self.view.root, event);
        }
    }
}

/// Reads what a refused write was about, so that the next pass does not build on the same view even
/// if no event ever tells of the change.
pub(crate) async fn refresh(means: &Means, id: &ObjectId) {
    match means.server.get(id).await {
        Ok(Some(live)) => means.learn(id, live),
        Ok(None) => {
            if let Some(known) = means.store.get(id) {
                means.store.remove(id, known.uid(), crate::store::version(&known));
            }
        }
        Err(error) => tracing::debug!(object = %id, %error, "could not be read again"),
    }
}

fn retry_after_of(error: &ApiError) -> Option<Duration> {
    match error {
        ApiError::Trouble { retry_after, .. } => *retry_after,
        ApiError::NotFound | ApiError::LookAgain(_) => None,
    }
}

fn end_of(error: &ApiError) -> End {
    match error {
        ApiError::NotFound | ApiError::LookAgain(_) => End::LookAgain,
        ApiError::Trouble { trouble, retry_after } => {
            End::Troubled { fate: trouble.fate, retry_after: *retry_after }
        }
    }
}

/// The object that a step is about, and its verb as RBAC spells it.
fn subject_of(step: &Step, root: &ObjectId) -> (ObjectId, String) {
    match step {
        Step::Apply(s) => (s.id.clone(), "patch".to_owned()),
        Step::CreateOnce(s) => (s.id.clone(), "create".to_owned()),
        Step::Derive(s) => (s.id.clone(), "patch".to_owned()),
        Step::Delete(s) => (s.id.clone(), "delete".to_owned()),
        Step::Finalizer(_) => (root.clone(), "patch".to_owned()),
        Step::Act(s) => (root.clone(), s.name.to_owned()),
    }
}

fn name_of(step: &Step) -> String {
    match step {
        Step::Apply(s) => format!("apply {}", s.id),
        Step::CreateOnce(s) => format!("create {}", s.id),
        Step::Derive(s) => format!("derive {}", s.id),
        Step::Delete(s) => format!("delete {}", s.id),
        Step::Finalizer(_) => "finalizer".to_owned(),
        Step::Act(s) => s.name.to_owned(),
    }
}
