//! Faults, crashes and the request log, seen through a real `kube::Client`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::{Client, ResourceExt};
use serde_json::json;
use sim::Cluster;
use sim::faults::{Crash, Effect, Match, Often, Rule};

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "a": "b" },
    }))
    .unwrap()
}

fn config_maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::default_namespaced(Client::new(cluster.service(), "default"))
}

fn arm(cluster: &Cluster, when: Match, often: Often, effect: Effect) -> usize {
    cluster.with(|core| core.faults.add(Rule::new(when, often, effect)))
}

fn fired(cluster: &Cluster, rule: usize) -> u64 {
    cluster.with(|core| core.faults.fired(rule))
}

fn exists(cluster: &Cluster, name: &str) -> bool {
    cluster.with(|core| {
        let kind = core.kinds.get("", "configmaps").unwrap();
        core.get(&kind.key("default", name)).is_some()
    })
}

#[tokio::test(start_paused = true)]
async fn ordered_errors_are_answered_and_nothing_is_done() {
    for (code, retry_after) in [(409, None), (429, Some(3)), (500, None), (503, None), (504, None)]
    {
        let cluster = Cluster::new(1);
        let api = config_maps(&cluster);
        let creates = Match::verbs(&["create"]).on("", "configmaps");
        let rule = arm(&cluster, creates, Often::Nth(2), Effect::Respond { code, retry_after });
        api.create(&PostParams::default(), &config_map("one")).await.unwrap();
        let refused = api.create(&PostParams::default(), &config_map("two")).await;
        // kube's client repeats what says "try again"; then the third create succeeds.
        match refused {
            Err(kube::Error::Api(status)) => assert_eq!(status.code, code),
            Ok(_) => assert!([429, 503, 504].contains(&code), "{code} is not repeated"),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(fired(&cluster, rule), 1);
        let answers: Vec<u16> = cluster.with(|core| {
            core.faults
                .log()
                .iter()
                .filter(|entry| entry.verb == "create")
                .map(|e| e.code)
                .collect()
        });
        assert_eq!(answers[..2], [201, code]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_carried_out_and_a_timeout_is_not() {
    let cluster = Cluster::new(1);
    let api = config_maps(&cluster);
    let creates = || Match::verbs(&["create"]);
    let lost = arm(&cluster, creates().on("", "configmaps"), Often::Nth(1), Effect::LostReply);
    let answer = api.create(&PostParams::default(), &config_map("lost")).await;
    assert!(matches!(answer, Err(kube::Error::Service(_))), "{answer:?}");
    assert!(exists(&cluster, "lost"));
    assert_eq!(fired(&cluster, lost), 1);

    let wait = Effect::Timeout(Duration::from_secs(30));
    arm(&cluster, creates(), Often::Always, wait);
    let before = tokio::time::Instant::now();
    let answer = api.create(&PostParams::default(), &config_map("late")).await;
    assert!(matches!(answer, Err(kube::Error::Service(_))), "{answer:?}");
    assert_eq!(before.elapsed(), Duration::from_secs(30));
    assert!(!exists(&cluster, "late"));
}

#[tokio::test(start_paused = true)]
async fn denials_read_like_admission_and_show_in_access_reviews() {
    let cluster = Cluster::new(1);
    let api = config_maps(&cluster);
    let message = "exceeded quota: small".to_owned();
    let when = Match::verbs(&["create"]).on("", "configmaps");
    let rule = arm(&cluster, when, Often::Always, Effect::Deny { message });
    let refused = api.create(&PostParams::default(), &config_map("one")).await.unwrap_err();
    assert!(refused.to_string().contains("configmaps is forbidden: exceeded quota: small"));
    let client = Client::new(cluster.service(), "default");
    let review = |verb: &str| {
        let body = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "metadata": {}, "spec": { "resourceAttributes": { "verb": verb, "resource": "configmaps" } },
        });
        let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
            .body(body.to_string().into_bytes())
            .unwrap();
        client.request::<serde_json::Value>(request)
    };
    assert_eq!(review("create").await.unwrap()["status"]["allowed"], false);
    assert_eq!(review("get").await.unwrap()["status"]["allowed"], true);
    cluster.with(|core| core.faults.remove(rule));
    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rules_tell_objects_subresources_and_clients_apart() {
    let cluster = Cluster::new(1);
    let error = || Effect::Respond { code: 500, retry_after: None };
    let patches = || Match::verbs(&["patch"]).on("", "configmaps");
    let others = [
        arm(&cluster, patches().subresource("status"), Often::Always, error()),
        arm(&cluster, patches().within("kube-system"), Often::Always, error()),
        arm(&cluster, patches().named("two"), Often::Always, error()),
        arm(&cluster, patches().by("operator"), Often::Always, error()),
        arm(&cluster, Match::writes().on("apps", "configmaps"), Often::Always, error()),
    ];
    let mine = arm(&cluster, patches().subresource("-").named("one"), Often::Every(2), error());
    let api = config_maps(&cluster);
    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    let mut failures = Vec::new();
    for round in 0..4 {
        let change = json!({ "data": { "a": round.to_string() } });
        let patched = api.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await;
        failures.push(patched.is_err());
    }
    assert_eq!(failures, [false, true, false, true]);
    assert_eq!(fired(&cluster, mine), 2);
    assert!(others.iter().all(|rule| fired(&cluster, *rule) == 0));
    assert_eq!(cluster.with(|core| core.faults.fired_by_effect()["respond-500"]), 2);
}

#[tokio::test(start_paused = true)]
async fn stale_reads_answer_from_the_past() {
    let cluster = Cluster::new(1);
    let api = config_maps(&cluster);
    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    let change = json!({ "data": { "a": "new" } });
    api.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    let rule = arm(&cluster, Match::verbs(&["get", "list"]), Often::First(3), Effect::Stale(1));
    let old = api.get("one").await.unwrap();
    assert_eq!(old.data.unwrap()["a"], "b");
    assert_eq!(
        api.list(&ListParams::default()).await.unwrap().items[0].data.as_ref().unwrap()["a"],
        "b"
    );
    api.delete("one", &DeleteParams::default()).await.unwrap();
    assert_eq!(api.get("one").await.unwrap().data.unwrap()["a"], "new", "the past still has it");
    assert!(api.get_opt("one").await.unwrap().is_none());
    assert_eq!(fired(&cluster, rule), 3);
}

#[tokio::test(start_paused = true)]
async fn watches_are_cut_delayed_doubled_and_expired() {
    let cluster = Cluster::new(1);
    let api = config_maps(&cluster);
    let watches = || Match::verbs(&["watch"]);
    let doubled = arm(&cluster, watches(), Often::Nth(1), Effect::DuplicateEvents);
    let late = Effect::DelayEvents(Duration::from_secs(5));
    let delayed = arm(&cluster, watches(), Often::Nth(1), late);
    let cut = arm(&cluster, watches(), Often::Nth(1), Effect::CutWatch(3));
    let gone = arm(&cluster, watches(), Often::Nth(2), Effect::Gone);
    let version =
        api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();

    let mut events = Box::pin(api.watch(&WatchParams::default(), &version).await.unwrap());
    let before = tokio::time::Instant::now();
    api.create(&PostParams::default(), &config_map("one")).await.unwrap();
    api.create(&PostParams::default(), &config_map("two")).await.unwrap();
    let mut names = Vec::new();
    while let Some(Ok(event)) = events.next().await {
        match event {
            WatchEvent::Added(object) => names.push(object.name_any()),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["one", "one", "two"], "the fourth event is cut off");
    assert_eq!(before.elapsed(), Duration::from_secs(5));

    let mut events = Box::pin(api.watch(&WatchParams::default(), &version).await.unwrap());
    match events.try_next().await.unwrap() {
        Some(WatchEvent::Error(status)) => assert_eq!(status.code, 410),
        other => panic!("{other:?}"),
    }
    for rule in [doubled, delayed, cut, gone] {
        assert!(fired(&cluster, rule) > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_or_after_a_write_ends_that_client_only() {
    for (crash, written) in [(Crash::Before(2), false), (Crash::After(2), true)] {
        let cluster = Cluster::new(1);
        let operator = cluster.client("operator");
        operator.crash_at(Some(crash));
        let api: Api<ConfigMap> =
            Api::default_namespaced(Client::new(operator.service(), "default"));
        let mut events = Box::pin(api.watch(&WatchParams::default(), "0").await.unwrap());
        api.create(&PostParams::default(), &config_map("one")).await.unwrap();
        assert!(matches!(events.try_next().await.unwrap(), Some(WatchEvent::Added(_))));
        let last = api.create(&PostParams::default(), &config_map("two")).await;
        assert!(matches!(last, Err(kube::Error::Service(_))), "{last:?}");
        operator.until_crashed().await;
        assert_eq!(exists(&cluster, "two"), written);
        assert!(api.get("one").await.is_err(), "a crashed client never comes back");
        let rest: Vec<_> = events.collect().await;
        assert!(rest.iter().any(Result::is_err), "its watches break: {rest:?}");

        let api: Api<ConfigMap> =
            Api::default_namespaced(Client::new(cluster.client("operator").service(), "default"));
        assert_eq!(api.get("one").await.unwrap().name_any(), "one");
        assert_eq!(cluster.with(|core| core.faults.fired_by_effect()["crash"]), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_storm_makes_every_fault_happen_to_its_client_only() {
    let cluster = Cluster::new(3);
    let rules = cluster.with(|core| core.faults.storm("operator", 0.05));
    assert_eq!(rules.len(), 15);
    let calm = config_maps(&cluster);
    let stormy: Api<ConfigMap> =
        Api::default_namespaced(Client::new(cluster.client("operator").service(), "default"));
    calm.create(&PostParams::default(), &config_map("one")).await.unwrap();
    for round in 0..2000 {
        let change = json!({ "data": { "a": round.to_string() } });
        // Whatever happens to these, the world goes on.
        let _ = stormy.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await;
        let _ = stormy.get("one").await;
        if let Ok(events) = stormy.watch(&WatchParams::default(), "0").await {
            let seen = events.take(4).collect::<Vec<_>>();
            let _ = tokio::time::timeout(Duration::from_secs(1), seen).await;
        }
        calm.get("one").await.unwrap();
        let fired = cluster.with(|core| core.faults.fired_by_effect());
        if fired.values().all(|count| *count >= 10) {
            return;
        }
    }
    let fired = cluster.with(|core| core.faults.fired_by_effect());
    panic!("not every fault happened ten times: {fired:?}");
}

async fn history(seed: u64) -> String {
    let cluster = Cluster::new(seed);
    let error = Effect::Respond { code: 500, retry_after: None };
    arm(&cluster, Match::writes(), Often::Chance(0.3), error);
    arm(&cluster, Match::writes(), Often::Chance(0.2), Effect::Slow(Duration::from_millis(7)));
    let api = config_maps(&cluster);
    for number in 0..20 {
        // Some of these fail; which ones depends on the seed.
        let _ = api.create(&PostParams::default(), &config_map(&format!("m{number}"))).await;
    }
    let list = api.list(&ListParams::default()).await.unwrap();
    let uids: Vec<String> = list.items.iter().filter_map(ResourceExt::uid).collect();
    format!("{}\n{}", cluster.with(|core| core.faults.trace()), uids.join("\n"))
}

#[tokio::test(start_paused = true)]
async fn a_seed_names_a_history() {
    let one = history(7).await;
    assert_eq!(one, history(7).await);
    assert_ne!(one, history(8).await);
    assert!(one.lines().count() > 21);
}
