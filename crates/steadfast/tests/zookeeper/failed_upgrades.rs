//! The seed's time-out: an upgrade without progress fails after ten minutes, edits are held, and there
//! are two ways out (fault catalogue ZK-19, ZK-28).
//!
//! Everything here runs under virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::ensemble::{
    self, BAD_TAG, IMAGE, ZK, condition_is, find_image, holds_nodes, images, lose_image, pods,
    set_tag, whole,
};
use crate::support::{Bench, LONG, Operator, rules, simulate, text};

const TEN_MINUTES: Duration = Duration::from_secs(600);

/// Times in a status are whole seconds, and a look comes every few.
fn is_ten_minutes(took: Duration) -> bool {
    let second = Duration::from_secs(1);
    (TEN_MINUTES - second..TEN_MINUTES + 30 * second).contains(&took)
}

fn set(bench: &Bench) -> Value {
    bench.world.get("StatefulSet", "default", ZK).unwrap_or_default()
}

fn status(bench: &Bench) -> Value {
    bench.resource(ZK).unwrap_or_default()["status"].clone()
}

/// A cluster of three whose upgrade has failed after ten minutes without progress.
async fn failed(seed: u64) -> (Bench, Operator) {
    let (bench, operator) = ensemble::cluster(seed, 3).await;
    lose_image(&bench);
    set_tag(&bench, BAD_TAG);
    let replaced = bench.until(LONG, |_| {
        let status = set(&bench)["status"].clone();
        status["updatedReplicas"] == 1 && status["readyReplicas"] == 2
    });
    assert!(replaced.await, "{:#}", set(&bench)["status"]);
    let began = Instant::now();
    condition_is(&bench, "Error", "True", &["UpgradeFailed", "progress deadline exceeded"]).await;
    let took = began.elapsed();
    assert!(is_ten_minutes(took), "{took:?}");
    (bench, operator)
}

/// Edits of what is held, and of what is not. A Service follows; set and ConfigMap do not.
async fn edit_and_see_it_held(bench: &Bench) {
    let before = set(bench);
    let config = |bench: &Bench| bench.world.get("ConfigMap", "default", "zk-configmap");
    let files = config(bench).unwrap_or_default()["data"].clone();
    bench.edit(|cluster| {
        cluster["spec"]["replicas"] = json!(5);
        cluster["spec"]["pod"] = json!({"labels": {"team": "blue"}});
        cluster["spec"]["config"] = json!({"tickTime": 3000});
        cluster["spec"]["clientService"] = json!({"annotations": {"team": "blue"}});
    });
    let annotated = bench.until(LONG, |world| {
        let service = world.get("Service", "default", "zk-client").unwrap_or_default();
        service["metadata"]["annotations"]["team"] == "blue"
    });
    assert!(annotated.await, "a Service is not held");
    tokio::time::sleep(TEN_MINUTES).await;
    assert_eq!(set(bench)["spec"], before["spec"]);
    assert_eq!(config(bench).unwrap_or_default()["data"], files);
    let words = ["EditHeld: StatefulSet default/zk", "EditHeld: ConfigMap default/zk-configmap"];
    condition_is(bench, "Progressing", "False", &words).await;
}

fn runs(bench: &Bench, tag: &str) -> bool {
    images(bench) == vec![format!("{IMAGE}:{tag}"); images(bench).len()]
}

#[test]
fn the_seed_a_bad_image_fails_after_ten_minutes_and_says_why() {
    simulate(|| async {
        let (bench, _operator) = failed(51).await;
        let status = status(&bench);
        assert_eq!(status["phase"], "Failed");
        assert_eq!(status["currentVersion"], "0.2.15");
        assert_eq!(status["targetVersion"], BAD_TAG);
        condition_is(&bench, "Upgrading", "True", &["Updating Zookeeper", "\"1\""]).await;
        condition_is(&bench, "Ready", "False", &["UpgradeFailed", "ImagePullFailed"]).await;
        assert!(holds_nodes(&bench, 2), "two members serve on");
        rules::hold(&bench.world);
    });
}

/// The seed's rule: it clears when the revisions are equal again, and then held edits flow.
#[test]
fn zk_28_it_clears_when_the_roll_ends_by_itself_and_held_edits_flow() {
    simulate(|| async {
        let (bench, _operator) = failed(52).await;
        edit_and_see_it_held(&bench).await;
        find_image(&bench);
        condition_is(&bench, "Error", "False", &[]).await;
        whole(&bench, 5).await;
        assert_eq!(status(&bench)["currentVersion"], BAD_TAG);
        assert!(runs(&bench, BAD_TAG), "{:?}", images(&bench));
        let pod = bench.world.get("Pod", "default", "zk-0").unwrap_or_default();
        assert_eq!(text(&pod, "/metadata/labels/team"), "blue");
        assert!(holds_nodes(&bench, 5));
        rules::hold(&bench.world);
    });
}

/// Beyond the seed: another image is applied at once, with the edits that were held, and the pod that
/// blocks is replaced.
#[test]
fn zk_19_a_corrected_image_leads_out_at_once() {
    for tag in ["0.2.15", "0.2.16"] {
        simulate(move || async move {
            let (bench, _operator) = failed(53).await;
            edit_and_see_it_held(&bench).await;
            set_tag(&bench, tag);
            let began = Instant::now();
            condition_is(&bench, "Error", "False", &[]).await;
            assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
            whole(&bench, 5).await;
            assert_eq!(status(&bench)["currentVersion"], tag);
            assert!(runs(&bench, tag), "{:?}", images(&bench));
            assert!(holds_nodes(&bench, 5));
            rules::hold(&bench.world);
        });
    }
}

/// The clock lies in the status: a restart of the operator neither fails an upgrade early nor gains it
/// time.
#[test]
fn the_clock_survives_restarts_of_the_operator() {
    simulate(|| async {
        let (bench, operator) = ensemble::cluster(54, 3).await;
        lose_image(&bench);
        set_tag(&bench, BAD_TAG);
        let updated = bench.until(LONG, |_| set(&bench)["status"]["updatedReplicas"] == 1);
        assert!(updated.await);
        let began = Instant::now();
        tokio::time::sleep(TEN_MINUTES / 2).await;
        operator.kill();
        tokio::time::sleep(TEN_MINUTES / 4).await;
        let _second = bench.operator();
        condition_is(&bench, "Error", "True", &["UpgradeFailed"]).await;
        let took = began.elapsed();
        assert!(is_ten_minutes(took), "{took:?}");
    });
}

/// Slow is not stuck: each member takes most of the time that there is.
#[test]
fn a_slow_upgrade_that_moves_does_not_fail() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(55, 3).await;
        bench.world.model(|model| {
            let slow = sim::builtin::pods::images::ImageRule::Slow(400_000);
            model.images.rule(&format!("{IMAGE}:0.2.16"), slow);
            // Each member's node has to pull it.
            model.images.forget(&format!("{IMAGE}:0.2.15"));
        });
        let erred = Arc::new(AtomicBool::new(false));
        bench.edit(|cluster| cluster["spec"]["image"]["pullPolicy"] = json!("Always"));
        whole(&bench, 3).await;
        set_tag(&bench, "0.2.16");
        let (watched, world) = (erred.clone(), bench.world.clone());
        let watching = tokio::spawn(async move {
            loop {
                let cluster = world.get("ZookeeperCluster", "default", ZK).unwrap_or_default();
                let error = crate::support::condition(&cluster, "Error");
                watched.fetch_or(error["status"] == "True", Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        });
        let done = bench.until(TEN_MINUTES * 4, |_| {
            status(&bench)["currentVersion"] == "0.2.16" && ensemble::is_whole(&bench, 3)
        });
        assert!(done.await, "{:#}", status(&bench));
        watching.abort();
        assert!(!erred.load(Ordering::Relaxed), "it moved all along");
        rules::hold(&bench.world);
    });
}

/// The first member is lost while the upgrade is stuck; the cluster still heals.
#[test]
fn a_pod_that_is_lost_while_failed_comes_back_and_the_way_out_stays_open() {
    simulate(|| async {
        let (bench, _operator) = failed(56).await;
        bench.world.delete("Pod", "default", "zk-0").expect("deleted");
        tokio::time::sleep(LONG).await;
        set_tag(&bench, "0.2.15");
        whole(&bench, 3).await;
        assert_eq!(pods(&bench).len(), 3);
        assert!(holds_nodes(&bench, 3));
        rules::hold(&bench.world);
    });
}
