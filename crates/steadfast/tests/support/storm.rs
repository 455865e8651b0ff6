//! One Database under every fault that the simulator has, for as long as a user keeps it busy.
//!
//! Everything here runs under virtual time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use sim::builtin::pods::images::ImageRule;
use sim::external::postgres::Conditions;
use sim::faults::{Crash, Effect, Match, Often, Rule};

use super::{Bench, NAME, OPERATOR, Operator, TEST_DB, login};

/// How often each kind of fault took effect.
pub(crate) type Fired = BTreeMap<String, u64>;

/// Kinds of disturbance that are taken in turn.
const TURNS: u64 = 16;

/// Lets the storm blow for `duration`, then lets all settle; answers what fired.
pub(crate) async fn blow(bench: &Bench, seed: u64, duration: Duration) -> Fired {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut fired = Fired::new();
    let mut operator = bench.operator();
    bench.apply(TEST_DB);
    bench.settle(NAME).await;
    login::write_rows(&bench.world).await;
    bench.world.cluster.with(|core| {
        rules().into_iter().for_each(|rule| {
            core.faults.add(rule);
        })
    });
    let began = tokio::time::Instant::now();
    let mut turn = 0;
    while began.elapsed() < duration {
        if operator.handle.crashed() {
            operator = restart(bench, operator);
        }
        *fired.entry(disturb(bench, &operator, turn % TURNS, &mut random)).or_default() += 1;
        turn += 1;

        tokio::time::sleep(Duration::from_millis(random.u64(8_000..32_000))).await;
        heal(bench);
    }
    bench.world.cluster.with(|core| core.faults.clear());
    if operator.handle.crashed() {
        operator = restart(bench, operator);
    }
    bench.edit(|database| database["spec"]["image"] = json!("postgres:14"));
    assert!(bench.ready(NAME, Duration::from_secs(1500)).await, "{}", bench.says(NAME));
    assert!(!operator.ended(), "the operator ended by itself");
    let effects = bench.world.cluster.with(|core| core.faults.fired_by_effect());
    fired.extend(effects.into_iter().map(|(name, count)| (name.to_owned(), count)));
    fired
}

fn restart(bench: &Bench, operator: Operator) -> Operator {
    operator.kill();
    bench.operator()
}

/// Faults of the API, each by chance.
fn rules() -> Vec<Rule> {
    let all = || Match::any().by(OPERATOR);
    let writes = || Match::writes().by(OPERATOR);
    let watches = || Match::verbs(&["watch"]).by(OPERATOR);
    let reads = || Match::verbs(&["get", "list"]).by(OPERATOR);
    let respond = |code, retry_after| Effect::Respond { code, retry_after };
    let denied = Effect::Deny { message: "denied by a fault".to_owned() };
    [
        (writes(), 0.04, respond(409, None)),
        (all(), 0.02, respond(429, Some(1))),
        (all(), 0.02, respond(500, None)),
        (all(), 0.02, respond(503, None)),
        (all(), 0.02, respond(504, None)),
        (writes(), 0.04, Effect::LostReply),
        (all(), 0.02, Effect::Timeout(Duration::from_secs(2))),
        (all(), 0.03, Effect::Slow(Duration::from_millis(700))),
        (writes(), 0.04, denied),
        (reads(), 0.05, Effect::Stale(3)),
        (watches(), 0.4, Effect::CutWatch(1)),
        (watches(), 0.10, Effect::DuplicateEvents),
        (watches(), 0.30, Effect::DelayEvents(Duration::from_millis(400))),
        (watches(), 0.10, Effect::Gone),
    ]
    .map(|(when, chance, effect)| Rule::new(when, Often::Chance(chance), effect))
    .into()
}

/// One disturbance; answers its name.
fn disturb(bench: &Bench, operator: &Operator, turn: u64, random: &mut fastrand::Rng) -> String {
    let world = &bench.world;
    let delete = |kind: &str, name: &str| drop(world.delete(kind, "default", name));
    let server = |change: fn(&mut Conditions)| {
        world.disturb("default", "test-db-0", change);
    };
    let name = match turn {
        0 => {
            operator
                .handle
                .crash_at(Some(Crash::After(operator.handle.writes() + random.u64(1..4))));
            "crash ordered"
        }
        1 => {
            delete("Service", NAME);
            "Service deleted"
        }
        2 => {
            delete("ConfigMap", "test-db-config");
            "ConfigMap deleted"
        }
        3 => {
            delete("Pod", "test-db-0");
            "pod deleted"
        }
        4 => {
            server(|c| c.read_only = true);
            "server read-only"
        }
        5 => {
            server(|c| c.disk_full = true);
            "disk full"
        }
        6 => {
            server(|c| c.silent = true);
            "server silent"
        }
        7 => {
            server(|c| c.starting = true);
            "server starting"
        }
        8 => {
            server(|c| c.delay = Duration::from_secs(2));
            "server slow"
        }
        9 => {
            world
                .postgres("default", "test-db-0")
                .into_iter()
                .for_each(|s| s.crash("PANIC:  model fault"));
            world.model(|_| ());
            "server crash"
        }
        10 => {
            world.model(|m| m.down.insert("node-1".to_owned()));
            "node down"
        }
        11 => {
            world.model(|m| m.images.rule("postgres:14.9", ImageRule::Missing));
            edit(bench, "image", json!(format!("postgres:14.9{}", random.u8(0..9))));
            "image missing"
        }
        12 => {
            edit(bench, "image", json!("postgres:14"));
            "image restored"
        }
        13 => {
            let quota = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: none, namespace: default}, spec: {hard: {pods: 0}}}";
            drop(world.apply(quota));
            delete("Pod", "test-db-0");
            "quota used up"
        }
        14 => {
            edit(bench, "parameters", json!({"work_mem": format!("{}MB", random.u8(4..60))}));
            "parameters edited"
        }
        _ => {
            world.cluster.cut_watches();
            operator.handle.crash();
            "crash"
        }
    };
    name.to_owned()
}

fn edit(bench: &Bench, field: &str, value: serde_json::Value) {
    drop(bench.world.edit("Database", "default", NAME, |d| d["spec"][field] = value));
}

/// Ends what the disturbances switched on.
fn heal(bench: &Bench) {
    bench.world.model(|model| model.down.clear());
    bench.world.disturb("default", "test-db-0", |c| *c = Conditions::default());
    drop(bench.world.delete("ResourceQuota", "default", "none"));
}
