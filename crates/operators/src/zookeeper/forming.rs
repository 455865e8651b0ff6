//! The rung `Forming`: the servers are one ensemble of the right members, with the right record, and
//! run the configuration that was written.

use std::collections::BTreeMap;

use phased::Step;
use phased::ladder::{Finding, Judgement, Verdict};

use super::blueprint::Blueprint;
use super::context::{Context, Tending};
use super::ensemble::Mode;
use super::hearing::{Hearing, Servers};
use super::settings::Settings;
use super::{provisioning, reason, size};
use crate::parts::members::Members;

/// How often the servers are asked again while something is missing, in seconds.
const LOOK_AGAIN_SECONDS: i64 = 5;
/// Settings that a server tells by the word `conf`.
const TOLD: [&str; 6] = [
    "initLimit",
    "syncLimit",
    "tickTime",
    "maxClientCnxns",
    "minSessionTimeout",
    "maxSessionTimeout",
];

/// Judges the ensemble.
pub fn form(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    let Some(blueprint) = &context.blueprint else { return tending.judgement };
    let servers = context.servers();
    let count = blueprint.valid.replicas;
    let records = servers.records();
    let modes = servers.modes();
    let settings = servers.settings();
    for asks in [asks_of(&records), asks_of(&modes), asks_of(&settings)] {
        tending.judgement.asks.extend(asks);
    }
    if !tending.judgement.asks.is_empty() {
        tending.judge(Verdict::Asking);
        return tending.judgement;
    }
    let (Hearing::Told((_, records)), Hearing::Told(modes)) = (records, modes) else {
        let message = "no server grants a session: there is no quorum, or it cannot be reached";
        wait(&mut tending, Finding::new(&reason::NO_QUORUM, message));
        return tending.judgement;
    };
    let ground = context.ground(&blueprint.valid, &servers);
    let actions = [
        size::record(&servers, &records, count),
        size::removal(&servers, &records, count),
        size::addition(&ground, &records),
    ];
    act(&mut tending, actions.into_iter().flatten().collect());
    let gone = context.leavers.deletes(count, &records);
    provisioning::discard(&mut tending, gone);
    missing(&mut tending, count, &servers, &modes);
    for ordinal in (0..count).filter(|ordinal| !records.membership.voters.contains(ordinal)) {
        let message = format!("{} is not listed as a voter", servers.pod_name(ordinal));
        wait(&mut tending, Finding::new(&reason::MEMBER_MISSING, message));
    }
    if let Hearing::Told(told) = settings {
        compare(&mut tending, blueprint, &told);
    }
    tending.judgement
}

fn asks_of<T>(hearing: &Hearing<T>) -> Vec<phased::Question> {
    match hearing {
        Hearing::Asks(asks) => asks.clone(),
        Hearing::Silent(_) | Hearing::Told(_) => Vec::new(),
    }
}

fn wait(tending: &mut Tending<'_>, finding: Finding) {
    tending.wait(finding, size::GATE, LOOK_AGAIN_SECONDS);
}

fn act(tending: &mut Tending<'_>, actions: Vec<phased::step::Action>) {
    let Some(first) = actions.first() else { return };
    let names = actions.iter().map(|action| action.name).collect::<Vec<_>>();
    let refused =
        tending.context.observed.troubles.iter().find(|t| names.contains(&t.verb.as_str()));
    if let Some(trouble) = refused {
        tending.refused(trouble);
        return;
    }
    let doing = format!("{}: {}", first.name, first.why);
    let leaving = format!("{doing}; it is not done");
    tending.judgement.steps.extend(actions.into_iter().map(Step::Act));
    tending.work(&reason::PREPARING_ENSEMBLE, &doing, &leaving);
}

/// Every member serves, and one of them leads.
fn missing(
    tending: &mut Tending<'_>,
    count: u32,
    servers: &Servers<'_>,
    modes: &BTreeMap<u32, Option<Mode>>,
) {
    for ordinal in 0..count {
        let why = match modes.get(&ordinal) {
            Some(Some(_)) => continue,
            Some(None) => "serves nobody by its own word",
            None => "is not ready",
        };
        let message = format!("{} {why}", servers.pod_name(ordinal));
        wait(tending, Finding::new(&reason::MEMBER_MISSING, message));
    }
    let leads = |mode: &Option<Mode>| matches!(mode, Some(Mode::Leader | Mode::Standalone));
    if !modes.values().any(leads) {
        let message = "no server leads";
        wait(tending, Finding::new(&reason::NO_QUORUM, message));
    }
}

/// Whether every server runs the settings that were written. After a roll of ours they must; a
/// cluster that was taken over may run older ones, which is told and restarts nobody.
fn compare(
    tending: &mut Tending<'_>,
    blueprint: &Blueprint,
    told: &BTreeMap<u32, BTreeMap<String, String>>,
) {
    let differs = told.iter().find_map(|(ordinal, settings)| {
        let field = difference(&blueprint.valid.settings, settings)?;
        Some((tending.context.pod_id(*ordinal).name, field))
    });
    let Some((pod, field)) = differs else { return };
    let finding = Finding::new(&reason::CONFIGURATION_NOT_IN_FORCE, format!("{pod}: {field}"));
    if blueprint.template_digest().is_some() {
        wait(tending, finding);
    } else {
        tending.note(None, finding);
    }
}

fn difference(wanted: &Settings, told: &BTreeMap<String, String>) -> Option<String> {
    TOLD.iter().find_map(|name| {
        let (wanted, told) = (wanted.value(name)?, told.get(*name)?);
        (wanted != told).then(|| format!("runs with {name}={told}, and {wanted} is written"))
    })
}
