//! The machine's kubectl against the simulated API over HTTP: what a person with a console sees.
//!
//! Says so loudly where kubectl is missing, and fails there if STEADFAST_REQUIRE_ALL=1.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

mod console;

use std::process::Stdio;

use console::{Console, line};
use serde_json::{Value, json};
use sim::{Actor, Options, Sub};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

fn stateful_set(replicas: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": { "name": "web", "namespace": "default", "labels": { "app": "web" } },
        "spec": {
            "replicas": replicas, "serviceName": "web",
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    })
}

fn set_ready(console: &Console, ready: i64) {
    console.cluster.with(|core| {
        let kind = core.kinds.get("apps", "statefulsets").unwrap();
        let key = kind.key("default", "web");
        let mut object = core.get(&key).unwrap().clone();
        object["status"] = json!({ "replicas": ready, "readyReplicas": ready });
        let by = Actor::new("test", "test");
        core.update(&by, &kind, &key, object, Some(Sub::Status), &Options::default()).unwrap();
    });
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[tokio::test]
async fn objects_are_applied_printed_patched_and_deleted() {
    let Some(console) = Console::open("apply").await else { return };
    let file = console.file("web.json", &stateful_set(1));
    assert_eq!(console.kubectl(&["apply", "-f", &file]).await, "statefulset.apps/web created\n");
    assert_eq!(console.kubectl(&["apply", "-f", &file]).await, "statefulset.apps/web unchanged\n");
    let file = console.file("web.json", &stateful_set(3));
    assert_eq!(console.kubectl(&["apply", "-f", &file]).await, "statefulset.apps/web configured\n");

    let table = console.kubectl(&["get", "sts"]).await;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(words(lines[0]), ["NAME", "READY", "AGE"]);
    assert_eq!(words(lines[1])[..2], ["web", "0/3"]);
    let wide = console.kubectl(&["get", "sts", "-o", "wide"]).await;
    assert_eq!(words(wide.lines().next().unwrap())[3..], ["CONTAINERS", "IMAGES"]);
    let path = "jsonpath={.items[0].spec.replicas}/{.items[*].metadata.generation}";
    assert_eq!(console.kubectl(&["get", "sts", "-o", path]).await, "3/2");

    console.kubectl(&["patch", "sts", "web", "-p", r#"{"spec":{"replicas":4}}"#]).await;
    let merge = r#"{"metadata":{"annotations":{"a":"b"}}}"#;
    console.kubectl(&["patch", "sts", "web", "--type=merge", "-p", merge]).await;
    let json = r#"[{"op":"replace","path":"/spec/replicas","value":5}]"#;
    console.kubectl(&["patch", "sts", "web", "--type=json", "-p", json]).await;
    let status = r#"{"status":{"replicas":1}}"#;
    console
        .kubectl(&["patch", "sts", "web", "--subresource=status", "--type=merge", "-p", status])
        .await;
    console.kubectl(&["scale", "sts", "web", "--replicas=6"]).await;
    let path = "jsonpath={.spec.replicas} {.metadata.annotations.a} {.status.replicas}";
    assert_eq!(console.kubectl(&["get", "sts", "web", "-o", path]).await, "6 b 1");

    let deleted = console.kubectl(&["delete", "sts", "web"]).await;
    assert!(deleted.contains("\"web\" deleted"), "{deleted}");
    let missing = console.run(&["get", "sts", "web"]).await;
    assert_eq!(
        missing.errors,
        "Error from server (NotFound): statefulsets.apps \"web\" not found\n"
    );
}

#[tokio::test]
async fn server_side_apply_names_the_owner_of_a_conflict() {
    let Some(console) = Console::open("ssa").await else { return };
    let file = console.file("web.json", &stateful_set(1));
    let apply = ["apply", "--server-side", "-f", &file];
    let applied = console.kubectl(&apply).await;
    assert_eq!(applied, "statefulset.apps/web serverside-applied\n");
    console.kubectl(&["scale", "sts", "web", "--replicas=2"]).await;
    let file = console.file("web.json", &stateful_set(3));
    let refused = console.run(&["apply", "--server-side", "-f", &file]).await;
    assert!(!refused.success);
    assert!(refused.errors.contains("Apply failed with 1 conflict"), "{}", refused.errors);
    assert!(refused.errors.contains(".spec.replicas"), "{}", refused.errors);
    console.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &file]).await;
    let path = "jsonpath={.spec.replicas}";
    assert_eq!(console.kubectl(&["get", "sts", "web", "-o", path]).await, "3");

    let mut wrong = stateful_set(3);
    wrong["spec"]["foo"] = json!(1);
    let file = console.file("wrong.json", &wrong);
    let refused = console.run(&["apply", "-f", &file]).await;
    assert!(
        refused.errors.contains("strict decoding error: unknown field \"spec.foo\""),
        "{}",
        refused.errors
    );
}

#[tokio::test]
async fn kubectl_watches_and_waits() {
    let Some(console) = Console::open("watch").await else { return };
    let file = console.file("web.json", &stateful_set(1));
    console.kubectl(&["apply", "-f", &file]).await;
    let mut watch: Child =
        console.command(&["get", "sts", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    assert_eq!(words(&line(&mut lines).await), ["NAME", "READY", "AGE"]);
    assert_eq!(words(&line(&mut lines).await)[..2], ["web", "0/1"]);

    let mut wait = console.command(&[
        "wait",
        "sts/web",
        "--for=jsonpath={.status.readyReplicas}=1",
        "--timeout=60s",
    ]);
    let wait = wait.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The wait is under way, or has not begun yet: it must succeed in both cases.
    set_ready(&console, 1);
    let waited = wait.wait_with_output().await.unwrap();
    assert!(waited.status.success(), "{}", String::from_utf8_lossy(&waited.stderr));
    assert_eq!(words(&line(&mut lines).await)[..2], ["web", "1/1"]);

    let mut gone = console.command(&["wait", "sts/web", "--for=delete", "--timeout=60s"]);
    let gone = gone.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    console.kubectl(&["delete", "sts", "web", "--wait=false"]).await;
    let gone = gone.wait_with_output().await.unwrap();
    assert!(gone.status.success(), "{}", String::from_utf8_lossy(&gone.stderr));
    watch.kill().await.unwrap();
}

#[tokio::test]
async fn kubectl_describes_and_lists_events() {
    let Some(console) = Console::open("describe").await else { return };
    let file = console.file("web.json", &stateful_set(1));
    console.kubectl(&["apply", "-f", &file]).await;
    let uid = console.kubectl(&["get", "sts", "web", "-o", "jsonpath={.metadata.uid}"]).await;
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": { "name": "web.1", "namespace": "default" },
        "regarding": { "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "namespace": "default", "uid": uid },
        "reason": "Created", "action": "Create", "note": "made a pod", "type": "Normal",
        "reportingController": "steadfast", "reportingInstance": "one",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    });
    let file = console.file("event.json", &event);
    console.kubectl(&["create", "-f", &file]).await;
    let events = console.kubectl(&["get", "events"]).await;
    assert!(events.contains("statefulset/web") && events.contains("made a pod"), "{events}");
    let events = console.kubectl(&["events", "--for", "statefulset/web"]).await;
    assert!(events.contains("made a pod"), "{events}");
    let described = console.kubectl(&["describe", "sts", "web"]).await;
    assert!(described.contains("Name:"), "{described}");
    assert!(described.contains("made a pod"), "{described}");
    for kind in ["namespaces/default", "ns/kube-system"] {
        assert!(console.kubectl(&["describe", kind]).await.contains("Status:"));
    }
}

#[tokio::test]
async fn discovery_and_versions_satisfy_kubectl() {
    let Some(console) = Console::open("discovery").await else { return };
    let resources = console.kubectl(&["api-resources"]).await;
    for wanted in ["statefulsets", "customresourcedefinitions", "leases"] {
        assert!(resources.contains(wanted), "{wanted} in {resources}");
    }
    assert!(console.kubectl(&["version"]).await.contains("v1.36"));
    // kubectl's typed commands send protobuf.
    console.kubectl(&["create", "namespace", "lab"]).await;
    console.kubectl(&["create", "configmap", "settings", "-n", "lab", "--from-literal=a=b"]).await;
    console
        .kubectl(&["create", "secret", "generic", "login", "-n", "lab", "--from-literal=key=x"])
        .await;
    console.kubectl(&["create", "serviceaccount", "robot", "-n", "lab"]).await;
    let data =
        ["get", "-n", "lab", "cm/settings", "secret/login", "-o", "jsonpath={.items[*].data}"];
    assert_eq!(console.kubectl(&data).await, r#"{"a":"b"} {"key":"eA=="}"#);
    assert_eq!(console.kubectl(&["auth", "can-i", "create", "pods"]).await, "yes\n");
    let all = console.run(&["get", "all"]).await;
    assert!(all.errors.contains("No resources found"), "{}", all.errors);
}

#[tokio::test]
async fn custom_kinds_are_served_printed_and_withdrawn() {
    let Some(console) = Console::open("custom").await else { return };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wi"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": { "size": { "type": "integer", "minimum": 1 } } },
                    "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
                } } },
                "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                    { "name": "Phase", "type": "string", "jsonPath": ".status.phase" },
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
            }],
        },
    });
    let file = console.file("definition.json", &definition);
    console.kubectl(&["apply", "-f", &file]).await;
    console.kubectl(&["wait", "--for=condition=Established", "crd/widgets.example.com"]).await;
    let widget = |size: i64| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": { "name": "one", "namespace": "default" }, "spec": { "size": size },
        })
    };
    let explained = console.kubectl(&["explain", "widgets.spec.size"]).await;
    assert!(explained.contains("FIELD: size <integer>"), "{explained}");
    let file = console.file("widget.json", &widget(3));
    console.kubectl(&["apply", "-f", &file]).await;
    let file = console.file("widget.json", &widget(4));
    assert_eq!(
        console.kubectl(&["apply", "-f", &file]).await,
        "widget.example.com/one configured\n"
    );
    let table = console.kubectl(&["get", "wi"]).await;
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(words(lines[0]), ["NAME", "SIZE", "PHASE", "AGE"]);
    assert_eq!(words(lines[1])[..2], ["one", "4"]);
    let file = console.file("widget.json", &widget(0));
    let refused = console.run(&["apply", "-f", &file]).await;
    let expected =
        "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1";
    assert!(refused.errors.contains(expected), "{}", refused.errors);
    console.kubectl(&["delete", "crd", "widgets.example.com"]).await;
    let gone = console.run(&["get", "widgets.example.com"]).await;
    assert!(!gone.success, "{}", gone.text);
}
