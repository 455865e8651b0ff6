//! A superuser whose Secret is lost, or changed, is let in again by a command in the primary's container
//! (reference/database.md section 4), told of by an Event, and without anybody's session or pod ending.
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use sim::faults::{Effect, Match, Often, Rule};
use support::crash::{Before, Proof, Story};
use support::{Bench, LONG, NAME, is_ready, login, replicas, simulate, text};

const SECRET: &str = "test-db-superuser";

fn lose(bench: &Bench) {
    bench.world.delete("Secret", "default", SECRET).expect("deleted");
}

/// Whether the Secret is there, the Database is Ready and nothing is lacking.
fn well(bench: &Bench) -> bool {
    bench.world.get("Secret", "default", SECRET).is_some()
        && bench.database(NAME).is_some_and(|database| is_ready(&database))
        && bench.condition(NAME, "Degraded")["status"] == "False"
}

/// Waits until the superuser logs in with what the Secret holds now.
async fn let_in(bench: &Bench) {
    let began = tokio::time::Instant::now();
    while !(well(bench) && login::superuser(&bench.world).await.is_ok()) {
        let degraded = bench.condition(NAME, "Degraded");
        assert!(began.elapsed() < LONG, "not let in: {} {degraded}", bench.says(NAME));
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

fn pods(bench: &Bench) -> Vec<Value> {
    let pods = bench.world.list("Pod", "default");
    pods.iter()
        .map(|pod| json!([pod["metadata"]["uid"], pod["status"]["containerStatuses"]]))
        .collect()
}

fn told(bench: &Bench) -> usize {
    let events = bench.world.list("Event", "default");
    events.iter().filter(|event| text(event, "/reason") == "SuperuserRecovered").count()
}

#[test]
fn a_lost_secret_of_the_superuser_is_put_in_force_again() {
    simulate(|| async {
        for edited in [false, true] {
            let (bench, operator) = Bench::with_test_db(91).await;
            let session = login::application(&bench.world).await.expect("the application logs in");
            let (before, serving) = (pods(&bench), operator.handle.writes());
            let verified = bench.database(NAME).unwrap_or_default()["status"]["phaseSince"].clone();
            if edited {
                let edit = bench.world.edit("Secret", "default", SECRET, |secret| {
                    secret["data"]["password"] = json!(login::encoded("a-password-of-somebody"));
                });
                edit.expect("edited");
            } else {
                lose(&bench);
            }
            let_in(&bench).await;
            assert_eq!(pods(&bench), before, "no pod was touched");
            assert!(login::ask(&session, "SELECT 1").await.is_ok(), "the session goes on");
            assert_eq!(told(&bench), 1);
            let status = bench.database(NAME).unwrap_or_default()["status"].clone();
            assert_eq!(status["phase"], "Ready");
            if edited {
                assert_eq!(status["phaseSince"], verified, "it stayed Ready throughout");
            }
            assert!(operator.handle.writes() > serving);
            let writes = operator.handle.writes();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(operator.handle.writes(), writes, "done once");
        }
    });
}

/// A lost Secret of the application asks for the superuser first: both lost is no dead end.
#[test]
fn both_secrets_lost_are_both_put_in_force_again() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(92).await;
        lose(&bench);
        bench.world.delete("Secret", "default", "test-db-credentials").expect("deleted");
        let_in(&bench).await;
        assert!(login::application(&bench.world).await.is_ok());
    });
}

/// Where no command may be run, the condition names the rule that is missing; it is done once granted.
#[test]
fn a_missing_right_is_named_and_its_grant_heals() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(93).await;
        let when = Match::any().on("", "pods").subresource("exec");
        let message = "User \"steadfast\" cannot create resource \"pods/exec\" in API group \"\"";
        let deny = Rule::new(when, Often::Always, Effect::Deny { message: message.to_owned() });
        let rule = bench.world.cluster.with(|core| core.faults.add(deny));
        lose(&bench);
        let named = bench
            .until(LONG, |_| {
                let degraded = bench.condition(NAME, "Degraded");
                degraded["reason"] == "ActionFailed"
                    && text(&degraded, "/message").contains("get and create of pods/exec")
            })
            .await;
        assert!(named, "{}", bench.condition(NAME, "Degraded"));
        assert_eq!(bench.phase(NAME), "Ready");
        assert_eq!(told(&bench), 0, "nothing was done");
        bench.world.cluster.with(|core| core.faults.remove(rule));
        let_in(&bench).await;
    });
}

/// Words of psql are told as they are, and what it refuses is not done.
#[test]
fn what_psql_says_is_told() {
    simulate(|| async {
        let (bench, _operator) = Bench::with_test_db(94).await;
        bench.world.disturb("default", "test-db-0", |c| c.locked.insert("postgres".to_owned()));
        lose(&bench);
        let told = bench
            .until(LONG, |_| {
                let degraded = bench.condition(NAME, "Degraded");
                text(&degraded, "/message").contains("canceling statement due to")
            })
            .await;
        assert!(told, "{}", bench.condition(NAME, "Degraded"));
        bench.world.disturb("default", "test-db-0", |c| c.locked.clear());
        let_in(&bench).await;
    });
}

#[test]
fn standbys_go_on_streaming() {
    simulate(|| async {
        let (bench, _operator) = replicas::three(95).await;
        let before = pods(&bench);
        lose(&bench);
        let_in(&bench).await;
        replicas::whole(&bench, 3).await;
        assert_eq!(pods(&bench), before, "no pod was touched");
    });
}

const SUPERUSER_LOST: Story =
    Story { seed: 96, before: Before::Ready, act: lose, over: well, proof: Proof::Superuser };

#[test]
fn g_01_g_06_a_lost_superuser_survives_a_crash_or_lost_reply_at_every_write() {
    assert!(SUPERUSER_LOST.matrix("superuser lost") > 6);
}
