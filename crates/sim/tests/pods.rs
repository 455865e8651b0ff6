//! Pods under the scheduler and kubelet models, seen from outside.

use std::time::Duration;

use serde_json::{Value, json};
use sim::builtin::Switch;
use sim::builtin::pods::program::{Behaviour, Exit};
use sim::world::World;

fn pod(name: &str, container: &str, rest: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default, labels: {{app: {name}}}}}
spec:
  automountServiceAccountToken: false
{rest}
  containers:
  - name: main
    image: nginx:1
{container}
"
    )
}

fn get(world: &World, name: &str) -> Value {
    world.get("Pod", "default", name).expect("the pod is there")
}

fn condition(pod: &Value, kind: &str) -> Value {
    let list = pod["status"]["conditions"].as_array().expect("conditions");
    list.iter().find(|one| one["type"] == kind).cloned().unwrap_or(Value::Null)
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_a_node_an_address_and_ready() {
    let world = World::new(1);
    let driver = world.spawn();
    world.apply(&pod("a", "", "")).expect("applied");
    world.run_for(Duration::from_secs(30)).await;
    let pod = get(&world, "a");
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(pod["spec"]["nodeName"], "node-1");
    assert!(pod["status"]["podIP"].as_str().is_some_and(|ip| ip.starts_with("10.244.")));
    for kind in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
        assert_eq!(condition(&pod, kind)["status"], "True", "{kind}");
    }
    let reasons: Vec<String> =
        world.events("default", "a").into_iter().map(|event| event.0).collect();
    for reason in ["Scheduled", "Pulling", "Pulled", "Created", "Started"] {
        assert!(reasons.iter().any(|one| one == reason), "{reason} in {reasons:?}");
    }
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_doubles_its_backoff_and_shows_the_last_words() {
    let world = World::new(2);
    let driver = world.spawn();
    let exit = Exit { code: 1, message: "FATAL: no".into() };
    world.model(|model| model.programs.behave("nginx", Behaviour::Crash { after: 200, exit }));
    let policy = "    terminationMessagePolicy: FallbackToLogsOnError";
    world.apply(&pod("a", policy, "")).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    let pod = get(&world, "a");
    let status = &pod["status"]["containerStatuses"][0];
    assert_eq!(pod["status"]["phase"], "Running");
    assert_eq!(status["state"]["waiting"]["reason"], "CrashLoopBackOff", "{status}");
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    assert_eq!(status["lastState"]["terminated"]["message"], "FATAL: no");
    assert_eq!(status["restartCount"], 3);
    let message = status["state"]["waiting"]["message"].as_str().unwrap();
    assert!(message.starts_with("back-off 40s restarting failed container=main pod=a_default("));
    assert_eq!(condition(&pod, "Ready")["reason"], "ContainersNotReady");
    world.model(|model| model.programs.recover("nginx"));
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(condition(&get(&world, "a"), "Ready")["status"], "True");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_named_and_waited_for() {
    let env = |from: &str| format!("    env:\n    - name: P\n      valueFrom: {{{from}}}");
    let cases = [
        (env("secretKeyRef: {name: s, key: k}"), "secret \"s\" not found"),
        (env("secretKeyRef: {name: there, key: k}"), "couldn't find key k in Secret default/there"),
        (env("configMapKeyRef: {name: c, key: k}"), "configmap \"c\" not found"),
        (
            env("configMapKeyRef: {name: map, key: k}"),
            "couldn't find key k in ConfigMap default/map",
        ),
    ];
    for (index, (container, message)) in cases.into_iter().enumerate() {
        let world = World::new(10 + index as u64);
        let driver = world.spawn();
        world
            .apply("apiVersion: v1\nkind: Secret\nmetadata: {name: there, namespace: default}\n")
            .unwrap();
        world
            .apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: default}\n")
            .unwrap();
        world.apply(&pod("a", &container, "")).expect("applied");
        world.run_for(Duration::from_secs(30)).await;
        let found = get(&world, "a");
        let waiting = &found["status"]["containerStatuses"][0]["state"]["waiting"];
        assert_eq!(waiting["reason"], "CreateContainerConfigError", "{found}");
        assert_eq!(waiting["message"], message);
        for name in ["s", "there"] {
            world.apply(&format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: default}}\ndata: {{k: dg==}}\n")).unwrap();
        }
        for name in ["c", "map"] {
            world.apply(&format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\ndata: {{k: v}}\n")).unwrap();
        }
        world.run_for(Duration::from_secs(30)).await;
        assert_eq!(condition(&get(&world, "a"), "Ready")["status"], "True");
        driver.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_volume_source_is_a_failed_mount() {
    let world = World::new(3);
    let driver = world.spawn();
    let volume = "  volumes:\n  - name: conf\n    configMap: {name: c}";
    world.apply(&pod("a", "", volume)).expect("applied");
    world.run_for(Duration::from_secs(30)).await;
    let found = get(&world, "a");
    assert_eq!(found["status"]["phase"], "Pending");
    let waiting = &found["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ContainerCreating");
    let events = world.events("default", "a");
    let text = "MountVolume.SetUp failed for volume \"conf\" : configmap \"c\" not found";
    assert!(events.iter().any(|one| one.0 == "FailedMount" && one.1 == text), "{events:?}");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_fitting_node_says_why() {
    let world = World::new(4);
    let driver = world.spawn();
    world.apply(&pod("big", "    resources: {requests: {cpu: '100'}}", "")).expect("applied");
    world.apply(&pod("lost", "", "  nodeSelector: {zone: mars}")).expect("applied");
    let claim = "  volumes:\n  - name: d\n    persistentVolumeClaim: {claimName: nope}";
    world.apply(&pod("claim", "", claim)).expect("applied");
    world.run_for(Duration::from_secs(5)).await;
    let cases = [
        ("big", "0/1 nodes are available: 1 Insufficient cpu."),
        ("lost", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."),
        ("claim", "0/1 nodes are available: persistentvolumeclaim \"nope\" not found."),
    ];
    for (name, start) in cases {
        let scheduled = condition(&get(&world, name), "PodScheduled");
        assert_eq!(scheduled["reason"], "Unschedulable");
        let message = scheduled["message"].as_str().unwrap();
        assert!(message.starts_with(start), "{message}");
    }
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn an_external_kubelet_is_left_alone() {
    let world = World::new(5);
    world.model(|model| model.kubelet = Switch::External);
    let driver = world.spawn();
    world.apply(&pod("a", "", "")).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    let found = get(&world, "a");
    assert_eq!(found["spec"]["nodeName"], "node-1");
    assert_eq!(found["status"]["phase"], "Pending");
    world.delete("Pod", "default", "a").expect("deleted");
    world.run_for(Duration::from_secs(600)).await;
    assert!(!get(&world, "a")["metadata"]["deletionTimestamp"].is_null());
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn init_containers_run_in_order_and_a_failing_one_holds_the_pod() {
    let world = World::new(6);
    let driver = world.spawn();
    let exit = Exit { code: 3, message: String::new() };
    world.model(|model| {
        model.programs.behave("default/a/second", Behaviour::Crash { after: 10, exit });
    });
    let init = "  initContainers:\n  - {name: first, image: i}\n  - {name: second, image: i}";
    world.apply(&pod("a", "", init)).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    let found = get(&world, "a");
    assert_eq!(found["status"]["phase"], "Pending");
    let states = &found["status"]["initContainerStatuses"];
    assert_eq!(states[0]["state"]["terminated"]["exitCode"], 0);
    assert_eq!(states[1]["lastState"]["terminated"]["exitCode"], 3);
    let initialized = condition(&found, "Initialized");
    assert_eq!(initialized["message"], "containers with incomplete status: [second]");
    world.model(|model| model.programs.recover("default/a/second"));
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(condition(&get(&world, "a"), "Ready")["status"], "True");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn a_lost_node_makes_pods_unready_and_evicts_them() {
    let world = World::new(7);
    let driver = world.spawn();
    world.apply(&pod("a", "", "")).expect("applied");
    world.run_for(Duration::from_secs(30)).await;
    world.model(|model| model.down.insert("node-1".into()));
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(condition(&get(&world, "a"), "Ready")["status"], "False");
    let node = world.get("Node", "", "node-1").unwrap();
    assert_eq!(condition(&node, "Ready")["status"], "Unknown");
    world.run_for(Duration::from_secs(400)).await;
    assert!(!get(&world, "a")["metadata"]["deletionTimestamp"].is_null());
    world.model(|model| model.down.clear());
    world.run_for(Duration::from_secs(60)).await;
    assert!(world.get("Pod", "default", "a").is_none());
    assert_eq!(condition(&world.get("Node", "", "node-1").unwrap(), "Ready")["status"], "True");
    driver.abort();
}

#[tokio::test(start_paused = true)]
async fn services_list_ready_pods_only() {
    let world = World::new(8);
    let driver = world.spawn();
    let service = "apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  selector: {app: a}
  ports: [{name: http, port: 80, targetPort: 8080}]
";
    let made = world.apply(service).expect("applied");
    assert!(made[0]["spec"]["clusterIP"].as_str().is_some_and(|ip| ip.starts_with("10.96.")));
    world.model(|model| model.programs.behave("default/a", Behaviour::NeverReady));
    world.apply(&pod("a", "", "")).expect("applied");
    world.run_for(Duration::from_secs(30)).await;
    let slice = |world: &World| {
        let slices = world.list("endpointslices", "default");
        slices
            .into_iter()
            .find(|one| one["metadata"]["labels"]["kubernetes.io/service-name"] == "web")
            .expect("a slice")
    };
    let found = slice(&world);
    let expected = json!({"ready": false, "serving": false, "terminating": false});
    assert_eq!(found["endpoints"][0]["conditions"], expected);
    assert_eq!(found["ports"][0]["port"], 8080);
    world.model(|model| model.programs.recover("default/a"));
    world.delete("Pod", "default", "a").expect("deleted");
    world.run_for(Duration::from_secs(30)).await;
    world.apply(&pod("a", "", "")).expect("applied");
    world.run_for(Duration::from_secs(30)).await;
    let expected = json!({"ready": true, "serving": true, "terminating": false});
    assert_eq!(slice(&world)["endpoints"][0]["conditions"], expected);
    driver.abort();
}
