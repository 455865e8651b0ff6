//! A running cluster of the replaced operator is taken over as it stands: no pod restarts, no template
//! changes, and each object is written once.
//!
//! Everything here runs under virtual time.

use std::time::Duration;

use serde_json::{Value, json};
use sim::{Actor, Options, Patch, Sub};

use crate::support::ensemble::{
    RECORD, ZK, ZOOKEEPER, holds_nodes, install, pods, scale, server, set_tag, whole, write_nodes,
};
use crate::support::{Bench, LONG, rules, simulate, text};

/// Objects as the replaced operator writes them and the API server stores them.
const REPLACED: &str = include_str!("../../../operators/tests/fixtures/zookeeper-replaced.json");

/// Files in the replaced operator's own order, which the fixture shortens (reference, 2.4).
const ZOO_CFG: &str = "\
4lw.commands.whitelist=cons, envi, conf, crst, srvr, stat, mntr, ruok
dataDir=/data
standaloneEnabled=false
reconfigEnabled=true
skipACL=yes
metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider
metricsProvider.httpPort=7000
metricsProvider.exportJvmInfo=true
initLimit=10
syncLimit=2
tickTime=2000
globalOutstandingLimit=1000
preAllocSize=65536
snapCount=10000
commitLogCount=500
snapSizeLimitInKb=4194304
maxCnxns=0
maxClientCnxns=60
minSessionTimeout=4000
maxSessionTimeout=40000
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
quorumListenOnAllIPs=false
admin.serverPort=8080
dynamicConfigFile=/data/zoo.cfg.dynamic
";
const ENV_SH: &str = "\
#!/usr/bin/env bash

DOMAIN=zk-headless.default.svc.cluster.local
QUORUM_PORT=2888
LEADER_PORT=3888
CLIENT_HOST=zk-client
CLIENT_PORT=2181
ADMIN_SERVER_HOST=zk-admin-server
ADMIN_SERVER_PORT=8080
CLUSTER_NAME=zk
CLUSTER_SIZE=3
";

/// A bench on which the replaced operator has made a cluster of three, which serves; ours is not
/// started yet.
async fn replaced(seed: u64) -> Bench {
    let bench = Bench::of(ZOOKEEPER, seed);
    install(&bench.world);
    let fixture: Value = serde_json::from_str(REPLACED).expect("JSON");
    let mut resource = fixture["resource"].clone();
    let status = resource["status"].take();
    bench.apply(&resource.to_string());
    let uid = text(&bench.resource(ZK).unwrap_or_default(), "/metadata/uid");
    for object in fixture["objects"].as_array().into_iter().flatten() {
        create(&bench, written(object.clone(), &uid));
    }
    let ready = bench.until(LONG, |world| {
        let set = world.get("StatefulSet", "default", ZK).unwrap_or_default();
        set["status"]["readyReplicas"] == 3
    });
    assert!(ready.await, "{:#}", bench.world.get("StatefulSet", "default", ZK).unwrap_or_default());
    let first = server(&bench, 0).expect("a server");
    first.create("/zookeeper-operator", "").expect("made");
    first.create(RECORD, "CLUSTER_SIZE=3").expect("made");
    write_nodes(&bench);
    let done = bench.world.cluster.with(|core| {
        let kind = core.kinds.by_kind("zookeeper.pravega.io/v1beta1", ZOOKEEPER.kind)?;
        let key = kind.key("default", ZK);
        let patch = Patch::Merge(json!({"status": status}));
        let by = Actor::new("replaced", "zookeeper-operator");
        Some(core.patch(&by, &kind, &key, patch, Some(Sub::Status), &Options::default()).is_ok())
    });
    assert_eq!(done, Some(true), "its status is stored");
    bench
}

/// What the replaced operator sends: with its owner reference, without what the server adds.
fn written(mut object: Value, uid: &str) -> Value {
    object["metadata"]["namespace"] = json!("default");
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "zookeeper.pravega.io/v1beta1", "kind": "ZookeeperCluster", "name": ZK,
        "uid": uid, "controller": true, "blockOwnerDeletion": true,
    }]);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    if object["kind"] == "ConfigMap" {
        object["data"]["zoo.cfg"] = json!(ZOO_CFG);
        object["data"]["env.sh"] = json!(ENV_SH);
    }
    let spec = &mut object["spec"];
    if spec["clusterIP"] != "None"
        && let Some(fields) = spec.as_object_mut()
    {
        fields.remove("clusterIP");
        fields.remove("clusterIPs");
    }
    for claim in spec["volumeClaimTemplates"].as_array_mut().into_iter().flatten() {
        claim["metadata"]["labels"]["uid"] = json!(uid);
    }
    object
}

fn create(bench: &Bench, object: Value) {
    let done = bench.world.cluster.with(|core| {
        let kind = core.kinds.by_kind(&text(&object, "/apiVersion"), &text(&object, "/kind"));
        let kind = kind.expect("a known kind");
        let by = Actor::new("replaced", "zookeeper-operator");
        core.create(&by, &kind, "default", object.clone(), &Options::default())
    });
    assert!(done.is_ok(), "{:?}: {object:#}", done.map_err(|failure| failure.message));
}

fn set(bench: &Bench) -> Value {
    bench.world.get("StatefulSet", "default", ZK).unwrap_or_default()
}

#[test]
fn no_pod_restarts_and_every_object_is_written_once() {
    simulate(|| async {
        let bench = replaced(71).await;
        let (before, old) = (set(&bench), pods(&bench));
        let _operator = bench.operator();
        whole(&bench, 3).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(pods(&bench), old, "no pod was made anew");
        let after = set(&bench);
        assert_eq!(after["spec"], before["spec"]);
        assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
        assert_eq!(after["metadata"]["labels"]["owner-rv"], "4711", "left as it was found");
        let mut children: Vec<String> =
            bench.writes().into_iter().filter(|write| !write.ends_with("/status")).collect();
        let all = children.len();
        children.sort();
        children.dedup();
        assert_eq!(all, children.len(), "each once: {children:?}");
        let cluster = bench.resource(ZK).unwrap_or_default();
        let ready = crate::support::condition(&cluster, "PodsReady");
        assert_eq!(ready["lastTransitionTime"], "2025-06-01T08:00:00+02:00", "kept as it was");
        assert!(holds_nodes(&bench, 3));
        rules::hold(&bench.world);
    });
}

/// What was taken over is run from then on: it grows, shrinks and is upgraded like any other.
#[test]
fn a_cluster_that_was_taken_over_scales_and_upgrades() {
    simulate(|| async {
        let bench = replaced(72).await;
        let _operator = bench.operator();
        whole(&bench, 3).await;
        for size in [5, 3] {
            scale(&bench, size);
            whole(&bench, size).await;
        }
        set_tag(&bench, "0.2.16");
        let upgraded = bench.until(LONG * 4, |_| {
            let cluster = bench.resource(ZK).unwrap_or_default();
            cluster["status"]["currentVersion"] == "0.2.16"
        });
        assert!(upgraded.await);
        whole(&bench, 3).await;
        assert!(holds_nodes(&bench, 3));
        rules::hold(&bench.world);
    });
}
