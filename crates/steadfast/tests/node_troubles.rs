//! What keeps a rollout back on a real node: the cause stands in the resource's own condition, and
//! a corrected manifest heals it (issue 3, "Stuck rollouts"). `node_losses` has the two that need a
//! second node.

#[path = "troubles/images.rs"]
mod images;
mod real;
#[path = "troubles/volumes.rs"]
mod volumes;

use real::scene::{DB, Scene};
use real::trouble::{IN_THE_MANIFEST, Trouble, create, own, play, remove, remove_for_all, with};
use real::{condition, exercise};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn crash_loop() {
    play(Trouble {
        name: "crash loop",
        // The machine keeps no huge pages: the server starts, and ends each time.
        spec: |_| with("parameters", json!({"huge_pages": "on"})),
        reason: "ContainerCrashing",
        words: &["shared memory"],
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_init_container() {
    play(Trouble {
        name: "failing init container",
        // An image without a shell: what comes before the server cannot run.
        spec: |_| with("image", json!(testbed::images::PAUSE.names[0])),
        reason: "ContainerCrashing",
        words: &["container guard"],
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_readiness() {
    play(Trouble {
        name: "failing readiness",
        // Each session waits half a minute before it is let in, and the probe gives up long before.
        spec: |_| with("parameters", json!({"pre_auth_delay": "30"})),
        reason: "ProbeFailing",
        words: &["probe"],
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_parameter() {
    play(Trouble {
        name: "bad parameter",
        spec: |_| with("parameters", json!({"work_mem": "plenty"})),
        reason: "ContainerCrashing",
        words: &["work_mem"],
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unschedulable_for_resources() {
    play(Trouble {
        name: "unschedulable: resources",
        spec: |_| with("resources", json!({"requests": {"cpu": "900"}})),
        reason: "PodUnschedulable",
        words: &["Insufficient cpu"],
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unschedulable_for_a_selector() {
    play(Trouble {
        name: "unschedulable: selector",
        spec: |_| with("podTemplate", json!({"nodeSelector": {"disk": "none-such"}})),
        reason: "PodUnschedulable",
        words: &["node affinity/selector"],
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quota() {
    play(Trouble {
        name: "quota",
        arrange: |scene| {
            let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
                "metadata": {"name": "small"}, "spec": {"hard": {"requests.memory": "64Mi"}}});
            Box::pin(create(scene, quota, true))
        },
        spec: |_| with("resources", json!({"requests": {"memory": "128Mi"}})),
        reason: "QuotaExceeded",
        words: &["exceeded quota: small"],
        corrected: |_| with("resources", json!({"requests": {"memory": "48Mi"}})),
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limit_range() {
    play(Trouble {
        name: "LimitRange",
        arrange: |scene| {
            let range = json!({"apiVersion": "v1", "kind": "LimitRange",
                "metadata": {"name": "modest"},
                "spec": {"limits": [{"type": "Container", "max": {"memory": "256Mi"}}]}});
            Box::pin(create(scene, range, true))
        },
        spec: |_| with("resources", json!({"limits": {"memory": "512Mi"}})),
        reason: "AdmissionRefused",
        words: &["maximum memory usage per Container is 256Mi"],
        corrected: |_| with("resources", json!({"limits": {"memory": "200Mi"}})),
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pod_security() {
    play(Trouble {
        name: "PodSecurity",
        arrange: |scene| {
            let name = &scene.bench.namespace;
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
                "name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
            Box::pin(create(scene, namespace, false))
        },
        spec: |_| {
            let unconfined = json!({"seccompProfile": {"type": "Unconfined"}});
            with("podTemplate", json!({"securityContext": unconfined}))
        },
        reason: "AdmissionRefused",
        words: &["PodSecurity", "seccompProfile"],
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_webhook_down() {
    play(Trouble {
        name: "admission webhook down",
        arrange: |scene| {
            let namespace = scene.bench.namespace.clone();
            let hook = json!({"apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingWebhookConfiguration",
                "metadata": {"name": own(scene, "down")},
                "webhooks": [{"name": "down.example.com", "failurePolicy": "Fail",
                    "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 2,
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                        "resources": ["pods"]}],
                    "clientConfig": {"service": {"name": "nobody", "namespace": namespace}}}]});
            Box::pin(create(scene, hook, false))
        },
        reason: "AdmissionRefused",
        words: &["down.example.com"],
        mend: |scene| {
            Box::pin(async {
                let kind = ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration");
                remove_for_all(scene, kind, &own(scene, "down")).await;
            })
        },
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_memory() {
    play(Trouble {
        name: "OOM kill",
        spec: |_| with("resources", json!({"limits": {"memory": "12Mi"}})),
        reason: "ContainerCrashing",
        words: &["OOMKilled"],
        corrected: |_| with("resources", json!({"limits": {"memory": "256Mi"}})),
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_secret_key() {
    play(Trouble {
        name: "missing Secret key",
        arrange: |scene| {
            Box::pin(async {
                scene.apply(exercise()).await;
                scene.ready("to come up").await;
                let secret = ("", "Secret", "secrets");
                let gone = json!({"data": {"password": null}});
                scene.patch(secret, &format!("{DB}-superuser"), gone).await;
            })
        },
        reason: "PasswordMissing",
        words: &["test-db-superuser", "password"],
        mend: |scene| {
            Box::pin(async {
                let sql = "ALTER ROLE postgres PASSWORD 'put back'";
                scene.exec(0, &["psql", "-U", "postgres", "-c", sql]).await;
                let secret = ("", "Secret", "secrets");
                let back = json!({"stringData": {"password": "put back"}});
                scene.patch(secret, &format!("{DB}-superuser"), back).await;
            })
        },
        ..IN_THE_MANIFEST
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_config_map_is_made_again_before_its_pod_waits_long() {
    let Some(scene) = Scene::with_a_row("missing ConfigMap").await else { return };
    remove(&scene, ("", "ConfigMap", "configmaps"), &format!("{DB}-config")).await;
    scene.replace_pod(0).await;
    scene.ready("with its ConfigMap").await;
    scene.close_with_the_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evicted_pod_comes_back_with_its_row() {
    let Some(scene) = Scene::with_a_row("eviction").await else { return };
    let (before, _) = scene.life(0).await;
    let evicted = scene.pods().evict(&format!("{DB}-0"), &kube::api::EvictParams::default()).await;
    evicted.expect("one server has no budget, so that drains go through");
    scene.until("the eviction to be seen", |d| condition(d, "Ready")["status"] == "False").await;
    scene.ready("after the eviction").await;
    assert_ne!(scene.life(0).await.0, before);
    scene.close_with_the_row().await;
}
