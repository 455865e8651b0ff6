//! A ZookeeperCluster on the bench: how it is brought up, asked, and looked at, and what no history of
//! one may break.

use serde_json::{Value, json};
use sim::builtin::pods::images::ImageRule;
use sim::checker::Moment;
use sim::world::World;

use super::{Bench, LONG, Operator, Subject, condition, is_ready, text};

/// The cluster of these tests.
pub(crate) const ZOOKEEPER: Subject =
    Subject { kind: "ZookeeperCluster", plural: "zookeeperclusters", name: ZK };
/// Its name.
pub(crate) const ZK: &str = "zk";
/// The image of its servers.
pub(crate) const IMAGE: &str = "pravega/zookeeper";
/// The node with the size record.
pub(crate) const RECORD: &str = "/zookeeper-operator/zk";
/// Nodes that a client made before the story begins.
const NODES: usize = 20;
/// Longer than scaling by four servers or an upgrade of five takes.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(900);

/// A manifest of so many servers.
pub(crate) fn manifest(replicas: u32) -> String {
    json!({
        "apiVersion": "zookeeper.pravega.io/v1beta1",
        "kind": "ZookeeperCluster",
        "metadata": {"name": ZK, "namespace": "default"},
        "spec": {"replicas": replicas, "persistence": {"spec":
            {"resources": {"requests": {"storage": "1Gi"}}}}},
    })
    .to_string()
}

/// A bench with a whole cluster, and nodes in it.
pub(crate) async fn cluster(seed: u64, replicas: u32) -> (Bench, Operator) {
    let bench = Bench::of(ZOOKEEPER, seed);
    install(&bench.world);
    let operator = bench.operator();
    bring_up(&bench, replicas).await;
    (bench, operator)
}

/// Brings a cluster up, and writes nodes.
pub(crate) async fn bring_up(bench: &Bench, replicas: u32) {
    bench.apply(&manifest(replicas));
    whole(bench, replicas).await;
    write_nodes(bench);
}

/// Lets the upgrade to a tag fail that no registry has.
pub(crate) async fn fail_an_upgrade(bench: &Bench) {
    bring_up(bench, 3).await;
    lose_image(bench);
    bench.edit(|cluster| {
        cluster["spec"]["image"]["tag"] = json!(BAD_TAG);
        cluster["spec"]["progressDeadlineSeconds"] = json!(60);
    });
    condition_is(bench, "Error", "True", &["UpgradeFailed"]).await;
}

/// A tag that no registry has, once [`lose_image`] was called.
pub(crate) const BAD_TAG: &str = "0.2.99";

pub(crate) fn lose_image(bench: &Bench) {
    bench.world.model(|model| model.images.rule(&format!("{IMAGE}:{BAD_TAG}"), ImageRule::Missing));
}

/// The registry has it after all.
pub(crate) fn find_image(bench: &Bench) {
    bench.world.model(|model| model.images.forget(&format!("{IMAGE}:{BAD_TAG}")));
}

pub(crate) fn scale(bench: &Bench, replicas: u32) {
    bench.edit(|cluster| cluster["spec"]["replicas"] = json!(replicas));
}

pub(crate) fn set_tag(bench: &Bench, tag: &str) {
    bench.edit(|cluster| cluster["spec"]["image"]["tag"] = json!(tag));
}

/// The server of an ordinal.
pub(crate) fn server(
    bench: &Bench,
    ordinal: u32,
) -> Option<std::sync::Arc<sim::external::zookeeper::Server>> {
    bench.world.zookeeper("default", &format!("{ZK}-{ordinal}"))
}

/// What a server tells by its client port, by the word and the client of the operator alike: its mode.
pub(crate) fn modes(bench: &Bench, replicas: u32) -> Vec<&'static str> {
    (0..replicas).filter_map(|n| server(bench, n)?.mode()).collect()
}

/// Whether so many servers are one ensemble, Ready, nothing lacking.
pub(crate) fn is_whole(bench: &Bench, replicas: u32) -> bool {
    let Some(cluster) = bench.resource(ZK) else { return false };
    is_ready(&cluster)
        && cluster["status"]["readyReplicas"] == replicas
        && bench.condition(ZK, "Degraded")["status"] == "False"
        && bench.condition(ZK, "PodsReady")["status"] == "True"
        && bench.condition(ZK, "Upgrading")["status"] == "False"
        && bench.condition(ZK, "Error")["status"] == "False"
}

pub(crate) async fn whole(bench: &Bench, replicas: u32) {
    let whole = bench.until(PATIENCE, |_| is_whole(bench, replicas)).await;
    let status = bench.resource(ZK).unwrap_or_default()["status"].clone();
    assert!(whole, "not {replicas} servers: {status:#}");
    let modes = modes(bench, replicas);
    assert_eq!(modes.len(), replicas as usize, "{modes:?}");
    assert_eq!(modes.iter().filter(|mode| **mode == "leader").count(), 1, "{modes:?}");
    let members = server(bench, 0).map(|server| server.members()).unwrap_or_default();
    assert_eq!(members.matches(":participant;").count(), replicas as usize, "{members}");
    assert_eq!(record(bench), Some(format!("CLUSTER_SIZE={replicas}")));
}

/// What the record says.
pub(crate) fn record(bench: &Bench) -> Option<String> {
    Some(server(bench, 0)?.node(RECORD)?.0)
}

fn path(number: usize) -> String {
    format!("/app/node-{number}")
}

/// Makes the nodes that must outlive every story.
pub(crate) fn write_nodes(bench: &Bench) {
    let server = server(bench, 0).expect("a server");
    server.create("/app", "").expect("made");
    for number in 0..NODES {
        server.create(&path(number), &format!("value {number}")).expect("made");
    }
}

/// Whether every one of these servers still holds them.
pub(crate) fn holds_nodes(bench: &Bench, replicas: u32) -> bool {
    (0..replicas).all(|ordinal| {
        server(bench, ordinal).is_some_and(|server| {
            (0..NODES).all(|n| server.node(&path(n)) == Some((format!("value {n}"), 0)))
        })
    })
}

/// The images that the pods run, by ordinal.
pub(crate) fn images(bench: &Bench) -> Vec<String> {
    let mut pods = bench.world.list("Pod", "default");
    pods.sort_by_key(|pod| text(pod, "/metadata/name"));
    let server = |pod: &Value| {
        let all = pod["spec"]["containers"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|container| container["name"] == "zookeeper");
        text(&one.unwrap_or_default(), "/image")
    };
    pods.iter().map(server).collect()
}

/// uids of the pods, by name.
pub(crate) fn pods(bench: &Bench) -> Vec<(String, String)> {
    let all = bench.world.list("Pod", "default");
    let mut pods: Vec<(String, String)> =
        all.iter().map(|pod| (text(pod, "/metadata/name"), text(pod, "/metadata/uid"))).collect();
    pods.sort();
    pods
}

/// Waits until a condition has this status and holds these words.
pub(crate) async fn condition_is(bench: &Bench, kind: &str, status: &str, words: &[&str]) {
    let holds = || {
        let told = bench.condition(ZK, kind);
        told["status"] == status && words.iter().all(|word| told.to_string().contains(word))
    };
    let held = bench.until(LONG * 8, |_| holds()).await;
    assert!(held, "wanted {kind}={status} {words:?}: {}", bench.condition(ZK, kind));
}

/// Installs what no history of a cluster may break.
pub(crate) fn install(world: &World) {
    world.check("status agrees with itself", |moment| on_cluster(moment, agrees));
    world.check("observed generation never runs ahead", |moment| {
        on_cluster(moment, |cluster, _| {
            let number = |at: &str| cluster.pointer(at).and_then(Value::as_i64).unwrap_or(0);
            let (observed, now) =
                (number("/status/observedGeneration"), number("/metadata/generation"));
            if observed <= now { Ok(()) } else { Err(format!("{observed} of {now}")) }
        })
    });
    world.check("volumes go only with a cluster that says so", keeps_volumes);
    world.check("Ready only over ready pods of one revision", |moment| {
        on_cluster(moment, becomes_ready_truly)
    });
}

fn on_cluster(
    moment: &Moment,
    rule: impl Fn(&Value, &Moment) -> Result<(), String>,
) -> Result<(), String> {
    match &moment.change.after {
        Some(after) if moment.change.key.plural == ZOOKEEPER.plural => rule(after, moment),
        _ => Ok(()),
    }
}

fn agrees(cluster: &Value, _: &Moment) -> Result<(), String> {
    let phase = text(cluster, "/status/phase");
    let is = |kind: &str| condition(cluster, kind)["status"] == "True";
    if phase.is_empty() {
        return Ok(());
    }
    if is("Ready") != (phase == "Ready") {
        return Err(format!("phase {phase}, condition Ready {}", is("Ready")));
    }
    if is("Ready") && (is("Progressing") || is("Error")) {
        return Err("Ready, and Progressing or Error at once".to_owned());
    }
    if is("Error") && !is("Upgrading") {
        return Err("an upgrade that failed is an upgrade".to_owned());
    }
    Ok(())
}

fn keeps_volumes(moment: &Moment) -> Result<(), String> {
    if moment.change.key.plural != "persistentvolumeclaims" || moment.change.after.is_some() {
        return Ok(());
    }
    let key = sim::Key::new("zookeeper.pravega.io", ZOOKEEPER.plural, "default", ZK);
    let gone = &moment.change.key.name;
    let goes = moment.store.get(&key).is_some_and(|cluster| {
        let number = |text: &str| text.rsplit('-').next().and_then(|n| n.parse::<u64>().ok());
        let set = moment.store.get(&sim::Key::new("apps", "statefulsets", "default", ZK));
        let left = number(gone) >= set.and_then(|set| set["spec"]["replicas"].as_u64());
        let going = !cluster["metadata"]["deletionTimestamp"].is_null();
        (left || going) && cluster["spec"]["persistence"]["reclaimPolicy"] == "Delete"
    });
    // A person may delete any.
    let by_hand = moment
        .change
        .before
        .as_ref()
        .is_some_and(|claim| !claim["metadata"]["annotations"]["test/by-hand"].is_null());
    if by_hand || goes { Ok(()) } else { Err("a claim is gone".to_owned()) }
}

/// Judges the write that turns Ready on, with the store as it is then.
fn becomes_ready_truly(cluster: &Value, moment: &Moment) -> Result<(), String> {
    if !is_ready(cluster) || moment.change.before.as_ref().is_some_and(|b| is_ready(b)) {
        return Ok(());
    }
    let set = moment.store.get(&sim::Key::new("apps", "statefulsets", "default", ZK));
    let set = set.ok_or("there is no StatefulSet")?;
    let (spec, status) = (&set["spec"], &set["status"]);
    let wanted = &cluster["spec"]["replicas"];
    let counts = [&spec["replicas"], &status["readyReplicas"], &status["updatedReplicas"]];
    if counts.iter().any(|count| *count != wanted) {
        return Err(format!("{wanted} wanted: {status}"));
    }
    if status["currentRevision"] != status["updateRevision"]
        || status["observedGeneration"] != set["metadata"]["generation"]
    {
        return Err("the StatefulSet has not rolled out".to_owned());
    }
    Ok(())
}
