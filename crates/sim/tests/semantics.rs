//! Rules of the API that operators stumble over, through a `kube::Client`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Namespace, Pod, Secret};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams,
    PostParams, Preconditions,
};
use kube::core::PartialObjectMeta;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Finalizer, finalizer};
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use sim::Cluster;

fn connect(cluster: &Cluster) -> Client {
    Client::new(cluster.service(), "default")
}

fn refused<T: std::fmt::Debug>(result: Result<T, kube::Error>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.message),
        other => panic!("no refusal: {other:?}"),
    }
}

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    object(json!({ "metadata": { "name": name, "labels": { "a": name } }, "data": { "a": "b" } }))
}

#[tokio::test(start_paused = true)]
async fn applies_conflict_by_field_and_force_moves_ownership() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    let wanted = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" }, "data": { "a": value },
        })
    };
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    api.patch("m", &one, &Patch::Apply(wanted("1"))).await.unwrap();
    let (code, message) = refused(api.patch("m", &two, &Patch::Apply(wanted("2"))).await);
    assert_eq!(code, 409);
    assert_eq!(message, "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    api.patch("m", &two.clone().force(), &Patch::Apply(wanted("2"))).await.unwrap();
    let nothing = Patch::Apply(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" } }),
    );
    let back = api.patch("m", &one, &nothing).await.unwrap();
    assert_eq!(back.data.unwrap()["a"], "2", "who lost a field can't remove it");
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_means_a_known_object_does_not_make_a_new_one() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    let created = api.create(&PostParams::default(), &config_map("m")).await.unwrap();
    let wanted = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "uid": created.uid() }, "data": { "c": "d" },
    });
    let apply = PatchParams::apply("one");
    api.patch("m", &apply, &Patch::Apply(&wanted)).await.unwrap();
    api.delete("m", &DeleteParams::default()).await.unwrap();
    let (code, message) = refused(api.patch("m", &apply, &Patch::Apply(&wanted)).await);
    assert_eq!(code, 409);
    assert!(message.contains("uid mismatch"), "{message}");
    assert!(api.get_opt("m").await.unwrap().is_none());
    api.create(&PostParams::default(), &config_map("m")).await.unwrap();
    let (code, message) = refused(api.patch("m", &apply, &Patch::Apply(&wanted)).await);
    assert_eq!(code, 422);
    assert!(message.contains("metadata.uid: Invalid value"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn dry_runs_store_nothing() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let before = cluster.with(|core| core.store.version());
    assert!(api.create(&dry, &config_map("m")).await.unwrap().uid().is_some());
    assert_eq!(refused(api.get("m").await).0, 404);
    let apply = PatchParams::apply("one").dry_run();
    let wanted = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" }, "data": { "a": "b" },
    });
    api.patch("m", &apply, &Patch::Apply(wanted)).await.unwrap();
    assert_eq!(cluster.with(|core| core.store.version()), before);
    api.create(&PostParams::default(), &config_map("m")).await.unwrap();
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    api.delete("m", &dry).await.unwrap();
    api.get("m").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn propagation_leaves_the_finalizer_that_asks_for_it() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    for (params, wanted) in
        [(DeleteParams::foreground(), "foregroundDeletion"), (DeleteParams::orphan(), "orphan")]
    {
        let created =
            api.create(&PostParams::default(), &config_map(&wanted.to_lowercase())).await.unwrap();
        let marked = api.delete(&created.name_any(), &params).await.unwrap().left().unwrap();
        assert_eq!(marked.finalizers(), [wanted]);
        assert!(marked.meta().deletion_timestamp.is_some());
        assert_eq!(marked.meta().deletion_grace_period_seconds, Some(0));
    }
}

#[tokio::test(start_paused = true)]
async fn collections_are_deleted_by_selector_and_versions_guard_deletes() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    for name in ["one", "two", "three"] {
        api.create(&PostParams::default(), &config_map(name)).await.unwrap();
    }
    let selected = ListParams::default().labels("a!=three");
    api.delete_collection(&DeleteParams::default(), &selected).await.unwrap();
    let left = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["three"]);
    let version = Some("1".to_owned());
    let guard = Preconditions { uid: None, resource_version: version };
    let params = DeleteParams { preconditions: Some(guard), ..DeleteParams::default() };
    let (code, message) = refused(api.delete("three", &params).await);
    assert_eq!(code, 409);
    assert!(message.contains("the ResourceVersion in the precondition (1)"), "{message}");
}

#[derive(Debug, thiserror::Error)]
#[error("never")]
struct Never;

#[tokio::test(start_paused = true)]
async fn the_finalizer_of_kube_adds_and_removes_itself() {
    let cluster = Cluster::new(1);
    let api: Api<ConfigMap> = Api::default_namespaced(connect(&cluster));
    let created = api.create(&PostParams::default(), &config_map("m")).await.unwrap();
    let reconcile = |event: Finalizer<ConfigMap>| async move {
        assert!(matches!(event, Finalizer::Cleanup(_)), "the first pass only adds the finalizer");
        Ok::<_, Never>(kube::runtime::controller::Action::await_change())
    };
    finalizer(&api, "example.com/hold", Arc::new(created), reconcile).await.unwrap();
    let held = api.get("m").await.unwrap();
    assert_eq!(held.finalizers(), ["example.com/hold"]);
    let marked = api.delete("m", &DeleteParams::default()).await.unwrap().left().unwrap();
    finalizer(&api, "example.com/hold", Arc::new(marked), reconcile).await.unwrap();
    assert_eq!(refused(api.get("m").await).0, 404);
}

#[tokio::test(start_paused = true)]
async fn events_of_the_recorder_show_in_both_apis() {
    let cluster = Cluster::new(1);
    let client = connect(&cluster);
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let about = maps.create(&PostParams::default(), &config_map("m")).await.unwrap();
    let recorder = Recorder::new(client.clone(), Reporter::from("steadfast"));
    let event = Event {
        type_: EventType::Warning,
        reason: "Waiting".into(),
        note: Some("for the others".into()),
        action: "Wait".into(),
        secondary: None,
    };
    for _ in 0..2 {
        recorder.publish(&event, &about.object_ref(&())).await.unwrap();
    }
    let old: Api<CoreEvent> = Api::default_namespaced(client);
    let params = ListParams::default().fields("involvedObject.name=m,type=Warning");
    let found = old.list(&params).await.unwrap().items;
    assert_eq!(found.len(), 1, "a repeated event is a series");
    assert_eq!(found[0].message.as_deref(), Some("for the others"));
    assert_eq!(found[0].reporting_component.as_deref(), Some("steadfast"));
    assert_eq!(found[0].series.as_ref().unwrap().count, Some(2));
}

#[tokio::test(start_paused = true)]
async fn leases_need_their_version() {
    let cluster = Cluster::new(1);
    let api: Api<Lease> = Api::default_namespaced(connect(&cluster));
    let lease: Lease =
        object(json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "a" } }));
    let held = api.create(&PostParams::default(), &lease).await.unwrap();
    assert_eq!(refused(api.replace("l", &PostParams::default(), &lease).await).0, 422);
    let mut next = held.clone();
    next.spec.as_mut().unwrap().holder_identity = Some("b".into());
    api.replace("l", &PostParams::default(), &next).await.unwrap();
    let mut late = held;
    late.spec.as_mut().unwrap().holder_identity = Some("c".into());
    assert_eq!(refused(api.replace("l", &PostParams::default(), &late).await).0, 409);
    assert_eq!(api.get("l").await.unwrap().spec.unwrap().holder_identity.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_ends_gracefully_and_a_budget_refuses_its_eviction() {
    let cluster = Cluster::new(1);
    let client = connect(&cluster);
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod: Pod = object(json!({
        "metadata": { "name": "p", "labels": { "app": "p" } },
        "spec": { "nodeName": "n", "containers": [{ "name": "c", "image": "i" }] },
    }));
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let running = json!({ "status": { "phase": "Running" } });
    pods.patch_status("p", &PatchParams::default(), &Patch::Merge(running)).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(client);
    let budget: PodDisruptionBudget = object(json!({
        "metadata": { "name": "b" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "p" } } },
    }));
    budgets.create(&PostParams::default(), &budget).await.unwrap();
    let allow = |count: i64| {
        json!({ "status": {
            "observedGeneration": 1, "disruptionsAllowed": count, "currentHealthy": 1,
            "desiredHealthy": 1, "expectedPods": 1,
        } })
    };
    let none = PatchParams::default();
    budgets.patch_status("b", &none, &Patch::Merge(allow(0))).await.unwrap();
    let before = cluster.with(|core| core.faults.log().len());
    let params = EvictParams::default();
    let answer = pods.evict("p", &params);
    let answer = tokio::time::timeout(std::time::Duration::from_secs(60), answer).await;
    assert!(answer.is_err() || answer.unwrap().is_err());
    let codes: Vec<u16> =
        cluster.with(|core| core.faults.log()[before..].iter().map(|entry| entry.code).collect());
    assert_eq!(codes[0], 429);
    budgets.patch_status("b", &none, &Patch::Merge(allow(1))).await.unwrap();
    pods.evict("p", &params).await.unwrap();
    let ending = pods.get("p").await.unwrap();
    assert_eq!(ending.meta().deletion_grace_period_seconds, Some(30));
    assert_eq!(budgets.get("b").await.unwrap().status.unwrap().disruptions_allowed, Some(0));
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete("p", &now).await.unwrap();
    assert_eq!(refused(pods.get("p").await).0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_ends_takes_nothing_new() {
    let cluster = Cluster::new(1);
    let client = connect(&cluster);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace: Namespace = object(json!({ "metadata": { "name": "lab" } }));
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let (code, message) = refused(namespaces.delete("default", &DeleteParams::default()).await);
    assert_eq!(code, 403);
    assert!(message.contains("this namespace may not be deleted"), "{message}");
    namespaces.delete("lab", &DeleteParams::default()).await.unwrap();
    let lab = namespaces.get("lab").await.unwrap();
    assert_eq!(lab.status.unwrap().phase.as_deref(), Some("Terminating"));
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "lab");
    let (code, message) = refused(maps.create(&PostParams::default(), &config_map("m")).await);
    assert_eq!(code, 403);
    assert!(message.contains("because it is being terminated"), "{message}");
    let nowhere: Api<ConfigMap> = Api::namespaced(client, "nowhere");
    let (code, message) = refused(nowhere.create(&PostParams::default(), &config_map("m")).await);
    assert_eq!((code, message.as_str()), (404, "namespaces \"nowhere\" not found"));
}

#[tokio::test(start_paused = true)]
async fn metadata_watches_carry_no_content() {
    let cluster = Cluster::new(1);
    let api: Api<Secret> = Api::default_namespaced(connect(&cluster));
    let secret: Secret = object(json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } }));
    api.create(&PostParams::default(), &secret).await.unwrap();
    let metadata: Api<PartialObjectMeta<Secret>> = Api::default_namespaced(connect(&cluster));
    let mut events = Box::pin(watcher(metadata, watcher::Config::default()));
    let mut listed = Vec::new();
    loop {
        match events.try_next().await.unwrap().unwrap() {
            watcher::Event::Init => {}
            watcher::Event::InitApply(found) => listed.push(found.name_any()),
            watcher::Event::InitDone => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(listed, ["s"]);
    let log = cluster.with(|core| core.faults.log().last().unwrap().path.clone());
    assert!(log.contains("/secrets"), "{log}");
    api.delete("s", &DeleteParams::default()).await.unwrap();
    match events.next().await.unwrap().unwrap() {
        watcher::Event::Delete(gone) => assert_eq!(gone.name_any(), "s"),
        other => panic!("{other:?}"),
    }
}

fn definition(plural: &str, kind: &str) -> CustomResourceDefinition {
    object(json!({
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": plural, "kind": kind },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                  "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } },
                { "name": "v1alpha1", "served": true, "storage": false,
                  "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } },
            ],
        },
    }))
}

fn custom(cluster: &Cluster, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "example.com".into(),
        version: version.into(),
        api_version: format!("example.com/{version}"),
        kind: "Widget".into(),
        plural: "widgets".into(),
    };
    Api::default_namespaced_with(connect(cluster), &resource)
}

#[tokio::test(start_paused = true)]
async fn a_definition_serves_its_versions_and_takes_its_objects_along() {
    let cluster = Cluster::new(1);
    let definitions: Api<CustomResourceDefinition> = Api::all(connect(&cluster));
    definitions.create(&PostParams::default(), &definition("widgets", "Widget")).await.unwrap();
    let rival = definitions.create(&PostParams::default(), &definition("gadgets", "Widget")).await;
    rival.unwrap();
    let widgets = custom(&cluster, "v1");
    let widget: DynamicObject = object(json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "name": "w", "finalizers": ["example.com/hold"] }, "spec": { "size": 1 },
    }));
    widgets.create(&PostParams::default(), &widget).await.unwrap();
    let old = custom(&cluster, "v1alpha1").get("w").await.unwrap();
    assert_eq!(old.types.unwrap().api_version, "example.com/v1alpha1");
    let conditions = |name: &'static str| {
        let definitions = definitions.clone();
        async move {
            let status = definitions.get(name).await.unwrap().status.unwrap();
            let all = status.conditions.unwrap_or_default().into_iter();
            all.map(|condition| format!("{}={}", condition.type_, condition.status))
                .collect::<Vec<_>>()
        }
    };
    let refused_names = ["NamesAccepted=False", "Established=False"];
    assert_eq!(conditions("gadgets.example.com").await, refused_names);

    definitions.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
    assert!(widgets.get("w").await.unwrap().metadata.deletion_timestamp.is_some());
    let (code, message) = refused(
        widgets
            .create(
                &PostParams::default(),
                &object(json!({
                    "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "x" },
                })),
            )
            .await,
    );
    assert_eq!(code, 405);
    assert!(message.contains("is terminating"), "{message}");
    let free = json!({ "metadata": { "finalizers": null } });
    widgets.patch("w", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    assert_eq!(refused(definitions.get("widgets.example.com").await).0, 404);
    let served = ["NamesAccepted=True", "Established=True"];
    assert_eq!(conditions("gadgets.example.com").await, served, "the name is free now");
}
