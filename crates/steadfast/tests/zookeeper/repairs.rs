//! Lost and edited children, lost pods, deletion, and what others declared.
//!
//! Everything here runs under virtual time.

use std::time::Duration;

use serde_json::json;

use crate::support::ensemble::{
    self, ZK, ZOOKEEPER, holds_nodes, is_whole, manifest, pods, scale, whole,
};
use crate::support::{LONG, rules, simulate};

const CHILDREN: [(&str, &str); 5] = [
    ("ConfigMap", "zk-configmap"),
    ("Service", "zk-headless"),
    ("Service", "zk-client"),
    ("Service", "zk-admin-server"),
    ("PodDisruptionBudget", "zk"),
];

/// Just the child that was lost or edited is written, and what was not declared stays.
#[test]
fn a_lost_or_edited_child_alone_is_written() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(61, 3).await;
        let before = pods(&bench);
        for (kind, name) in CHILDREN {
            let told = bench.writes().len();
            bench.world.delete(kind, "default", name).expect("deleted");
            let back = bench.until(LONG, |world| {
                world.get(kind, "default", name).is_some() && is_whole(&bench, 3)
            });
            assert!(back.await, "{kind} {name}");
            tokio::time::sleep(Duration::from_secs(20)).await;
            let writes = bench.writes()[told..].to_vec();
            let others = writes
                .iter()
                .filter(|write| !write.ends_with(name) && !write.ends_with("zk/status"));
            assert_eq!(others.count(), 0, "{kind} {name}: {writes:?}");
        }
        let edited = bench.world.edit("Service", "default", "zk-client", |service| {
            service["spec"]["selector"] = json!({"app": "theirs"});
            service["metadata"]["annotations"] = json!({"cloud": "theirs"});
        });
        edited.expect("edited");
        let back = bench.until(LONG, |world| {
            let service = world.get("Service", "default", "zk-client").unwrap_or_default();
            service["spec"]["selector"]["app"] == ZK
                && service["metadata"]["annotations"]["cloud"] == "theirs"
        });
        assert!(back.await);
        assert_eq!(pods(&bench), before, "no pod was touched");
        rules::hold(&bench.world);
    });
}

/// ZK-12, and the reference's own scenario: one, two, and all pods are deleted at once.
#[test]
fn zk_12_one_two_and_all_pods_are_deleted_and_nothing_is_lost() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(62, 3).await;
        for lost in [1, 2, 3] {
            for ordinal in 0..lost {
                bench.world.delete("Pod", "default", &format!("{ZK}-{ordinal}")).expect("deleted");
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            whole(&bench, 3).await;
            assert!(holds_nodes(&bench, 3), "after {lost}");
        }
        rules::hold(&bench.world);
    });
}

/// ZK-02, and the reference's own scenario: deleted and made again by the same name; kept volumes bring
/// the nodes back, the record among them, and scaling works.
#[test]
fn zk_02_a_cluster_that_comes_back_on_kept_volumes_has_its_nodes() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(63, 3).await;
        bench.world.delete(ZOOKEEPER.kind, "default", ZK).expect("deleted");
        let gone = bench.until(LONG, |world| {
            bench.resource(ZK).is_none() && world.list("Pod", "default").is_empty()
        });
        assert!(gone.await);
        assert_eq!(bench.world.list("PersistentVolumeClaim", "default").len(), 3, "kept");
        bench.apply(&manifest(3));
        whole(&bench, 3).await;
        assert!(holds_nodes(&bench, 3));
        scale(&bench, 5);
        whole(&bench, 5).await;
        assert!(holds_nodes(&bench, 5));
        rules::hold(&bench.world);
    });
}

/// ZK-32: the volumes go with the resource where the policy says so, and only then.
#[test]
fn zk_32_volumes_go_only_where_the_policy_says_so() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(64, 3).await;
        bench.edit(|cluster| cluster["spec"]["persistence"]["reclaimPolicy"] = json!("Delete"));
        let finalizer = |bench: &crate::support::Bench| {
            let cluster = bench.resource(ZK).unwrap_or_default();
            cluster["metadata"]["finalizers"].to_string().contains("cleanUpZookeeperPVC")
        };
        assert!(bench.until(LONG, |_| finalizer(&bench)).await);
        bench.edit(|cluster| cluster["spec"]["persistence"]["reclaimPolicy"] = json!("Retain"));
        assert!(bench.until(LONG, |_| !finalizer(&bench)).await);
        bench.edit(|cluster| cluster["spec"]["persistence"]["reclaimPolicy"] = json!("Delete"));
        assert!(bench.until(LONG, |_| finalizer(&bench)).await);
        bench.world.delete(ZOOKEEPER.kind, "default", ZK).expect("deleted");
        let gone = bench.until(LONG, |world| {
            bench.resource(ZK).is_none()
                && world.list("PersistentVolumeClaim", "default").is_empty()
                && world.list("Pod", "default").is_empty()
        });
        assert!(gone.await);
        rules::hold(&bench.world);
    });
}

/// Pods that are deleted in the middle of growth and of shrinking.
#[test]
fn pods_deleted_in_the_middle_of_scaling_come_back() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(65, 3).await;
        for (size, victim) in [(5, 3), (3, 1)] {
            scale(&bench, size);
            tokio::time::sleep(Duration::from_secs(20)).await;
            drop(bench.world.delete("Pod", "default", &format!("{ZK}-{victim}")));
            whole(&bench, size).await;
            assert!(holds_nodes(&bench, size), "after {size}");
        }
        rules::hold(&bench.world);
    });
}
