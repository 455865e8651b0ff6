//! Rendered children of ZookeeperClusters: snapshots of each, and golden digests of the pod template.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::ensemble::{World, three};
use phased::step::Step;
use serde_json::{Value, json};

/// Three plain servers, and the published examples: small, ephemeral with settings, with TLS by hand.
fn cases() -> BTreeMap<&'static str, Value> {
    let examples: Vec<Value> =
        serde_json::from_str(include_str!("../fixtures/zookeeper-examples.json")).unwrap();
    let names = ["small", "cache", "secure"];
    let mut cases: BTreeMap<&str, Value> = names.into_iter().zip(examples).collect();
    cases.insert("plain", three());
    cases
}

/// What bring-ups create, by case and name; made once a process.
static CREATED: LazyLock<BTreeMap<&'static str, BTreeMap<String, Value>>> =
    LazyLock::new(|| cases().into_iter().map(|(case, root)| (case, create(root))).collect());

fn create(root: Value) -> BTreeMap<String, Value> {
    let mut world = World::of(root);
    let mut all = BTreeMap::new();
    for _ in 0..4 {
        for step in &world.pass().steps {
            if let Step::Apply(apply) = step {
                let name = format!("{}-{}", apply.id.kind.kind, apply.id.name);
                all.entry(name).or_insert_with(|| apply.intent.clone());
            }
        }
    }
    all
}

#[test]
fn children_are_as_recorded() {
    for (case, children) in CREATED.iter() {
        for (name, object) in children {
            let text = serde_json::to_string_pretty(object).unwrap();
            insta::assert_snapshot!(format!("{case}-{name}"), text);
        }
    }
}

/// The reference's inventory: names, labels and selectors.
#[test]
fn names_labels_and_selectors_are_the_replaced_operators() {
    let children = &CREATED["plain"];
    let names: Vec<&str> = children.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "ConfigMap-zk-configmap",
            "PodDisruptionBudget-zk",
            "Service-zk-admin-server",
            "Service-zk-client",
            "Service-zk-headless",
            "StatefulSet-zk",
        ]
    );
    let app = json!({"app": "zk"});
    for (name, headless) in [("client", "false"), ("headless", "true"), ("admin-server", "false")] {
        let service = &children[&format!("Service-zk-{name}")];
        assert_eq!(service["spec"]["selector"], app);
        assert_eq!(service["metadata"]["labels"]["app"], "zk");
        assert_eq!(service["metadata"]["labels"]["headless"], headless);
    }
    assert_eq!(children["PodDisruptionBudget-zk"]["spec"]["selector"]["matchLabels"], app);
    let set = &children["StatefulSet-zk"]["spec"];
    assert_eq!(set["selector"]["matchLabels"], app);
    assert_eq!(set["serviceName"], "zk-headless");
    let labels = json!({"app": "zk", "kind": "ZookeeperMember", "release": "zk"});
    assert_eq!(set["template"]["metadata"]["labels"], labels, "and none of ours");
    let claim = &set["volumeClaimTemplates"][0]["metadata"];
    assert_eq!(claim["labels"], json!({"app": "zk", "release": "zk", "uid": "uid-root"}));
    assert!(set["template"]["metadata"].get("annotations").is_none());
}

/// The start script takes all lines but the last of the file, and appends the last of its own.
#[test]
fn the_last_line_names_the_dynamic_file() {
    for children in CREATED.values() {
        let config = children.iter().find(|(name, _)| name.starts_with("ConfigMap")).unwrap().1;
        let text = config["data"]["zoo.cfg"].as_str().unwrap();
        assert!(text.ends_with("\ndynamicConfigFile=/data/zoo.cfg.dynamic\n"));
        assert!(!text.contains("clientPort"), "the port comes with the member's entry");
    }
}

/// A setting of the user's cannot replace one of the operator's: the server takes the later line.
#[test]
fn own_settings_come_after_additional_ones() {
    let mut root = three();
    let additional = json!({"dataDir": "/elsewhere", "b": "2", "a": "1"});
    root["spec"]["config"] = json!({"additionalConfig": additional});
    let created = create(root);
    let text = created["ConfigMap-zk-configmap"]["data"]["zoo.cfg"].as_str().unwrap().to_owned();
    assert!(text.starts_with("a=1\nb=2\ndataDir=/elsewhere\n"), "{text}");
    assert!(text.find("dataDir=/data").unwrap() > text.find("dataDir=/elsewhere").unwrap());
}

/// Field case C-17: capitals, blanks and dots as people write them.
#[test]
fn domains_are_normalised() {
    let mut root = three();
    root["spec"]["kubernetesClusterDomain"] = json!("Corp.Example.");
    root["spec"]["domainName"] = json!(" zk.example.com ");
    let created = create(root);
    let text = created["ConfigMap-zk-configmap"]["data"]["env.sh"].as_str().unwrap().to_owned();
    assert!(text.contains("DOMAIN=zk-headless.default.svc.corp.example\n"), "{text}");
    let annotations = &created["Service-zk-headless"]["metadata"]["annotations"];
    let host = &annotations["external-dns.alpha.kubernetes.io/hostname"];
    assert_eq!(host, "zk-headless.zk.example.com.");
}

/// The size is no part of what restarts a server: 3 to 5 changes no template.
#[test]
fn the_template_does_not_depend_on_the_number_of_servers() {
    let mut root = three();
    root["spec"]["replicas"] = json!(5);
    let template =
        |children: &BTreeMap<String, Value>| children["StatefulSet-zk"]["spec"]["template"].clone();
    assert_eq!(template(&create(root)), template(&CREATED["plain"]));
}

/// Digests of pod templates as released. A line may only be added, for a release that is said to
/// restart clusters; a changed digest restarts every cluster at the upgrade (G-64).
#[test]
fn g_64_pod_templates_are_as_released() {
    let golden: Value =
        serde_json::from_str(include_str!("../golden/zookeeper-pod-templates.json")).unwrap();
    let digests: BTreeMap<&str, String> = CREATED
        .iter()
        .map(|(case, children)| {
            let set = children.iter().find(|(name, _)| name.starts_with("StatefulSet")).unwrap().1;
            (*case, phased::digest::of(&set["spec"]["template"]))
        })
        .collect();
    assert_eq!(json!(digests), golden["unreleased"]);
}
