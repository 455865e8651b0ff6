//! Rolls: one member at a time, each released when the former has rejoined and a quorum stays.
//!
//! Everything here runs under virtual time.

use std::time::Duration;

use serde_json::json;
use sim::checker::Moment;

use crate::clients::Client;
use crate::support::ensemble::{
    self, IMAGE, ZK, holds_nodes, images, pods, server, set_tag, whole,
};
use crate::support::{Bench, condition, rules, simulate};

/// No moment with fewer than two of three pods ready.
fn keep_two_ready(bench: &Bench) {
    bench.world.check("a majority of the pods stays ready", |moment: &Moment| {
        let pods = moment.store.list("", "pods", Some("default"));
        let ready = pods.filter(|(_, pod)| condition(pod, "Ready")["status"] == "True").count();
        if ready >= 2 { Ok(()) } else { Err(format!("{ready} pods are ready")) }
    });
}

fn history_of_conditions(bench: &Bench, kind: &str) -> (String, String) {
    let told = bench.condition(ZK, kind);
    let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

/// The reference's own scenario: from tag to tag, with a client that writes all along.
#[test]
fn an_upgrade_rolls_member_by_member_and_ends_with_the_new_version() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(41, 3).await;
        let client = Client::start(&bench, 3);
        keep_two_ready(&bench);
        let before = pods(&bench);
        set_tag(&bench, "0.2.16");
        ensemble::condition_is(&bench, "Upgrading", "True", &["Updating Zookeeper"]).await;
        let cluster = bench.resource(ZK).unwrap_or_default();
        assert_eq!(cluster["status"]["targetVersion"], "0.2.16");
        assert_eq!(cluster["status"]["currentVersion"], "0.2.15");
        whole(&bench, 3).await;
        let cluster = bench.resource(ZK).unwrap_or_default();
        assert_eq!(cluster["status"]["currentVersion"], "0.2.16");
        assert_eq!(cluster["status"].get("targetVersion"), None);
        assert_eq!(images(&bench), vec![format!("{IMAGE}:0.2.16"); 3]);
        let after = pods(&bench);
        assert!(
            before.iter().zip(&after).all(|(one, other)| one.1 != other.1),
            "all were made anew"
        );
        assert!(holds_nodes(&bench, 3));
        let gap = client.end(&bench);
        println!("upgrade: longest gap between acknowledged writes {gap:?}");
        assert!(gap < Duration::from_secs(10), "{gap:?}");
        rules::hold(&bench.world);
    });
}

/// ZK-16: every process runs the new setting before the status says Ready; taken back, the very
/// template that was there is there again.
#[test]
fn zk_16_a_changed_setting_is_in_force_in_every_process() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(42, 3).await;
        keep_two_ready(&bench);
        let template = || {
            let set = bench.world.get("StatefulSet", "default", ZK).unwrap_or_default();
            set["spec"]["template"].clone()
        };
        let runs = |setting: &str, value: &str| {
            (0..3).all(|n| {
                let told = server(&bench, n).map(|server| server.settings()).unwrap_or_default();
                told.get(setting).map(String::as_str) == Some(value)
            })
        };
        let before = template();
        bench.edit(|cluster| cluster["spec"]["config"] = json!({"tickTime": 3000}));
        whole(&bench, 3).await;
        assert!(runs("tickTime", "3000"));
        assert_eq!(history_of_conditions(&bench, "Upgrading").0, "False");
        bench.edit(|cluster| {
            cluster["spec"].as_object_mut().expect("a map").remove("config");
        });
        whole(&bench, 3).await;
        assert!(runs("tickTime", "2000"));
        assert_eq!(template(), before);
        assert!(holds_nodes(&bench, 3));
        rules::hold(&bench.world);
    });
}

/// ZK-25: a member that never rejoins keeps the next one where it is: the quorum stays.
#[test]
fn zk_25_a_roll_stops_at_a_member_that_does_not_rejoin() {
    simulate(|| async {
        let (bench, _operator) = ensemble::cluster(43, 3).await;
        keep_two_ready(&bench);
        let before = pods(&bench);
        bench.world.model(|model| {
            let rule = sim::builtin::pods::program::Behaviour::NeverReady;
            model.programs.behave(&format!("default/{ZK}-2"), rule);
        });
        bench.edit(|cluster| cluster["spec"]["pod"] = json!({"labels": {"team": "blue"}}));
        tokio::time::sleep(Duration::from_secs(300)).await;
        let after = pods(&bench);
        assert_eq!(after[..2], before[..2], "the others were not touched");
        assert_ne!(after[2], before[2]);
        bench.world.model(|model| model.programs.recover(&format!("default/{ZK}-2")));
        bench.world.delete("Pod", "default", &format!("{ZK}-2")).expect("deleted");
        whole(&bench, 3).await;
        rules::hold(&bench.world);
    });
}
