//! The `Database` controller: one PostgreSQL server from its manifest to Ready, in phases.
//!
//! Everything here is a function of one snapshot. [`plan`](Controller::plan) reads it into a
//! [`context::Context`], climbs the ladder of [`phases`], and states the outcome. It never acts: a
//! password is asked for, not made; SQL is data, not a session.
//!
//! | To find | Look in |
//! |---|---|
//! | the resource as users write it | [`api`], [`report`], [`amount`], [`valid`], [`held`] |
//! | the phases | [`phases`], [`provisioning`], [`deploying`], [`verifying`] |
//! | children | [`names`], [`labels`], [`blueprint`], [`secrets`], [`config`], [`servers`], [`services`] |
//! | standbys | [`roles`], [`stream`], [`replication`], [`standbys`], [`growth`] |
//! | SQL | [`sql`], [`verify`], [`remedy`], [`recovery`], [`withheld`]; what a forecast supposes of it, `supposed` |
//! | what the status says | [`status`], [`reason`], [`causes`] |
//! | deletion | [`deletion`] |

pub mod amount;
pub mod api;
pub mod blueprint;
pub mod causes;
pub mod config;
pub mod context;
pub mod deletion;
pub mod dependencies;
pub mod deploying;
pub mod growth;
pub mod held;
pub mod image;
pub mod labels;
pub mod names;
pub mod parameters;
pub mod phases;
pub mod provisioning;
pub mod reason;
pub mod record;
pub mod recovery;
pub mod remedy;
pub mod replication;
pub mod report;
pub mod roles;
mod schema;
pub mod secrets;
pub mod servers;
pub mod services;
pub mod sql;
pub mod standbys;
pub mod status;
pub mod stream;
mod supposed;
pub mod troubled;
pub mod valid;
pub mod verify;
pub mod verifying;
pub mod withheld;

use std::collections::BTreeMap;

use jiff::Timestamp;
use phased::child::{INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL};
use phased::ladder::{Climb, LadderDoc, Stand, Verdict};
use phased::{
    Controller, KindRef, Live, ObjectId, Observed, Past, Plan, Question, Reply, Settings, Trigger,
    Trouble, Wake, Want, Watch,
};

use api::{Database, Phase};
use context::Context;
use names::Names;
use phases::LADDER;
use status::Outcome;

use crate::parts::course;
use crate::parts::reverts;
use crate::parts::scene::Scene;

/// Finalizer, put on before anything is created.
pub const FINALIZER: &str = "database.example.com/finalizer";
/// Field manager of this controller.
pub const MANAGER: &str = "steadfast/database";
/// The custom resource.
pub const KIND: KindRef = KindRef {
    group: "database.example.com",
    version: "v1",
    kind: "Database",
    plural: "databases",
    namespaced: true,
};

/// The controller of [`Database`].
pub enum DatabaseController {}

impl Controller for DatabaseController {
    type Resource = Database;
    const NAME: &'static str = "database";
    const KIND: KindRef = KIND;

    fn ladder() -> LadderDoc {
        ladder()
    }

    fn watches() -> Vec<Watch> {
        let selector = format!("{MANAGED_BY_LABEL}={MANAGED_BY}");
        [
            names::stateful_set_kind(),
            names::service_kind(),
            names::budget_kind(),
            names::config_map_kind(),
            names::secret_kind(),
            names::claim_kind(),
            names::pod_kind(),
        ]
        .into_iter()
        .map(|kind| Watch {
            kind,
            selector: Some(selector.clone()),
            trigger: Trigger::Label(INSTANCE_LABEL),
        })
        .chain([Watch {
            // A person may bring the credentials along, without our labels: edits of them count.
            kind: names::secret_kind(),
            selector: None,
            trigger: Trigger::NameSuffix(names::CREDENTIALS_SUFFIX),
        }])
        .collect()
    }

    fn wants(root: &Live) -> Vec<Want> {
        let name = root.metadata.name.clone().unwrap_or_default();
        let namespace = root.metadata.namespace.clone().unwrap_or_default();
        let names = Names::new(namespace.clone(), name.clone());
        let mut wants: Vec<Want> = [
            names.stateful_set(),
            names.client_service(),
            names.headless_service(),
            names.read_only_service(),
            names.budget(),
            names.config_map(),
            names.superuser_secret(),
            names.replication_secret(),
            names.credentials_secret(),
        ]
        .map(Want::Named)
        .into();
        let labels: BTreeMap<String, String> = labels::selector(&name);
        wants.extend([names::pod_kind(), names::claim_kind()].map(|kind| Want::Labelled {
            kind,
            namespace: namespace.clone(),
            labels: labels.clone(),
        }));
        // Somebody may have given them other labels.
        let ordinals = 0..valid::MOST_REPLICAS;
        let parts = ordinals.flat_map(|n| [names.pod(n), names.claim(n)]);
        wants.extend(parts.map(Want::Named));
        wants
    }

    fn plan(observed: &Observed<Database>) -> Plan {
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

    fn suppose(
        observed: &Observed<Database>,
        question: &Question,
        past: &Past<'_>,
    ) -> Option<Reply> {
        supposed::reply(&Context::read(observed), question, past)
    }

    fn may_delete_data(resource: &Database) -> bool {
        resource.may_lose_volumes()
    }

    fn unreadable(root: &Live, error: &str, _: &Settings, now: Timestamp) -> Plan {
        troubled::unreadable(root, error, now)
    }

    fn troubled(root: &Live, trouble: &Trouble, now: Timestamp) -> Plan {
        troubled::troubled(root, trouble, now)
    }
}

/// The ladder with every reason and condition, for `docs/` and for checks.
pub fn ladder() -> LadderDoc {
    phases::documentation()
}

/// The resource itself, as troubles and notes name it.
pub fn resource_id(names: &Names) -> ObjectId {
    ObjectId::new(KIND, names.namespace.clone(), names.name.clone())
}

/// Climbs from where the status stands. A Database that has served is tended on all rungs, however
/// far back its phase went.
fn climb(context: &Context) -> Climb {
    let stand = stand(context);
    let mut climb = LADDER.climb(context, stand);
    if context.status.system_identifier.is_some() && climb.verdict != Verdict::Done {
        climb = LADDER.climb(context, Stand::Aside);
    }
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
    Plan {
        status: status::write(&context.observed.root, &after),
        wake: wake(context, climb, &outcome, &after),
        ..course::plan(context, climb, &outcome, transition)
    }
}

fn wake(context: &Context, climb: &Climb, outcome: &Outcome, after: &api::DatabaseStatus) -> Wake {
    let retry = after.retry.as_ref().filter(|_| outcome.phase == Phase::Failed);
    let times = [
        dwell_end(context),
        retry.map(|retry| retry.next_try.0.max(context.observed.now)),
        after.reverts.as_ref().map(reverts::forgotten_at),
    ];
    course::wake(context, climb, outcome.progressing, &times)
}
