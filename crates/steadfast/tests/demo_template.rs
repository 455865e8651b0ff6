//! The demo runs what the pod template says, and nothing of its own: each part of the template that is
//! broken breaks the pod. The operator's own objects are copied, so that the operator, which would mend
//! them, has no say over the copies.

mod console;

use std::time::{Duration, Instant};

use clap::Parser;
use console::{PATIENCE, require};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use steadfast::args::{Cli, Command};
use steadfast::demo::stage::Stage;
use tokio_util::sync::CancellationToken;

/// What a pod is made from.
struct Parts {
    set: Value,
    files: Value,
    secret: Option<Value>,
    replication: Value,
}

/// One way to break the template.
struct Case {
    name: &'static str,
    /// All of these stand in the pod's status or its Events.
    words: &'static [&'static str],
    /// Whether a restart goes on without it, as with the real image.
    heals: bool,
    change: fn(&mut Parts),
}

/// The server's container of a set.
fn server(parts: &mut Parts) -> &mut Value {
    &mut parts.set["spec"]["template"]["spec"]["containers"][0]
}

fn append(parts: &mut Parts, file: &str, text: &str) {
    let whole = parts.files["data"][file].as_str().expect("the file is there").to_owned();
    parts.files["data"][file] = json!(whole + text);
}

fn cases() -> Vec<Case> {
    let case = |name, words, change| Case { name, words, heals: false, change };
    vec![
        case("environment", &["superuser password is not specified"], |parts| {
            let environment = server(parts)["env"].as_array_mut().expect("variables");
            environment.retain(|variable| variable["name"] != "POSTGRES_PASSWORD");
        }),
        case("arguments", &["could not access the server configuration file"], |parts| {
            server(parts)["args"][2] = json!("config_file=/etc/steadfast/other.conf");
        }),
        case("configuration", &["syntax error in file", "postgresql.conf"], |parts| {
            append(parts, "postgresql.conf", "work_mem = = 4MB\n");
        }),
        case("secret", &["CreateContainerConfigError", "test-db-superuser"], |parts| {
            parts.secret = None;
        }),
        // The image's second start takes the folder for a whole database, so only the first run fails.
        Case {
            heals: true,
            ..case("script", &["syntax error at or near", "SELEKT"], |parts| {
                parts.files["data"]["10-steadfast.sql"] = json!("SELEKT 1;\n");
            })
        },
        case("probe", &["Readiness probe failed", "\"started\":true"], |parts| {
            server(parts)["readinessProbe"]["exec"]["command"][2] =
                json!("exec pg_isready -h \"$POD_IP\" -p 5433");
        }),
    ]
}

fn api(
    client: &Client,
    (group, version, kind): (&str, &str, &str),
    namespace: &str,
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

const SET: (&str, &str, &str) = ("apps", "v1", "StatefulSet");
const FILES: (&str, &str, &str) = ("", "v1", "ConfigMap");
const SECRET: (&str, &str, &str) = ("", "v1", "Secret");
const POD: (&str, &str, &str) = ("", "v1", "Pod");
const EVENT: (&str, &str, &str) = ("", "v1", "Event");
const DATABASE: (&str, &str, &str) = ("database.example.com", "v1", "Database");

/// An object as somebody else would write it: without what the API server and its owner added.
async fn copy(client: &Client, kind: (&str, &str, &str), name: &str) -> Value {
    let object = api(client, kind, "default").get(name).await.expect("the operator made it");
    let mut object = serde_json::to_value(object).expect("JSON");
    object["metadata"] = json!({"name": name});
    object.as_object_mut().expect("an object").remove("status");
    object
}

async fn create(client: &Client, kind: (&str, &str, &str), namespace: &str, object: &Value) {
    let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
    api(client, kind, namespace).create(&PostParams::default(), &object).await.expect("accepted");
}

async fn set_up(client: &Client, namespace: &str, parts: &Parts) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
    let namespaces: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let made = DynamicObject::new(namespace, &resource);
    namespaces.create(&PostParams::default(), &made).await.expect("accepted");
    if let Some(secret) = &parts.secret {
        create(client, SECRET, namespace, secret).await;
    }
    create(client, SECRET, namespace, &parts.replication).await;
    create(client, FILES, namespace, &parts.files).await;
    create(client, SET, namespace, &parts.set).await;
}

/// Status of the pod and its Events, as text.
async fn known(client: &Client, namespace: &str) -> (bool, String) {
    let pod = api(client, POD, namespace).get_opt("test-db-0").await.expect("readable");
    let status = pod.map(|pod| pod.data["status"].clone()).unwrap_or_default();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
    let events =
        api(client, EVENT, namespace).list(&ListParams::default()).await.expect("readable");
    let said = events.iter().map(|e| format!("{}: {}\n", e.data["reason"], e.data["message"]));
    let status = status.to_string().replace("\\\"", "\"");
    (ready, format!("{status}\n{}", said.collect::<String>()))
}

/// Waits for what is known of a pod, or fails with it. Answers whether the pod was Ready then.
async fn until(client: &Client, namespace: &str, holds: impl Fn(bool, &str) -> bool) -> bool {
    let began = Instant::now();
    loop {
        let (ready, text) = known(client, namespace).await;
        if holds(ready, &text) {
            return ready;
        }
        assert!(began.elapsed() < PATIENCE, "{namespace} never came to it: {text}");
        // poll: processes of pods, by way of the API
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The operator's own objects, taken once its Database is Ready; the operator has ended then.
async fn parts_of_the_operator(stage: &mut Stage) -> Parts {
    let cli = Cli::parse_from(["steadfast", "demo"]);
    let Command::Demo(options) = cli.command else { unreachable!("as parsed") };
    let stop = CancellationToken::new();
    stage.operate(&options.decisions, &stop);
    let client = stage.client.clone();
    let text = include_str!("../../../examples/test-db.yaml");
    let resource: Value = serde_saphyr::from_str(text).expect("a manifest");
    create(&client, DATABASE, "default", &resource).await;
    until(&client, "default", |ready, _| ready).await;
    stop.cancel();
    let mut parts = Parts {
        set: copy(&client, SET, "test-db").await,
        files: copy(&client, FILES, "test-db-config").await,
        secret: Some(copy(&client, SECRET, "test-db-superuser").await),
        replication: copy(&client, SECRET, "test-db-replication").await,
    };
    // The volumes of the copies are empty and may be filled.
    parts.files["data"]["bootstrap"] = json!("allowed");
    parts
}

#[tokio::test(flavor = "multi_thread")]
async fn each_broken_part_of_the_template_breaks_the_pod() {
    if require(false).is_none() {
        return;
    }
    let mut stage = Stage::raise(false).await.expect("a stage");
    let whole = parts_of_the_operator(&mut stage).await;
    let client = stage.client.clone();
    let copied = |change: fn(&mut Parts)| {
        let mut parts = Parts {
            set: whole.set.clone(),
            files: whole.files.clone(),
            secret: whole.secret.clone(),
            replication: whole.replication.clone(),
        };
        change(&mut parts);
        parts
    };
    set_up(&client, "whole", &copied(|_| {})).await;
    let cases = cases();
    for case in &cases {
        set_up(&client, case.name, &copied(case.change)).await;
    }
    until(&client, "whole", |ready, _| ready).await;
    for case in &cases {
        let words = case.words;
        let ready =
            until(&client, case.name, |_, text| words.iter().all(|w| text.contains(w))).await;
        assert!(case.heals || !ready, "{} is broken and Ready", case.name);
    }
    println!("{} ways to break the template, each of which breaks the pod", cases.len());
    stage.strike().await;
}
