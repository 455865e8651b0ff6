//! A Database with standbys: how it is brought up, asked, and looked at.

use serde_json::json;

use super::history::History;
use super::{Bench, LONG, NAME, Operator, TEST_DB, login, rules, text};

/// The exercise's manifest with so many servers.
pub(crate) fn manifest(replicas: u32) -> String {
    TEST_DB.replace("replicas: 1", &format!("replicas: {replicas}"))
}

/// A bench with three servers that are whole, and rows in them.
pub(crate) async fn three(seed: u64) -> (Bench, Operator) {
    let bench = Bench::new(seed);
    rules::install(&bench.world);
    let operator = bench.operator();
    bench.apply(&manifest(3));
    bench.settle(NAME).await;
    whole(&bench, 3).await;
    login::write_rows(&bench.world).await;
    (bench, operator)
}

pub(crate) fn scale(bench: &Bench, replicas: u32) {
    bench.edit(|database| database["spec"]["replicas"] = json!(replicas));
}

/// What a statement answers on one server, as the superuser.
pub(crate) async fn ask(bench: &Bench, ordinal: u32, sql: &str) -> String {
    let password = login::secret(&bench.world, "test-db-superuser", "password");
    let host = format!("test-db-{ordinal}.test-db-headless");
    match login::login(&bench.world, &host, ("postgres", &password, "postgres")).await {
        Ok(client) => login::ask(&client, sql).await.unwrap_or_else(|error| error),
        Err(error) => error,
    }
}

pub(crate) const STREAMS: &str =
    "SELECT application_name, state FROM pg_stat_replication ORDER BY application_name";
pub(crate) const SLOTS: &str =
    "SELECT slot_name, active FROM pg_replication_slots ORDER BY slot_name";

/// Whether so many servers are there, Ready, nothing lacking.
pub(crate) fn is_whole(bench: &Bench, replicas: u32) -> bool {
    let Some(database) = bench.database(NAME) else { return false };
    super::is_ready(&database)
        && database["status"]["replicaSummary"] == format!("{replicas}/{replicas}")
        && bench.condition(NAME, "Degraded")["status"] == "False"
}

pub(crate) async fn whole(bench: &Bench, replicas: u32) {
    let whole = bench.until(LONG * 4, |_| is_whole(bench, replicas)).await;
    let status = bench.database(NAME).unwrap_or_default()["status"].clone();
    assert!(whole, "not {replicas} servers: {status:#}");
}

/// Waits until `Degraded` holds all these words.
pub(crate) async fn degraded(bench: &Bench, words: &[&str]) {
    let told = || bench.condition(NAME, "Degraded").to_string();
    let holds = bench.until(LONG, |_| words.iter().all(|word| told().contains(word))).await;
    assert!(holds, "wanted {words:?}: {}", told());
}

/// The pods behind a Service.
pub(crate) fn behind(bench: &Bench, service: &str) -> Vec<String> {
    let mut pods: Vec<String> = Vec::new();
    for slice in bench.world.list("EndpointSlice", "default") {
        if slice["metadata"]["labels"]["kubernetes.io/service-name"] == service {
            let all = slice["endpoints"].as_array().cloned().unwrap_or_default();
            pods.extend(all.iter().map(|endpoint| text(endpoint, "/targetRef/name")));
        }
    }
    pods.sort();
    pods
}

/// Every status from `begin` on said Ready.
pub(crate) fn always_ready(history: &History, begin: usize) {
    let seen = history.all();
    let not = seen[begin..].iter().find(|seen| seen.ready != "True");
    assert!(not.is_none(), "{not:?}");
}
