//! The one status of a pass, from one climb, so that its parts cannot disagree.
//!
//! Must not contain anything that changes merely because time passes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Service;
use phased::Live;
use phased::condition::{Truth, Wanted};
use phased::deadline::Progress;
use phased::ladder::{Climb, Finding};
use phased::plan::StatusWrite;
use serde_json::json;

use super::api::{Phase, ZookeeperClusterStatus};
use super::conditions::{self, OURS};
use super::context::Context;
use super::ensemble::Mode;
use super::hearing::Hearing;
use super::phases::LADDER;
use super::report::{Members, Quorum};
use super::upgrade::{self, Memory, State};
use super::{deploying, reason};
use crate::parts::members::Members as _;
use crate::parts::scene::Scene;
use crate::parts::stored::{self, wanted};
use crate::parts::{course, reverts};

/// The outcome of a climb in one piece.
pub type Outcome = course::Outcome<Phase>;

/// Reads a climb.
pub fn outcome(climb: &Climb) -> Outcome {
    let message = "the servers run this generation and are one ensemble";
    let settled = Finding::new(&reason::ALL_CHECKS_PASSED, message);
    course::outcome(&LADDER, climb, (Phase::named(climb.phase), Phase::Failed), settled)
}

/// What the upgrade machine finds in a stored status. A status of the replaced operator gives its
/// `lastUpdateTime` to the clock, so that a takeover in the middle of an upgrade gains it no time.
pub fn remembered(status: &ZookeeperClusterStatus) -> Memory {
    let all = &status.conditions;
    let failed = conditions::find(all, "Error")
        .is_some_and(|error| error.status == "True" && error.reason == conditions::FAILED_REASON);
    let state = match (failed, conditions::is_true(all, "Upgrading")) {
        (true, _) => State::Failed,
        (false, true) => State::Upgrading,
        (false, false) => State::Idle,
    };
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    Memory {
        state,
        current: filled(&status.current_version),
        target: filled(&status.target_version),
        progress: status.progress.clone(),
    }
}

/// The clock of an upgrade that the replaced operator began, once the set's revision is known.
pub fn inherited(status: &ZookeeperClusterStatus, update_revision: &str) -> Option<Progress> {
    let upgrading = conditions::find(&status.conditions, "Upgrading")?;
    if status.phase.is_some() || upgrading.status != "True" {
        return None;
    }
    let updated = upgrading.message.parse().ok()?;
    let since = upgrading.last_update_time.parse().ok()?;
    let since = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(since);
    Some(Progress { mark: upgrade::mark(update_revision, updated), since })
}

/// The status after this pass.
pub fn compose(context: &Context, climb: &Climb, outcome: &Outcome) -> ZookeeperClusterStatus {
    let before = &context.status;
    let now = context.observed.now;
    let generation = context.observed.root.metadata.generation;
    let memory = &context.upgrade.memory;
    let set = context.stateful_set();
    let counts = set.as_ref().and_then(|set| set.status.clone()).unwrap_or_default();
    let ready = counts.ready_replicas.unwrap_or_default();
    let stays = before.phase == Some(outcome.phase);
    let progress = set.as_ref().and_then(|set| deploying::progress(context, set));
    let scripts = context.blueprint.as_ref().map(|b| b.scripts.as_str().to_owned());
    let mut after = ZookeeperClusterStatus {
        members: members(context),
        replicas: Some(counts.replicas),
        ready_replicas: Some(ready),
        internal_client_endpoint: internal(context)
            .or_else(|| before.internal_client_endpoint.clone()),
        external_client_endpoint: Some(external(context)),
        meta_root_created: recorded(context).or(before.meta_root_created),
        current_version: memory.current.clone(),
        target_version: memory.target.clone(),
        conditions: Vec::new(),
        observed_generation: generation,
        phase: Some(outcome.phase),
        phase_since: stored::since(before.phase_since.as_ref(), stays, now),
        progress: memory.progress.clone().or_else(|| progress.map(|(progress, _)| progress)),
        quorum: quorum(context).or_else(|| before.quorum.clone()),
        scripts: scripts.or_else(|| before.scripts.clone()),
        reverts: reverts::after(before.reverts.as_ref(), course::sent(context, climb), now),
    };
    let wanted_pods = context.blueprint.as_ref().and_then(|b| i32::try_from(b.valid.replicas).ok());
    let pods_ready = wanted_pods.map_or_else(
        || conditions::is_true(&before.conditions, "PodsReady"),
        |wanted| set.is_some() && ready == wanted,
    );
    let updated = counts.updated_replicas.unwrap_or_default();
    let historical = conditions::historical(pods_ready, memory.state, updated);
    after.conditions = conditions::settle_historical(&before.conditions, historical, now);
    let standard = standard(context, climb, outcome, &after);
    let generation = generation.unwrap_or_default();
    after.conditions.extend(conditions::settle(&before.conditions, standard, generation, now));
    after
}

fn members(context: &Context) -> Members {
    let servers = context.servers();
    let mut members = Members::default();
    for ordinal in servers.pods.keys() {
        let list =
            if servers.ready.contains(ordinal) { &mut members.ready } else { &mut members.unready };
        list.push(servers.pod_name(*ordinal));
    }
    members
}

fn client_service(context: &Context) -> Option<Service> {
    context.seen(&context.names.client_service())?.read().ok()
}

fn internal(context: &Context) -> Option<String> {
    let address = client_service(context)?.spec?.cluster_ip?;
    Some(with_port(&address, context.address.port))
}

/// The address of a load balancer in front of the client Service, by name or number.
fn external(context: &Context) -> String {
    let ingress = client_service(context)
        .and_then(|service| service.status?.load_balancer?.ingress?.into_iter().next());
    let host = ingress.and_then(|ingress| ingress.ip.or(ingress.hostname));
    host.map_or_else(|| "N/A".to_owned(), |host| with_port(&host, context.address.port))
}

/// An address of IPv6 stands in brackets before a port.
fn with_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Whether the record was read, in this pass, with the wanted size.
fn recorded(context: &Context) -> Option<bool> {
    let wanted = super::size::text(context.blueprint.as_ref()?.valid.replicas);
    let Hearing::Told((_, records)) = context.servers().records() else { return None };
    records.record.is_some_and(|node| node.data == wanted).then_some(true)
}

/// What the servers say, if they were asked in this pass.
fn quorum(context: &Context) -> Option<Quorum> {
    let servers = context.servers();
    let Hearing::Told(modes) = servers.modes() else { return None };
    if modes.is_empty() {
        return Some(Quorum { mode: "none".to_owned(), ..Quorum::default() });
    }
    let Hearing::Told((_, records)) = servers.records() else { return None };
    let of = |wanted: Mode| -> Vec<String> {
        let same = modes.iter().filter(|(_, mode)| **mode == Some(wanted));
        same.map(|(ordinal, _)| servers.pod_name(*ordinal)).collect()
    };
    let mode = mode_word(&modes);
    Some(Quorum {
        mode: mode.to_owned(),
        leader: of(Mode::Leader).into_iter().next(),
        followers: of(Mode::Follower),
        observers: of(Mode::Observer),
        voters: u32::try_from(records.membership.voters.len()).unwrap_or_default(),
    })
}

fn mode_word(modes: &BTreeMap<u32, Option<Mode>>) -> &'static str {
    if modes.values().any(|mode| *mode == Some(Mode::Leader)) {
        "replicated"
    } else if modes.values().any(|mode| *mode == Some(Mode::Standalone)) {
        "standalone"
    } else {
        "none"
    }
}

fn standard(
    context: &Context,
    climb: &Climb,
    outcome: &Outcome,
    after: &ZookeeperClusterStatus,
) -> Vec<Wanted> {
    let finding = &outcome.finding;
    let ready = wanted("Ready", Truth::from_bool(outcome.ready), finding.reason, &finding.message);
    let progressing = if context.paused() {
        let message = "the annotation steadfast.dev/paused is \"true\"; remove it to go on";
        wanted("Progressing", Truth::False, &reason::PAUSED, message)
    } else if outcome.ready {
        let done = &reason::RECONCILIATION_COMPLETE;
        wanted("Progressing", Truth::False, done, "nothing is left to do")
    } else {
        let truth = Truth::from_bool(outcome.progressing);
        wanted("Progressing", truth, finding.reason, &(finding.message.clone() + &held(climb)))
    };
    vec![ready, progressing, degraded(context, climb, outcome, after)]
}

/// Edits that wait for the end of a failed upgrade, each with its object and first field.
fn held(climb: &Climb) -> String {
    let notes = climb.judgement.notes.iter().filter(|note| note.reason == &reason::EDIT_HELD);
    notes.map(|note| format!("; {}: {}", reason::EDIT_HELD.name, note.message)).collect()
}

fn degraded(
    context: &Context,
    climb: &Climb,
    outcome: &Outcome,
    after: &ZookeeperClusterStatus,
) -> Wanted {
    let finding = &outcome.finding;
    if !outcome.ready {
        return if outcome.stuck {
            wanted("Degraded", Truth::True, finding.reason, &finding.message)
        } else if context.has_served() {
            let message = format!("{}: {}", finding.reason.name, finding.message);
            wanted("Degraded", Truth::True, &reason::MEMBERS_UNAVAILABLE, &message)
        } else {
            wanted("Degraded", Truth::False, &reason::NOT_YET_SERVING, "not served yet")
        };
    }
    let told = [&reason::CONFIGURATION_NOT_IN_FORCE, &reason::ACCOUNT_NOT_OURS];
    let notes = &climb.judgement.notes;
    if let Some(note) = told.iter().find_map(|r| notes.iter().find(|n| n.reason == *r)) {
        return wanted("Degraded", Truth::True, note.reason, &note.message);
    }
    if let Some(message) = reverts::fight(after.reverts.as_ref()) {
        return wanted("Degraded", Truth::True, &reason::MANAGERS_FIGHT, &message);
    }
    wanted("Degraded", Truth::False, &reason::ALL_CHECKS_PASSED, "nothing is lacking")
}

/// The write, when the stored status is not already this one.
pub fn write(root: &Live, after: &ZookeeperClusterStatus) -> Option<StatusWrite> {
    stored::write(root, json!(after), &OURS)
}

/// The stored status with other words in its standard conditions: for passes that could not look,
/// and for deletion.
pub fn restate(
    before: ZookeeperClusterStatus,
    generation: Option<i64>,
    now: jiff::Timestamp,
    wanted: Vec<Wanted>,
) -> ZookeeperClusterStatus {
    let settled =
        conditions::settle(&before.conditions, wanted, generation.unwrap_or_default(), now);
    let kept = before
        .conditions
        .iter()
        .filter(|c| OURS.contains(&c.kind.as_str()) && !settled.iter().any(|n| n.kind == c.kind));
    let conditions = kept.cloned().chain(settled.iter().cloned()).collect();
    ZookeeperClusterStatus { conditions, ..before }
}
