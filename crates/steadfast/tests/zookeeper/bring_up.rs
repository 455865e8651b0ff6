//! First bring-up: five phases in order, few writes, one ensemble; then silence.
//!
//! Everything here runs under virtual time.

use std::time::Duration;

use crate::support::ensemble::{self, ZK, ZOOKEEPER, install, manifest};
use crate::support::history::History;
use crate::support::{Bench, replay, rules, simulate};

const PHASES: [&str; 5] = ["Pending", "Provisioning", "Deploying", "Forming", "Ready"];
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn five_phases_appear_in_order_and_three_servers_are_one_ensemble() {
    simulate(|| async {
        let bench = Bench::of(ZOOKEEPER, 1);
        install(&bench.world);
        let history = History::of_kind(&bench.world, ZOOKEEPER.plural, ZK);
        let operator = bench.operator();
        bench.apply(&manifest(3));
        ensemble::whole(&bench, 3).await;
        assert_eq!(history.phases(), PHASES);
        let writes = bench.writes();
        let (status, mut children): (Vec<&String>, Vec<&String>) =
            writes.iter().partition(|write| write.ends_with("zk/status"));
        println!("bring-up: {} writes of children, {} of the status", children.len(), status.len());
        children.dedup();
        assert_eq!(children.len() + status.len(), writes.len(), "each child once: {writes:#?}");
        assert_eq!(children.len(), 6, "{writes:#?}");
        // Each of three pods shows itself, its volume and its readiness.
        assert!(status.len() <= 18, "{writes:#?}");
        assert_eq!(
            operator.tap.said(),
            ["create /zookeeper-operator", "create /zookeeper-operator/zk"]
        );
        let status = &bench.resource(ZK).unwrap_or_default()["status"];
        assert_eq!(status["members"]["ready"], serde_json::json!(["zk-0", "zk-1", "zk-2"]));
        assert_eq!(status["currentVersion"], "0.2.15");
        assert_eq!(status["quorum"]["mode"], "replicated");
        assert_eq!(status["quorum"]["voters"], 3);
        rules::hold(&bench.world);
    });
}

/// Fault catalogue G-18, ZK-21: whoever is settled costs nothing.
#[test]
fn zk_21_ten_simulated_hours_of_a_steady_cluster_cost_no_write() {
    simulate(|| async {
        let (bench, operator) = ensemble::cluster(2, 3).await;
        // The last Event and the last look after the last write belong to the bring-up.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let writes = operator.handle.writes();
        let said = operator.tap.said().len();
        tokio::time::sleep(10 * HOUR).await;
        assert_eq!(operator.handle.writes(), writes, "{:#?}", bench.writes());
        assert_eq!(operator.tap.said().len(), said);
        assert!(ensemble::is_whole(&bench, 3));
        rules::hold(&bench.world);
    });
}

async fn trace_of(seed: u64) -> (String, u64) {
    let (bench, operator) = ensemble::cluster(seed, 3).await;
    ensemble::set_tag(&bench, "0.2.16");
    ensemble::scale(&bench, 1);
    ensemble::whole(&bench, 1).await;
    let trace = bench.world.cluster.with(|core| core.faults.trace());
    operator.kill();
    (trace, bench.world.digest())
}

/// The model of ZooKeeper draws on nothing but the seed either.
#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    replay::byte_for_byte(trace_of);
}
