//! A real `kube::Client` against the simulated API: what an operator relies on, under virtual time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use serde_json::json;
use sim::Cluster;

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "app": value } }, "data": { "key": value },
    }))
    .unwrap()
}

fn connect(cluster: &Cluster) -> Client {
    Client::new(cluster.service(), "default")
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("no API error: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_read_replaced_and_deleted() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    let created = api.create(&PostParams::default(), &config_map("one", "a")).await.unwrap();
    assert!(created.uid().is_some() && created.creation_timestamp().is_some());
    let again = api.create(&PostParams::default(), &config_map("one", "a")).await.unwrap_err();
    assert_eq!(code(&again), 409);
    assert!(again.to_string().contains("configmaps \"one\" already exists"), "{again}");

    let mut changed = api.get("one").await.unwrap();
    changed.data.as_mut().unwrap().insert("key".into(), "b".into());
    let replaced = api.replace("one", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(replaced.resource_version(), created.resource_version());
    let stale = api.replace("one", &PostParams::default(), &changed).await.unwrap_err();
    assert_eq!(code(&stale), 409);
    assert!(stale.to_string().contains("the object has been modified"), "{stale}");
    let same = api.replace("one", &PostParams::default(), &replaced).await.unwrap();
    assert_eq!(
        same.resource_version(),
        replaced.resource_version(),
        "a no-op write changes nothing"
    );

    let wrong = DeleteParams {
        preconditions: Some(Preconditions { uid: Some("other".into()), resource_version: None }),
        ..DeleteParams::default()
    };
    assert_eq!(code(&api.delete("one", &wrong).await.unwrap_err()), 409);
    let status = api.delete("one", &DeleteParams::default()).await.unwrap().right().unwrap();
    assert_eq!(status.details.unwrap().uid, created.uid().unwrap());
    let gone = api.get("one").await.unwrap_err();
    assert_eq!(code(&gone), 404);
    assert!(gone.to_string().contains("configmaps \"one\" not found"), "{gone}");
}

#[tokio::test(start_paused = true)]
async fn lists_are_selected_and_paged_over_one_version() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    for number in 0..5 {
        let value = if number % 2 == 0 { "even" } else { "odd" };
        api.create(&PostParams::default(), &config_map(&format!("m{number}"), value))
            .await
            .unwrap();
    }
    let even = api.list(&ListParams::default().labels("app in (even)")).await.unwrap();
    assert_eq!(even.items.len(), 3);
    let named = api.list(&ListParams::default().fields("metadata.name=m1")).await.unwrap();
    assert_eq!(named.items.len(), 1);
    let unknown = api.list(&ListParams::default().fields("spec.foo=1")).await.unwrap_err();
    assert_eq!(code(&unknown), 400);

    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    api.delete("m4", &DeleteParams::default()).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let rest = api.list(&ListParams::default().limit(10).continue_token(&token)).await.unwrap();
    let names: Vec<String> = rest.items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["m2", "m3", "m4"], "pages show the version of the first one");
    assert_eq!(rest.metadata.resource_version, first.metadata.resource_version);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    let mut object = config_map("held", "a");
    object.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    api.create(&PostParams::default(), &object).await.unwrap();
    let marked = api.delete("held", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    let more = json!({ "metadata": { "finalizers": ["example.com/hold", "example.com/new"] } });
    let refused =
        api.patch("held", &PatchParams::default(), &Patch::Merge(&more)).await.unwrap_err();
    assert_eq!(code(&refused), 422);
    let none = json!({ "metadata": { "finalizers": null } });
    api.patch("held", &PatchParams::default(), &Patch::Merge(&none)).await.unwrap();
    assert_eq!(code(&api.get("held").await.unwrap_err()), 404);
}

fn stateful_set(replicas: i32) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "web" },
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

#[tokio::test(start_paused = true)]
async fn generation_counts_specs_and_status_has_its_own_door() {
    let cluster = Cluster::new(1);
    let api: Api<StatefulSet> = Api::default_namespaced(connect(&cluster));
    let apply = PatchParams::apply("tester");
    let created = api.patch("web", &apply, &Patch::Apply(stateful_set(1))).await.unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    let scaled = api.patch("web", &apply, &Patch::Apply(stateful_set(2))).await.unwrap();
    assert_eq!(scaled.metadata.generation, Some(2));
    let again = api.patch("web", &apply, &Patch::Apply(stateful_set(2))).await.unwrap();
    assert_eq!(
        again.resource_version(),
        scaled.resource_version(),
        "a no-op apply changes nothing"
    );

    let both =
        json!({ "spec": { "replicas": 9 }, "status": { "replicas": 2, "readyReplicas": 1 } });
    let seen = api.patch_status("web", &PatchParams::default(), &Patch::Merge(both)).await.unwrap();
    assert_eq!(seen.spec.unwrap().replicas, Some(2));
    assert_eq!(seen.status.unwrap().ready_replicas, Some(1));
    assert_eq!(seen.metadata.generation, Some(2));

    let scale = api.get_scale("web").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(2));
    let wanted = json!({ "spec": { "replicas": 5 } });
    api.patch_scale("web", &PatchParams::default(), &Patch::Merge(wanted)).await.unwrap();
    let object = api.get("web").await.unwrap();
    assert_eq!(object.spec.unwrap().replicas, Some(5));
    assert_eq!(object.metadata.generation, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_sees_adds_changes_and_deletes() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    api.create(&PostParams::default(), &config_map("one", "a")).await.unwrap();
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let mut events = Box::pin(watcher(api.clone(), config.labels("app=a")));
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last| last != "done") {
            seen.push(describe(events.try_next().await.unwrap().unwrap()));
        }
        assert_eq!(seen, ["init", "listed one", "done"]);
        api.create(&PostParams::default(), &config_map("two", "a")).await.unwrap();
        assert_eq!(describe(events.try_next().await.unwrap().unwrap()), "applied two");
        let leave = json!({ "metadata": { "labels": { "app": "b" } } });
        api.patch("two", &PatchParams::default(), &Patch::Merge(leave)).await.unwrap();
        assert_eq!(describe(events.try_next().await.unwrap().unwrap()), "deleted two");
        api.delete("two", &DeleteParams::default()).await.unwrap();
        let quiet = tokio::time::timeout(Duration::from_secs(900), events.next()).await;
        assert!(quiet.is_err(), "bookmarks and reconnects are no events: {quiet:?}");
    }
}

fn describe(event: watcher::Event<ConfigMap>) -> String {
    match event {
        watcher::Event::Apply(object) => format!("applied {}", object.name_any()),
        watcher::Event::Delete(object) => format!("deleted {}", object.name_any()),
        watcher::Event::Init => "init".into(),
        watcher::Event::InitApply(object) => format!("listed {}", object.name_any()),
        watcher::Event::InitDone => "done".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_lists_again_after_its_version_is_gone() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    let mut events = Box::pin(watcher(api.clone(), watcher::Config::default()));
    while describe(events.try_next().await.unwrap().unwrap()) != "done" {}
    // The watch itself starts when it is next polled.
    let idle = tokio::time::timeout(Duration::from_secs(1), events.next()).await;
    assert!(idle.is_err());
    cluster.cut_watches();
    api.create(&PostParams::default(), &config_map("one", "a")).await.unwrap();
    cluster.with(|core| core.store.compact());
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "done") {
        if let Ok(event) = events.next().await.unwrap() {
            seen.push(describe(event));
        }
    }
    assert_eq!(seen, ["init", "listed one", "done"]);
}
