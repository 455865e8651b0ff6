//! ZooKeeper servers in pods, by their wire protocol and their words: bring-up by the image's scripts,
//! nodes with versions, quorum, reconfiguration.

#[path = "support/zookeeper_client.rs"]
mod zookeeper_client;

use std::time::Duration;

use sim::world::World;
use zookeeper_client::{Session, say};

const SETTINGS: &str = "4lw.commands.whitelist=ruok, srvr, conf\nreconfigEnabled=true\nskipACL=yes\n\
                        tickTime=2500\n";

/// Services, files and a set of so many servers, as an operator would write them.
fn manifest(replicas: u32) -> String {
    let environment = "DOMAIN=zk-headless.default.svc.cluster.local\nQUORUM_PORT=2888\n\
                       LEADER_PORT=3888\nCLIENT_HOST=zk-client\nCLIENT_PORT=2181\nCLUSTER_NAME=zk\n";
    let objects = serde_json::json!([
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "zk"},
            "data": {"zoo.cfg": SETTINGS, "env.sh": environment}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "zk-headless"},
            "spec": {"clusterIP": "None", "selector": {"app": "zk"},
                "ports": [{"name": "client", "port": 2181}]}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "zk-client"},
            "spec": {"selector": {"app": "zk"}, "ports": [{"name": "client", "port": 2181}]}},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "zk"},
            "spec": {"replicas": replicas, "serviceName": "zk-headless",
                "selector": {"matchLabels": {"app": "zk"}},
                "template": {"metadata": {"labels": {"app": "zk"}}, "spec": {
                    "containers": [{"name": "zookeeper", "image": "pravega/zookeeper:0.2.15",
                        "command": ["/usr/local/bin/zookeeperStart.sh"],
                        "readinessProbe": {"exec": {"command": ["zookeeperReady.sh"]}},
                        "volumeMounts": [{"name": "data", "mountPath": "/data"},
                            {"name": "conf", "mountPath": "/conf"}]}],
                    "volumes": [{"name": "conf", "configMap": {"name": "zk"}}]}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}}}}]}},
    ]);
    let objects = objects.as_array().cloned().unwrap_or_default();
    objects.iter().map(|object| format!("---\n{object}\n")).collect()
}

async fn up(replicas: u32) -> (World, tokio::task::JoinHandle<()>) {
    let world = World::new(1);
    let driver = world.spawn();
    world.apply(&manifest(replicas)).expect("applied");
    ready(&world, replicas).await;
    (world, driver)
}

async fn ready(world: &World, replicas: u32) {
    let key = sim::Key::new("apps", "statefulsets", "default", "zk");
    let ready = world.wait_until(Duration::from_secs(300), |store| {
        store.get(&key).is_some_and(|set| {
            set["status"]["readyReplicas"] == replicas && set["status"]["replicas"] == replicas
        })
    });
    assert!(ready.await, "{:#}", world.get("StatefulSet", "default", "zk").unwrap_or_default());
    // The name of a pod resolves once its readiness has come round.
    world.run_for(Duration::from_secs(1)).await;
}

async fn modes(world: &World, replicas: u32) -> Vec<String> {
    let mut modes = Vec::new();
    for ordinal in 0..replicas {
        let said = say(world, ordinal, "srvr").await;
        let mode = said.lines().find_map(|line| line.strip_prefix("Mode: "));
        modes.push(mode.unwrap_or("none").to_owned());
    }
    modes
}

#[tokio::test(start_paused = true)]
async fn the_scripts_form_one_ensemble_of_voters() {
    let (world, driver) = up(3).await;
    assert_eq!(modes(&world, 3).await, ["leader", "follower", "follower"]);
    let mut session = Session::open(&world, 1).await.expect("a session");
    let (config, _) = session.get("/zookeeper/config").await.expect("there");
    let lines: Vec<&str> = config.lines().collect();
    let first =
        "server.1=zk-0.zk-headless.default.svc.cluster.local:2888:3888:participant;0.0.0.0:2181";
    assert_eq!(lines[0], first);
    assert_eq!(config.matches(":participant;").count(), 3);
    assert!(lines[3].starts_with("version=1000000"), "{config}");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn words_outside_the_whitelist_are_refused_and_settings_are_told() {
    let (world, driver) = up(1).await;
    assert_eq!(say(&world, 0, "ruok").await, "imok");
    let refused = "mntr is not executed because it is not in the whitelist.\n";
    assert_eq!(say(&world, 0, "mntr").await, refused);
    let told = say(&world, 0, "conf").await;
    for line in ["tickTime=2500", "minSessionTimeout=5000", "serverId=1", "quorumPort=2888"] {
        assert!(told.lines().any(|one| one == line), "{line}: {told}");
    }
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn nodes_are_the_same_on_all_servers_and_guarded_by_versions() {
    let (world, driver) = up(3).await;
    let mut one = Session::open(&world, 0).await.expect("a session");
    let mut other = Session::open(&world, 2).await.expect("a session");
    assert_eq!(one.create("/a", "1").await, Ok(()));
    assert_eq!(one.create("/a", "1").await, Err(-110));
    assert_eq!(one.create("/b/c", "1").await, Err(-101));
    assert_eq!(other.get("/a").await, Ok(("1".to_owned(), 0)));
    assert_eq!(other.set("/a", "2", 0).await, Ok(()));
    assert_eq!(one.set("/a", "3", 0).await, Err(-103));
    assert_eq!(one.get("/a").await, Ok(("2".to_owned(), 1)));
    assert_eq!(one.get("/none").await, Err(-101));
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn without_a_quorum_nobody_grants_a_session_and_the_data_come_back_with_it() {
    let (world, driver) = up(3).await;
    let mut session = Session::open(&world, 0).await.expect("a session");
    session.create("/kept", "x").await.expect("made");
    let address = |ordinal: u32| {
        let pod = world.get("Pod", "default", &format!("zk-{ordinal}")).unwrap_or_default();
        pod["status"]["podIP"].as_str().unwrap_or_default().to_owned()
    };
    let cut = [(address(0), address(1)), (address(0), address(2)), (address(1), address(2))];
    world.model(|model| cut.iter().for_each(|(one, other)| model.network.cut(one, other)));
    assert!(Session::open(&world, 0).await.is_none(), "no quorum");
    assert!(session.get("/kept").await.is_err(), "the old session ends too");
    assert_eq!(modes(&world, 3).await, ["none", "none", "none"]);
    assert_eq!(say(&world, 0, "ruok").await, "imok", "the process is well");
    world.model(|model| cut.iter().for_each(|(one, other)| model.network.mend(one, other)));
    world.run_for(Duration::from_secs(2)).await;
    assert_eq!(modes(&world, 3).await.iter().filter(|mode| *mode == "leader").count(), 1);
    let mut session = Session::open(&world, 1).await.expect("a session");
    assert_eq!(session.get("/kept").await, Ok(("x".to_owned(), 0)));
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_minority_goes_and_the_rest_elects_another_leader() {
    let (world, driver) = up(3).await;
    world.zookeeper("default", "zk-0").expect("a server").crash("out of memory");
    world.run_for(Duration::from_millis(400)).await;
    let modes = modes(&world, 3).await;
    assert_eq!(modes[1..].iter().filter(|mode| *mode == "leader").count(), 1, "{modes:?}");
    assert_eq!(modes[0], "none");
    let mut session = Session::open(&world, 1).await.expect("a session");
    session.create("/meanwhile", "x").await.expect("made");
    ready(&world, 3).await;
    world.run_for(Duration::from_secs(30)).await;
    let mut back = Session::open(&world, 0).await.expect("it is back");
    assert_eq!(back.get("/meanwhile").await, Ok(("x".to_owned(), 0)));
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn reconfiguration_is_guarded_by_the_version_and_by_a_quorum() {
    let (world, driver) = up(3).await;
    let mut session = Session::open(&world, 0).await.expect("a session");
    let (config, _) = session.get("/zookeeper/config").await.expect("there");
    let version = config.rsplit_once("version=").map_or("", |parts| parts.1);
    let version = i64::from_str_radix(version, 16).expect("hexadecimal");
    assert_eq!(session.reconfigure("", "3", version - 1).await, Err(-103));
    let strangers = "server.8=x:1:2:participant;3,server.9=y:1:2:participant;3,\
                     server.10=z:1:2:participant;3,server.11=w:1:2:participant;3";
    assert_eq!(session.reconfigure(strangers, "", version).await, Err(-13));
    assert_eq!(session.reconfigure("", "1,2,3", version).await, Err(-8));
    assert_eq!(session.reconfigure("", "3", version).await, Ok(()));
    let (config, _) = session.get("/zookeeper/config").await.expect("there");
    assert!(!config.contains("server.3="), "{config}");
    driver.abort();
}

/// What the record says decides whether a stopping server leaves the ensemble.
#[tokio::test(start_paused = true)]
async fn the_stop_hook_leaves_only_when_the_record_has_no_place() {
    let (world, driver) = up(3).await;
    let mut session = Session::open(&world, 0).await.expect("a session");
    session.create("/zookeeper-operator", "").await.expect("made");
    session.create("/zookeeper-operator/zk", "CLUSTER_SIZE=3").await.expect("made");
    world.delete("Pod", "default", "zk-2").expect("deleted");
    world.run_for(Duration::from_secs(1)).await;
    ready(&world, 3).await;
    let (config, _) = session.get("/zookeeper/config").await.expect("there");
    assert!(config.contains("server.3="), "a restart changes no membership: {config}");
    session.set("/zookeeper-operator/zk", "CLUSTER_SIZE=2", 0).await.expect("written");
    world.apply(&manifest(2)).expect("applied");
    ready(&world, 2).await;
    let (config, _) = session.get("/zookeeper/config").await.expect("there");
    assert!(!config.contains("server.3="), "{config}");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn an_image_without_the_scripts_does_not_start() {
    let world = World::new(2);
    let driver = world.spawn();
    world
        .apply(&manifest(1).replace("pravega/zookeeper:0.2.15", "zookeeper:3.9"))
        .expect("applied");
    world.run_for(Duration::from_secs(30)).await;
    let pod = world.get("Pod", "default", "zk-0").unwrap_or_default();
    let ended = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(ended["exitCode"], 128, "{pod:#}");
    let key = ("default".to_owned(), "zk-0".to_owned(), "zookeeper".to_owned());
    let log = world.model(|model| model.logs.get(&key).cloned()).unwrap_or_default();
    assert!(log.contains("zookeeperStart.sh") && log.contains("no such file"), "{log}");
    driver.abort();
}
