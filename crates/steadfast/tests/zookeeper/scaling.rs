//! Sizes: members join and leave one at a time, the record first, and nothing is lost.
//!
//! Everything here runs under virtual time.

use std::time::Duration;

use crate::clients::Client;
use crate::support::ensemble::{
    self, ZK, condition_is, holds_nodes, pods, record, scale, server, whole,
};
use crate::support::{Bench, LONG, rules, simulate, text};

/// ZK-14, and the reference's own scenario, with a client that writes all along.
#[test]
fn zk_14_three_five_three_one_three_without_a_lost_node() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(31, 3).await;
        // With kept volumes a person has to decide; see below.
        bench.edit(|cluster| cluster["spec"]["persistence"]["reclaimPolicy"] = "Delete".into());
        let client = Client::start(&bench, 5);
        let first = pods(&bench);
        for size in [5, 3, 1, 3] {
            scale(&bench, size);
            whole(&bench, size).await;
            assert!(holds_nodes(&bench, size), "after {size}");
        }
        let gap = client.end(&bench);
        println!("3, 5, 3, 1, 3: longest gap between acknowledged writes {gap:?}");
        assert!(gap < Duration::from_secs(10), "{gap:?}");
        assert_eq!(pods(&bench)[0], first[0], "the first member was never made anew");
        rules::hold(&bench.world);
    });
}

/// ZK-31, R5: the stop hook may be killed before it removes its member; the operator does.
#[test]
fn zk_31_a_member_whose_stop_hook_was_killed_is_removed_all_the_same() {
    simulate(|| async {
        let (bench, operator) = ensemble::cluster(32, 3).await;
        for ordinal in [1, 2] {
            server(&bench, ordinal).expect("a server").conditions(|c| c.hook_killed = true);
        }
        let said = operator.tap.said().len();
        scale(&bench, 1);
        whole(&bench, 1).await;
        let calls = operator.tap.said()[said..].to_vec();
        let removed = calls.iter().filter(|call| call.starts_with("reconfigure")).count();
        assert_eq!(removed, 2, "before their pods go: {calls:?}");
        assert!(holds_nodes(&bench, 1));
        rules::hold(&bench.world);
    });
}

/// ZK-08: the scripts do not bring a member back on the volume of one that
/// left. Growth onto it is refused, and each of the two ways out is one step.
#[test]
fn zk_08_growth_onto_the_volume_of_a_member_that_left_waits_for_a_person() {
    for delete_claim in [true, false] {
        simulate(move || async move {
            let (bench, _operator) = ensemble::cluster(34, 3).await;
            scale(&bench, 2);
            whole(&bench, 2).await;
            scale(&bench, 3);
            bench.told(ZK, &["FormerVolume", "data-zk-2"], LONG).await;
            tokio::time::sleep(LONG).await;
            let set = bench.world.get("StatefulSet", "default", ZK).unwrap_or_default();
            assert_eq!(set["spec"]["replicas"], 2);
            assert!(bench.world.get("PersistentVolumeClaim", "default", "data-zk-2").is_some());
            if delete_claim {
                let claim = ("PersistentVolumeClaim", "default", "data-zk-2");
                let marked = bench.world.edit(claim.0, claim.1, claim.2, |claim| {
                    claim["metadata"]["annotations"]["test/by-hand"] = "yes".into();
                });
                marked.expect("marked");
                bench.world.delete(claim.0, claim.1, claim.2).expect("deleted");
            } else {
                bench.edit(|cluster| {
                    cluster["spec"]["persistence"]["reclaimPolicy"] = "Delete".into();
                });
            }
            whole(&bench, 3).await;
            assert!(holds_nodes(&bench, 3));
            rules::hold(&bench.world);
        });
    }
}

/// ZK-09: with `reclaimPolicy: Delete` the volumes of members that left go, and no other.
#[test]
fn zk_09_volumes_of_members_that_left_go_where_the_policy_says_so() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(35, 3).await;
        bench.edit(|cluster| cluster["spec"]["persistence"]["reclaimPolicy"] = "Delete".into());
        scale(&bench, 1);
        whole(&bench, 1).await;
        let claims = |bench: &Bench| {
            let all = bench.world.list("PersistentVolumeClaim", "default");
            all.iter().map(|claim| text(claim, "/metadata/name")).collect::<Vec<_>>()
        };
        assert!(
            bench.until(LONG, |_| claims(&bench) == ["data-zk-0"]).await,
            "{:?}",
            claims(&bench)
        );
        rules::hold(&bench.world);
    });
}

/// A member that was removed and is wanted after all is listed again (R6).
#[test]
fn a_size_that_is_taken_back_brings_the_removed_member_back() {
    simulate(|| async {
        let (bench, operator) = ensemble::cluster(36, 3).await;
        let said = operator.tap.said().len();
        scale(&bench, 2);
        let removed = bench.until(LONG, |_| {
            operator.tap.said()[said..].iter().any(|call| call.starts_with("reconfigure"))
        });
        assert!(removed.await, "{:?}", operator.tap.said());
        scale(&bench, 3);
        whole(&bench, 3).await;
        assert!(holds_nodes(&bench, 3));
        rules::hold(&bench.world);
    });
}

/// ZK-10: a size that cannot be recorded changes nothing, and the rest of the same edit is in force.
#[test]
fn zk_10_without_a_quorum_the_size_stays_and_the_rest_is_in_force() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(33, 3).await;
        for ordinal in [1, 2] {
            bench.world.model(|model| {
                let rule = sim::builtin::pods::program::Behaviour::NeverReady;
                model.programs.behave(&format!("default/{ZK}-{ordinal}"), rule);
            });
            bench.world.delete("Pod", "default", &format!("{ZK}-{ordinal}")).expect("deleted");
        }
        condition_is(&bench, "Ready", "False", &[]).await;
        assert!(bench.until(LONG, |_| ensemble::modes(&bench, 3).is_empty()).await);
        bench.edit(|cluster| {
            cluster["spec"]["replicas"] = 5.into();
            cluster["spec"]["clientService"] = serde_json::json!({"annotations": {"team": "blue"}});
        });
        let told = |bench: &Bench| {
            bench.resource(ZK).unwrap_or_default()["status"].to_string().contains("SizeNotRecorded")
        };
        let status = || bench.resource(ZK).unwrap_or_default()["status"].clone();
        assert!(bench.until(LONG, |_| told(&bench)).await, "{:#}", status());
        let service = bench.world.get("Service", "default", "zk-client").unwrap_or_default();
        assert_eq!(service["metadata"]["annotations"]["team"], "blue");
        let set = bench.world.get("StatefulSet", "default", ZK).unwrap_or_default();
        assert_eq!(set["spec"]["replicas"], 3);
        for ordinal in [1, 2] {
            bench.world.model(|model| model.programs.recover(&format!("default/{ZK}-{ordinal}")));
            // The set makes its pods in order, so the higher one may not be there yet.
            let pod = format!("{ZK}-{ordinal}");
            if !bench.uid("Pod", &pod).is_empty() {
                bench.world.delete("Pod", "default", &pod).expect("deleted");
            }
        }
        whole(&bench, 5).await;
        assert!(holds_nodes(&bench, 5));
        assert_eq!(record(&bench).as_deref(), Some("CLUSTER_SIZE=5"));
        rules::hold(&bench.world);
    });
}

/// ZK-03: the server takes connections and refuses the write of the size.
#[test]
fn zk_03_a_size_that_is_refused_shrinks_nothing() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(37, 5).await;
        let refuse = |refuses: bool| {
            for ordinal in 0..5 {
                let server = server(&bench, ordinal).expect("a server");
                server.conditions(|c| c.refuses_changes = refuses);
            }
        };
        refuse(true);
        scale(&bench, 3);
        tokio::time::sleep(LONG).await;
        let set = bench.world.get("StatefulSet", "default", ZK).unwrap_or_default();
        assert_eq!(set["spec"]["replicas"], 5);
        assert_eq!(record(&bench).as_deref(), Some("CLUSTER_SIZE=5"));
        let says = bench.says(ZK);
        assert!(says.contains("record-size") && says.contains("-102"), "{says}");
        refuse(false);
        whole(&bench, 3).await;
        assert!(holds_nodes(&bench, 3));
        rules::hold(&bench.world);
    });
}

/// ZK-10: nobody reaches anybody. No member is removed; when the ways are open again it goes on.
#[test]
fn zk_10_a_cluster_that_is_cut_apart_does_not_shrink() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(38, 3).await;
        let addresses: Vec<String> = bench
            .world
            .list("Pod", "default")
            .iter()
            .map(|pod| text(pod, "/status/podIP"))
            .collect();
        bench.world.model(|model| addresses.iter().for_each(|ip| model.network.isolate(ip)));
        scale(&bench, 1);
        bench.told(ZK, &["SizeNotRecorded"], LONG).await;
        tokio::time::sleep(LONG).await;
        assert_eq!(bench.world.list("Pod", "default").len(), 3);
        bench.world.model(|model| addresses.iter().for_each(|ip| model.network.rejoin(ip)));
        whole(&bench, 1).await;
        assert!(holds_nodes(&bench, 1));
        rules::hold(&bench.world);
    });
}

/// ZK-11: of three, the first is broken; the two that would stay are no majority.
#[test]
fn zk_11_the_healthy_member_is_not_the_one_that_leaves() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(39, 3).await;
        bench.world.model(|model| {
            let rule = sim::builtin::pods::program::Behaviour::NeverReady;
            model.programs.behave(&format!("default/{ZK}-0"), rule);
        });
        bench.world.delete("Pod", "default", &format!("{ZK}-0")).expect("deleted");
        let down = bench.until(LONG, |_| server(&bench, 0).and_then(|s| s.mode()).is_none());
        assert!(down.await);
        scale(&bench, 2);
        let told = |bench: &Bench| {
            bench.resource(ZK).unwrap_or_default()["status"].to_string().contains("QuorumAtRisk")
        };
        assert!(bench.until(LONG, |_| told(&bench)).await, "{}", bench.says(ZK));
        tokio::time::sleep(LONG).await;
        assert_eq!(bench.world.list("Pod", "default").len(), 3, "nobody left");
        assert!(server(&bench, 2).and_then(|server| server.mode()).is_some(), "a quorum serves");
        bench.world.model(|model| model.programs.recover(&format!("default/{ZK}-0")));
        bench.world.delete("Pod", "default", &format!("{ZK}-0")).expect("deleted");
        whole(&bench, 2).await;
        assert!(holds_nodes(&bench, 2));
        rules::hold(&bench.world);
    });
}

/// ZK-27: a pod that passes its probe and is no member is no member, and is listed again.
#[test]
fn zk_27_a_member_that_somebody_removed_is_listed_again() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(40, 3).await;
        let before = pods(&bench);
        server(&bench, 0).expect("a server").reconfigure("", "3").expect("removed");
        bench.edit(|cluster| cluster["metadata"]["annotations"] = serde_json::json!({"a": "b"}));
        let unready = bench.until(LONG, |_| bench.condition(ZK, "Ready")["status"] == "False");
        assert!(unready.await, "Ready is what the ensemble says: {}", bench.says(ZK));
        whole(&bench, 3).await;
        assert_eq!(pods(&bench), before, "without a restart");
        rules::hold(&bench.world);
    });
}

/// ZK-15: nought would leave nobody who could hold the record.
#[test]
fn zk_15_nought_is_refused() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(41, 1).await;
        let edited = bench.world.edit(ensemble::ZOOKEEPER.kind, "default", ZK, |cluster| {
            cluster["spec"]["replicas"] = 0.into();
        });
        let message = edited.expect_err("refused").message;
        assert!(message.contains("spec.replicas"), "{message}");
    });
}
