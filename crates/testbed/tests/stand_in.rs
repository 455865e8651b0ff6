//! The stand-in lets the real built-in controllers finish their work, and fails pods as a test asks.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{DaemonSet, StatefulSet};
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;
use testbed::ControlPlane;
use testbed::stand_in::{NODE, Outcome, PodStandIn, StandInOptions, loopback_address};

/// Far above what is needed, for a machine that others use too.
const PATIENCE: Duration = Duration::from_secs(60);

struct Stage {
    plane: &'static ControlPlane,
    client: Client,
    namespace: String,
    stand_in: PodStandIn,
}

/// A namespace with a stand-in, or `None` where the programs are missing.
async fn stage(prefix: &str) -> Result<Option<Stage>> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(None);
    }
    let plane = ControlPlane::shared().await?;
    let client = plane.client().await?;
    let namespace = plane.create_namespace(prefix).await?;
    let stand_in =
        PodStandIn::start(client.clone(), StandInOptions::in_namespace(&namespace)).await?;
    Ok(Some(Stage { plane, client, namespace, stand_in }))
}

impl Stage {
    fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn apply_set(&self, replicas: i32, image: &str) -> Result<StatefulSet> {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "zoo"},
            "spec": {
                "replicas": replicas, "serviceName": "zoo", "selector": {"matchLabels": {"app": "zoo"}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
                "template": {
                    "metadata": {"labels": {"app": "zoo"}},
                    "spec": {"containers": [{
                        "name": "main", "image": image, "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }]},
                },
                "volumeClaimTemplates": [{
                    "metadata": {"name": "data"},
                    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
                }],
            },
        });
        Ok(self
            .api::<StatefulSet>()
            .patch("zoo", &PatchParams::apply("test"), &Patch::Apply(set))
            .await?)
    }
}

/// Waits until the named object is as wanted (`None` once it has gone), and fails with its last state.
async fn until<K>(api: Api<K>, name: &str, wanted: impl Fn(Option<&K>) -> bool) -> Result<()>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let only = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = watcher(api, only).default_backoff().boxed();
    let mut last: Option<K> = None;
    let watch = async {
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => {
                    last = Some(object)
                }
                Ok(watcher::Event::Delete(_) | watcher::Event::Init) => last = None,
                Ok(watcher::Event::InitDone) | Err(_) => {}
            }
            if wanted(last.as_ref()) {
                return;
            }
        }
    };
    let outcome = tokio::time::timeout(PATIENCE, watch).await;
    outcome.with_context(|| format!("{name} did not become as wanted; it is {last:#?}"))
}

fn waiting_reason(pod: &Pod) -> Option<&str> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    containers.first()?.state.as_ref()?.waiting.as_ref()?.reason.as_deref()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn ready_replicas(set: Option<&StatefulSet>) -> i32 {
    set.and_then(|set| set.status.as_ref()?.ready_replicas).unwrap_or_default()
}

#[tokio::test]
async fn a_stateful_set_becomes_ready_rolls_out_shrinks_and_goes() -> Result<()> {
    let Some(stage) = stage("set").await? else { return Ok(()) };
    let sets = stage.api::<StatefulSet>();
    stage.apply_set(3, "zoo:1").await?;
    until(sets.clone(), "zoo", |set| ready_replicas(set) == 3).await?;
    let claims = stage.api::<PersistentVolumeClaim>().list(&ListParams::default()).await?;
    ensure!(claims.iter().count() == 3, "one claim for each pod");

    // The rollout replaces each pod, which needs graceful deletions to end.
    let second = stage.apply_set(3, "zoo:2").await?;
    until(sets.clone(), "zoo", |set| {
        let status = set.and_then(|set| set.status.as_ref());
        status.is_some_and(|status| {
            status.observed_generation == second.metadata.generation
                && status.updated_replicas == Some(3)
                && status.ready_replicas == Some(3)
                && status.current_revision == status.update_revision
        })
    })
    .await?;

    stage.apply_set(1, "zoo:2").await?;
    until(stage.api::<Pod>(), "zoo-1", |pod| pod.is_none()).await?;
    let volume = stage.api::<PersistentVolumeClaim>().get("data-zoo-0").await?;
    let volume =
        volume.spec.and_then(|spec| spec.volume_name).context("a bound claim names its volume")?;
    sets.delete("zoo", &DeleteParams::foreground()).await?;
    until(sets, "zoo", |set| set.is_none()).await?;
    until(stage.api::<PersistentVolumeClaim>(), "data-zoo-0", |claim| claim.is_none()).await?;
    until(Api::<PersistentVolume>::all(stage.client.clone()), &volume, |volume| volume.is_none())
        .await
}

#[tokio::test]
async fn a_settled_cluster_costs_no_writes() -> Result<()> {
    let Some(stage) = stage("quiet").await? else { return Ok(()) };
    stage.apply_set(1, "zoo:1").await?;
    until(stage.api::<StatefulSet>(), "zoo", |set| ready_replicas(set) == 1).await?;
    let pod = || async { stage.api::<Pod>().get("zoo-0").await };
    let before = pod().await?;
    // Each wish makes the stand-in look at everything again; the last one has a visible end.
    for hold in [true, false] {
        stage.stand_in.hold_termination(&stage.namespace, "nobody", hold);
    }
    stage.stand_in.set_outcome(&stage.namespace, "zoo-0", Outcome::NotReady);
    until(stage.api::<Pod>(), "zoo-0", |pod| pod.is_some_and(|pod| !is_ready(pod))).await?;
    ensure!(pod().await?.uid() == before.uid(), "the pod was replaced");

    let log = stage.plane.audit_log().await?;
    let status_writes = log.iter().filter(|entry| {
        (entry.namespace == stage.namespace)
            && entry.resource == "pods"
            && entry.subresource == "status"
            && entry.is_write()
    });
    // Waiting for its claim, ready, not ready: nothing is written twice.
    let codes: Vec<u16> =
        status_writes.map(|entry| entry.code).filter(|code| *code == 200).collect();
    ensure!((2..=3).contains(&codes.len()), "{} writes of one pod's status", codes.len());
    Ok(())
}

#[tokio::test]
async fn pods_fail_as_asked_and_recover() -> Result<()> {
    let Some(stage) = stage("fail").await? else { return Ok(()) };
    stage.stand_in.set_rule(|pod| {
        let image = pod.spec.as_ref()?.containers.first()?.image.as_deref()?;
        (image == "zoo:bad")
            .then(|| Outcome::ImagePullBackOff { message: "no such image".to_owned() })
    });
    let pods = stage.api::<Pod>();
    stage.apply_set(1, "zoo:bad").await?;
    until(pods.clone(), "zoo-0", |pod| pod.and_then(waiting_reason) == Some("ImagePullBackOff"))
        .await?;

    let crash = Outcome::CrashLoopBackOff { exit_code: 3, message: "disk full".to_owned() };
    stage.stand_in.set_outcome(&stage.namespace, "zoo-0", crash);
    until(pods.clone(), "zoo-0", |pod| pod.and_then(waiting_reason) == Some("CrashLoopBackOff"))
        .await?;
    let status = pods.get("zoo-0").await?.status.and_then(|status| status.container_statuses);
    let container = status.and_then(|list| list.into_iter().next()).context("a container")?;
    let last = container.last_state.and_then(|state| state.terminated).context("a last run")?;
    ensure!((last.exit_code, last.message.as_deref()) == (3, Some("disk full")), "{last:?}");

    stage.stand_in.set_outcome(&stage.namespace, "zoo-0", Outcome::Ready);
    until(pods.clone(), "zoo-0", |pod| pod.is_some_and(is_ready)).await?;

    stage.stand_in.hold_termination(&stage.namespace, "zoo-0", true);
    let before = pods.get("zoo-0").await?;
    pods.delete("zoo-0", &DeleteParams::default()).await?;
    until(pods.clone(), "zoo-0", |pod| {
        pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
    })
    .await?;
    let nowhere = Outcome::Unschedulable { message: "0/1 nodes are available".to_owned() };
    stage.stand_in.set_outcome(&stage.namespace, "zoo-0", nowhere);
    stage.stand_in.hold_termination(&stage.namespace, "zoo-0", false);
    until(pods, "zoo-0", |pod| {
        let Some(pod) = pod.filter(|pod| pod.uid() != before.uid()) else { return false };
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.reason.as_deref() == Some("Unschedulable"))
    })
    .await
}

#[tokio::test]
async fn claims_wait_while_held_and_grow() -> Result<()> {
    let Some(stage) = stage("claim").await? else { return Ok(()) };
    stage.stand_in.hold_claims(true);
    stage.apply_set(1, "zoo:1").await?;
    until(stage.api::<Pod>(), "zoo-0", |pod| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| {
            condition.message.as_deref().is_some_and(|message| message.contains("data-zoo-0"))
        })
    })
    .await?;
    stage.stand_in.hold_claims(false);
    until(stage.api::<StatefulSet>(), "zoo", |set| ready_replicas(set) == 1).await?;

    let claims = stage.api::<PersistentVolumeClaim>();
    let bigger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    claims.patch("data-zoo-0", &PatchParams::default(), &Patch::Merge(bigger)).await?;
    until(claims, "data-zoo-0", |claim| {
        let capacity =
            claim.and_then(|claim| claim.status.as_ref()?.capacity.as_ref()?.get("storage"));
        capacity.is_some_and(|capacity| capacity.0 == "2Gi")
    })
    .await
}

#[tokio::test]
async fn a_daemon_set_covers_a_new_node_and_services_find_pods() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    // Nodes are seen by the whole cluster, so this test has one of its own.
    let plane = ControlPlane::start(testbed::Options::default()).await?;
    let client = plane.client().await?;
    let stand_in = PodStandIn::start(client.clone(), StandInOptions::default()).await?;
    let sets = Api::<DaemonSet>::default_namespaced(client.clone());
    let set: DaemonSet = serde_json::from_value(json!({
        "metadata": {"name": "collector"},
        "spec": {
            "selector": {"matchLabels": {"app": "collector"}},
            "template": {
                "metadata": {"labels": {"app": "collector"}},
                "spec": {"containers": [{"name": "main", "image": "collector:1", "ports": [{"containerPort": 80}]}]},
            },
        },
    }))?;
    sets.create(&PostParams::default(), &set).await?;
    let service = serde_json::from_value(json!({
        "metadata": {"name": "collector"}, "spec": {"selector": {"app": "collector"}, "ports": [{"port": 80}]}}))?;
    Api::<k8s_openapi::api::core::v1::Service>::default_namespaced(client.clone())
        .create(&PostParams::default(), &service)
        .await?;
    let ready = |count: i32| {
        move |set: Option<&DaemonSet>| {
            set.and_then(|set| set.status.as_ref())
                .is_some_and(|status| status.number_ready == count)
        }
    };
    until(sets.clone(), "collector", ready(1)).await?;
    stand_in.add_node("second", &BTreeMap::from([("disk".to_owned(), "pmem".to_owned())])).await?;
    until(sets, "collector", ready(2)).await?;

    let slices = Api::<EndpointSlice>::default_namespaced(client.clone());
    let found =
        slices.list(&ListParams::default().labels("kubernetes.io/service-name=collector")).await?;
    let slice = found.items.first().context("the service has an endpoint slice")?.name_any();
    until(slices, &slice, |slice| {
        slice.is_some_and(|slice| slice.endpoints.iter().flatten().count() == 2)
    })
    .await?;
    let node = Api::<Node>::all(client).get(NODE).await?;
    ensure!(node.spec.and_then(|spec| spec.taints).is_none(), "the node is tainted");
    plane.stop()
}

#[tokio::test]
async fn a_job_completes_and_addresses_are_the_callers_choice() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    let plane = ControlPlane::shared().await?;
    let client = plane.client().await?;
    let namespace = plane.create_namespace("job").await?;
    let options = StandInOptions {
        pod_address: std::sync::Arc::new(|_, number| loopback_address(number)),
        ..StandInOptions::in_namespace(&namespace)
    };
    let _stand_in = PodStandIn::start(client.clone(), options).await?;
    let jobs = Api::<k8s_openapi::api::batch::v1::Job>::namespaced(client.clone(), &namespace);
    let job = serde_json::from_value(
        json!({"metadata": {"name": "once"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "main", "image": "once:1"}]}}}}),
    )?;
    jobs.create(&PostParams::default(), &job).await?;
    until(jobs, "once", |job| job.and_then(|job| job.status.as_ref()?.succeeded) == Some(1))
        .await?;
    let pods = Api::<Pod>::namespaced(client, &namespace).list(&ListParams::default()).await?;
    let address = pods.items.first().and_then(|pod| pod.status.as_ref()?.pod_ip.clone());
    ensure!(address.as_deref() == Some("127.1.0.1"), "{address:?}");
    Ok(())
}
