//! Faults that a breaker found, each with its kind: waits that turn hot, edits that nobody noticed
//! (fault catalogue PG-25, G-18, G-74, PG-09). Everything here runs under virtual time.

mod support;

use std::time::Duration;

use support::{Bench, NAME, TEST_DB, simulate};

const MINUTE: Duration = Duration::from_secs(60);
/// Requests that an hour of waiting may cost: a look every five seconds asks a handful each.
const REQUESTS_AN_HOUR: usize = 10_000;

#[test]
fn pg_25_a_pod_that_fits_nowhere_is_named_waited_for_calmly_and_healed() {
    simulate(|| async {
        let bench = Bench::new(25);
        let _operator = bench.operator();
        let hungry = format!("{TEST_DB}  resources: {{requests: {{memory: 900Gi}}}}\n");
        bench.world.apply(&hungry).expect("the manifest is accepted");
        let named = bench
            .until(Duration::from_secs(30), |_| {
                bench.condition(NAME, "Ready")["reason"] == "PodUnschedulable"
            })
            .await;
        assert!(named, "{:#}", bench.condition(NAME, "Ready"));
        let requests = || bench.world.cluster.with(|core| core.faults.log().len());
        let before = requests();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let asked = requests() - before;
        assert!(asked < REQUESTS_AN_HOUR, "{asked} requests in an hour of waiting");
        bench.world.apply(TEST_DB).expect("the manifest is accepted");
        let healed = bench.ready(NAME, Duration::from_secs(900)).await;
        assert!(healed, "{:#}", bench.condition(NAME, "Ready"));
    });
}

#[test]
fn pg_09_an_edit_of_a_secret_that_a_person_brought_is_noticed_at_once() {
    simulate(|| async {
        let bench = Bench::new(9);
        let _operator = bench.operator();
        let secret = |password: &str| {
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: test-db-credentials, namespace: default}}\n\
                 stringData: {{password: \"{password}\"}}\n"
            )
        };
        bench.world.apply(&secret("brought-along-1234")).expect("accepted");
        bench.world.apply(TEST_DB).expect("the manifest is accepted");
        assert!(bench.ready(NAME, Duration::from_secs(120)).await);
        bench.world.apply(&secret("with-a-line-end-1234\\n")).expect("accepted");
        let told = bench
            .until(Duration::from_secs(5), |_| {
                let conditions =
                    [bench.condition(NAME, "Ready"), bench.condition(NAME, "Degraded")];
                conditions.iter().any(|c| c["reason"] == "PasswordUnusable")
            })
            .await;
        assert!(told, "{:#}", bench.database(NAME).unwrap_or_default()["status"]);
    });
}

/// A server that answers, slowly, is asked once more before it is told as down (issue 2).
#[test]
fn g_74_a_slow_answer_is_no_outage() {
    for (seconds, told) in [(3, false), (40, true)] {
        simulate(move || async move {
            let (bench, _operator) = Bench::with_test_db(108).await;
            tokio::time::sleep(MINUTE).await;
            let before = bench.writes().len();
            let slow = Duration::from_secs(seconds);
            bench.world.disturb("default", "test-db-0", |c| c.delay = slow);
            let lost =
                bench.until(10 * MINUTE, |_| bench.condition(NAME, "Ready")["status"] != "True");
            assert_eq!(lost.await, told, "{seconds}: {}", bench.says(NAME));
            bench.world.disturb("default", "test-db-0", |c| c.delay = Duration::ZERO);
            if told {
                assert!(bench.ready(NAME, 20 * MINUTE).await, "{}", bench.says(NAME));
            } else {
                assert_eq!(bench.writes().split_off(before), Vec::<String>::new());
            }
        });
    }
}
