//! A steady Database costs no write, and wakes only when it said so (fault catalogue G-18, R3).
//!
//! Everything here runs under virtual time.

mod support;

use std::time::Duration;

use support::{Bench, NAME, rules, simulate};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn g_18_ten_simulated_hours_of_a_steady_database_cost_no_write() {
    simulate(|| async {
        let (bench, operator) = Bench::with_test_db(21).await;
        rules::install(&bench.world);
        // The last Event and the last look after the last write belong to the bring-up.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let (writes, sessions) = (operator.handle.writes(), operator.tap.sessions());
        let passes = passes(&operator.metrics.text());
        tokio::time::sleep(10 * HOUR).await;
        assert_eq!(operator.handle.writes() - writes, 0, "{:#?}", bench.writes());
        let every = f64::from(bench.settings.verify_every_seconds);
        let looks = (10.0 * HOUR.as_secs_f64() / every).round();
        let passed = self::passes(&operator.metrics.text()) - passes;
        println!("ten hours: 0 writes, {passed} passes, one each {every} s would be {looks}");
        assert!(passed <= looks + 1.0, "{passed} passes in ten hours");
        assert!(passed >= looks * 0.9, "verification went on: {passed} passes");
        // A probe, a wrong password and the superuser's login each time, no more.
        let sessions = operator.tap.sessions() - sessions;
        assert!(sessions as f64 <= 3.0 * passed, "{sessions} sessions");
        rules::hold(&bench.world);
        assert!(bench.ready(NAME, Duration::ZERO).await);
    });
}

/// Sum of the counter of passes.
fn passes(metrics: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.starts_with("steadfast_passes_total"));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[test]
fn g_27_fields_that_admission_adds_are_kept_and_cost_no_write() {
    simulate(|| async {
        let (bench, operator) = Bench::with_test_db(22).await;
        let added = bench.world.apply_as("webhook", "
apiVersion: v1
kind: Service
metadata: {name: test-db, namespace: default, annotations: {mesh.example.com/inject: 'yes'}, labels: {team: blue}}
");
        added.expect("undeclared fields are nobody's");
        tokio::time::sleep(Duration::from_secs(5)).await;
        let writes = operator.handle.writes();
        tokio::time::sleep(HOUR).await;
        assert_eq!(operator.handle.writes(), writes, "{:#?}", bench.writes());
        let service = bench.world.get("Service", "default", NAME).expect("it exists");
        assert_eq!(service["metadata"]["annotations"]["mesh.example.com/inject"], "yes");
        assert_eq!(service["metadata"]["labels"]["team"], "blue");
    });
}
