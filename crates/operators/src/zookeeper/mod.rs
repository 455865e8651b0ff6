//! The `ZookeeperCluster` controller: an ensemble of ZooKeeper servers, from its manifest to one
//! quorum, and from one version to the next.
//!
//! Everything here is a function of one snapshot. [`plan`](Controller::plan) reads it into a
//! [`context::Context`], climbs the ladder of [`phases`], and states the outcome. It never acts: what
//! is to be written inside ZooKeeper is data, not a session. The decisions and their reasons stand in
//! docs/design/0004-zookeeper.md.
//!
//! | To find | Look in |
//! |---|---|
//! | the resource as users write it | [`api`], [`options`], [`report`], [`definition`] |
//! | how it is checked | [`valid`], [`settings`], [`family`], [`held`] |
//! | the phases | [`phases`], [`provisioning`], [`deploying`], [`forming`] |
//! | children | [`names`], [`blueprint`], [`config`], [`services`], [`servers`], [`pod`] |
//! | what the servers say | [`ensemble`], [`hearing`]; what a forecast supposes of it, `supposed` |
//! | size, membership, volumes of members that left, rolls | [`size`], [`leavers`], [`rolls`] |
//! | upgrades | [`upgrade`] |
//! | what the status says | [`status`], [`conditions`], [`reason`] |
//! | deletion | [`deletion`] |

pub mod api;
pub mod blueprint;
pub mod conditions;
pub mod config;
pub mod context;
pub mod definition;
pub mod deletion;
pub mod deploying;
pub mod ensemble;
pub mod family;
pub mod forming;
pub mod hearing;
pub mod held;
pub mod leavers;
pub mod names;
pub mod options;
pub mod phases;
pub mod pod;
pub mod provisioning;
pub mod reason;
pub mod report;
pub mod rolls;
mod schema;
pub mod servers;
pub mod services;
pub mod settings;
pub mod size;
pub mod status;
mod supposed;
pub mod troubled;
pub mod upgrade;
pub mod valid;

use jiff::Timestamp;
use phased::child::{INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL};
use phased::fact::Reply;
use phased::ladder::{Climb, LadderDoc, Stand};
use phased::step::Finalizer;
use phased::{
    Controller, KindRef, Live, ObjectId, Observed, Past, Plan, Question, Settings, Step, Trigger,
    Trouble, Wake, Want, Watch,
};

use api::{Phase, Written};
use context::Context;
use names::Names;
use phases::LADDER;
use status::Outcome;

use crate::parts::kinds;
use crate::parts::scene::Scene;
use crate::parts::{course, reverts};

/// Finalizer of the replaced operator, kept by its name.
pub const FINALIZER: &str = "cleanUpZookeeperPVC";
/// Field manager of this controller.
pub const MANAGER: &str = "steadfast/zookeeper";
/// The custom resource.
pub const KIND: KindRef = KindRef {
    group: "zookeeper.pravega.io",
    version: "v1beta1",
    kind: "ZookeeperCluster",
    plural: "zookeeperclusters",
    namespaced: true,
};
/// The controller of `ZookeeperCluster`.
pub enum ZookeeperController {}

impl Controller for ZookeeperController {
    type Resource = Written;
    const NAME: &'static str = "zookeeper";
    const KIND: KindRef = KIND;

    fn ladder() -> LadderDoc {
        phases::documentation()
    }

    /// Pods and claims carry the replaced operator's labels only: whatever is in a template cannot
    /// change without a restart.
    fn watches() -> Vec<Watch> {
        let watch = |kind, selector: String, trigger| Watch {
            kind,
            selector: Some(selector),
            trigger: Trigger::Label(trigger),
        };
        let ours = format!("{MANAGED_BY_LABEL}={MANAGED_BY}");
        let mut all: Vec<Watch> = [
            kinds::stateful_set_kind(),
            kinds::config_map_kind(),
            kinds::service_kind(),
            kinds::budget_kind(),
            kinds::service_account_kind(),
        ]
        .into_iter()
        .map(|kind| watch(kind, ours.clone(), INSTANCE_LABEL))
        .collect();
        all.push(watch(kinds::pod_kind(), format!("kind={}", pod::MEMBER_KIND), "app"));
        all.push(watch(kinds::claim_kind(), "app,uid".to_owned(), "app"));
        all
    }

    fn wants(root: &Live) -> Vec<Want> {
        let names = names_of(root);
        let account = root.value.pointer("/spec/pod/serviceAccountName");
        let account = account.and_then(|a| a.as_str()).filter(|name| !name.is_empty());
        let mut wants: Vec<Want> = [
            names.stateful_set(),
            names.config_map(),
            names.headless_service(),
            names.client_service(),
            names.admin_service(),
            names.budget(),
        ]
        .map(Want::Named)
        .into();
        wants.extend(account.map(|name| Want::Named(names.service_account(name))));
        let labelled = |kind, labels: &[(&str, &str)]| Want::Labelled {
            kind,
            namespace: names.namespace.clone(),
            labels: labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        };
        let app = ("app", names.name.as_str());
        wants.push(labelled(kinds::pod_kind(), &[app, ("kind", pod::MEMBER_KIND)]));
        wants.push(labelled(kinds::claim_kind(), &[app, ("uid", root.uid())]));
        wants
    }

    fn plan(observed: &Observed<Written>) -> Plan {
        let context = Context::read(observed);
        if observed.root.deletion_time().is_some() {
            return deletion::plan(&context);
        }
        let climb = climb(&context);
        if !climb.judgement.asks.is_empty() {
            return Plan { asks: climb.judgement.asks, wake: Wake::Now, ..Plan::idle() };
        }
        state(&context, &climb)
    }

    fn may_delete_data(resource: &Written) -> bool {
        let persistence = resource.spec.persistence.as_ref();
        persistence.is_some_and(|p| p.reclaim_policy == api::ReclaimPolicy::Delete)
    }

    fn suppose(
        observed: &Observed<Written>,
        question: &Question,
        past: &Past<'_>,
    ) -> Option<Reply> {
        supposed::reply(&Context::read(observed), question, past)
    }

    fn unreadable(root: &Live, error: &str, _: &Settings, now: Timestamp) -> Plan {
        troubled::unreadable(root, error, now)
    }

    fn troubled(root: &Live, trouble: &Trouble, now: Timestamp) -> Plan {
        troubled::troubled(root, trouble, now)
    }
}

fn names_of(root: &Live) -> Names {
    Names {
        name: root.metadata.name.clone().unwrap_or_default(),
        namespace: root.metadata.namespace.clone().unwrap_or_default(),
    }
}

/// The resource itself, as troubles and notes name it.
pub fn resource_id(names: &Names) -> ObjectId {
    ObjectId::new(KIND, names.namespace.clone(), names.name.clone())
}

/// Climbs from where the status stands. A cluster that has served is tended on all rungs, and shows
/// no bring-up when it is taken over.
fn climb(context: &Context) -> Climb {
    let stand = if context.has_served() { Stand::Aside } else { stand(context) };
    let mut climb = LADDER.climb(context, stand);
    climb.judgement.asks.sort();
    climb.judgement.asks.dedup();
    climb
}

fn stand(context: &Context) -> Stand {
    let may_advance = !context.paused() && dwell_end(context).is_none();
    course::stand(&LADDER, context.status.phase.map(Phase::as_str), may_advance)
}

fn dwell_end(context: &Context) -> Option<Timestamp> {
    let since = context.status.phase_since.as_ref();
    course::dwell_end(since, &context.observed.settings, context.observed.now)
}

/// The plan of a climb whose questions are all answered.
fn state(context: &Context, climb: &Climb) -> Plan {
    let outcome = status::outcome(climb);
    let after = status::compose(context, climb, &outcome);
    let before = context.status.phase.map(Phase::as_str);
    let transition = course::transition(before, outcome.phase.as_str(), &outcome.finding);
    let mut plan = Plan {
        status: status::write(&context.observed.root, &after),
        wake: wake(context, climb, &outcome, &after),
        ..course::plan(context, climb, &outcome, transition)
    };
    // Nothing follows the removal of a finalizer.
    plan.steps.sort_by_key(|step| matches!(step, Step::Finalizer(Finalizer::Remove(_))));
    plan
}

fn wake(
    context: &Context,
    climb: &Climb,
    outcome: &Outcome,
    after: &api::ZookeeperClusterStatus,
) -> Wake {
    let upgrading = context.upgrade.memory.state == upgrade::State::Upgrading;
    let deadline = context.upgrade.deadline.filter(|_| upgrading && !context.paused());
    let times = [
        dwell_end(context),
        after.reverts.as_ref().map(reverts::forgotten_at),
        deadline.map(|deadline| deadline.max(context.observed.now)),
    ];
    course::wake(context, climb, outcome.progressing, &times)
}
