//! A control plane starts, is the wanted one, serves, logs, restarts, and leaves nothing behind.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ResourceQuota};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::runtime::wait::{await_condition, conditions::is_deleted};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use testbed::binaries::KUBERNETES_VERSION;
use testbed::{ControlPlane, Identity, Options};

/// Half of what the garbage collector takes by itself to learn of a new kind.
const PATIENCE: Duration = Duration::from_secs(15);

fn settings(namespace: &str, data: &[(&str, &str)]) -> ConfigMap {
    let mut settings = ConfigMap::default();
    settings.metadata.name = Some("settings".to_owned());
    settings.metadata.namespace = Some(namespace.to_owned());
    settings.data =
        Some(data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
    settings
}

/// Whether a process with this number runs; a zombie does not.
fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

#[tokio::test]
async fn the_server_is_the_pinned_version() -> Result<()> {
    let Some(binaries) = testbed::require_or_skip()? else { return Ok(()) };
    let plane = ControlPlane::shared().await?;
    let served = plane.client().await?.apiserver_version().await?.git_version;
    ensure!(served == binaries.kubernetes_version()?, "the running server says {served}");
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        ensure!(served == KUBERNETES_VERSION, "the cache holds {served}");
    }
    Ok(())
}

#[tokio::test]
async fn server_side_apply_tells_owners_apart() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    let plane = ControlPlane::shared().await?;
    let namespace = plane.create_namespace("apply").await?;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await?, &namespace);
    let apply = |manager: &str, data: &[(&str, &str)]| {
        let (maps, wanted) = (maps.clone(), settings(&namespace, data));
        let parameters = PatchParams::apply(manager);
        async move { maps.patch("settings", &parameters, &Patch::Apply(&wanted)).await }
    };
    apply("first", &[("color", "red")]).await?;
    let conflict =
        apply("second", &[("color", "blue")]).await.expect_err("the field has another owner");
    ensure!(matches!(&conflict, kube::Error::Api(status) if status.is_conflict()), "{conflict}");
    apply("second", &[("size", "big")]).await?;
    // Who stops declaring a field gives it up, and with the last owner the field goes.
    let left = apply("first", &[]).await?;
    let expected = BTreeMap::from([("size".to_owned(), "big".to_owned())]);
    ensure!(left.data == Some(expected), "{:?}", left.data);
    Ok(())
}

#[tokio::test]
async fn the_audit_log_counts_writes_by_user_and_agent() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    let plane = ControlPlane::shared().await?;
    let namespace = plane.create_namespace("audit").await?;
    let mut config = plane.config_for(&Identity::user("auditor", &["system:masters"])).await?;
    config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static("audit-test/1")));
    let maps = Api::<ConfigMap>::namespaced(Client::try_from(config)?, &namespace);
    maps.create(&PostParams::default(), &settings(&namespace, &[("color", "red")])).await?;
    maps.get("settings").await?;
    let again = maps.create(&PostParams::default(), &settings(&namespace, &[])).await;
    ensure!(again.is_err(), "a second create of the same name must fail");

    let log = plane.audit_log().await?;
    let ours: Vec<_> = log
        .iter()
        .filter(|entry| {
            entry.namespace == namespace
                && entry.user_agent == "audit-test/1"
                && entry.user == "auditor"
        })
        .map(|entry| (entry.verb.as_str(), entry.resource.as_str(), entry.code, entry.is_write()))
        .collect();
    let expected = [
        ("create", "configmaps", 201, true),
        ("get", "configmaps", 200, false),
        ("create", "configmaps", 409, true),
    ];
    ensure!(ours == expected, "{ours:?}");
    Ok(())
}

#[tokio::test]
async fn clients_are_who_they_say() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    let plane = ControlPlane::shared().await?;
    let namespace = plane.create_namespace("who").await?;
    let account = format!("system:serviceaccount:{namespace}:default");
    let cases: [(Identity, &str, &[&str]); 3] = [
        (Identity::user("ann", &["one"]), "ann", &["one"]),
        (Identity::user("bob", &["one", "two"]), "bob", &["one", "two"]),
        (Identity::service_account(&namespace, "default"), &account, &["system:serviceaccounts"]),
    ];
    for (identity, user, groups) in cases {
        let client = plane.client_as(&identity).await?;
        let reviews = Api::<SelfSubjectReview>::all(client.clone());
        let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
        let info =
            review.status.and_then(|status| status.user_info).context("a review has a user")?;
        ensure!(info.username.as_deref() == Some(user), "{info:?}");
        let seen = info.groups.unwrap_or_default();
        ensure!(groups.iter().all(|group| seen.iter().any(|name| name == group)), "{seen:?}");
        let refused = Api::<ConfigMap>::namespaced(client, &namespace).get("settings").await;
        ensure!(
            matches!(&refused, Err(kube::Error::Api(status)) if status.is_forbidden()),
            "{user} has no role, and yet: {refused:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn the_api_server_restarts_with_its_contents() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    let plane = ControlPlane::start(Options { controllers: false, ..Options::default() }).await?;
    let maps = Api::<ConfigMap>::namespaced(plane.client().await?, "default");
    let before =
        maps.create(&PostParams::default(), &settings("default", &[("color", "red")])).await?;
    plane.stop_api_server().await?;
    ensure!(maps.get("settings").await.is_err(), "a stopped server answered");
    plane.start_api_server().await?;
    let after = maps.get("settings").await?;
    ensure!((after.uid(), after.data) == (before.uid(), before.data), "the contents changed");
    plane.stop()
}

#[tokio::test]
async fn nothing_is_left_after_stop_or_drop() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    for by_stop in [true, false] {
        let plane = ControlPlane::start(Options::default()).await?;
        let processes = plane.processes().await;
        let folder =
            plane.kubeconfig_path().parent().context("the kubeconfig lies in a folder")?.to_owned();
        ensure!(
            processes.len() == 3 && processes.iter().all(|(_, pid)| runs(*pid)),
            "{processes:?}"
        );
        if by_stop {
            plane.stop()?
        } else {
            drop(plane)
        }
        ensure!(processes.iter().all(|(_, pid)| !runs(*pid)), "some still run: {processes:?}");
        ensure!(!folder.exists(), "{} is still there", folder.display());
    }
    Ok(())
}

#[tokio::test]
async fn quotas_and_pod_security_are_enforced() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    let plane = ControlPlane::shared().await?;
    let client = plane.client().await?;
    let namespace = plane.create_namespace("admission").await?;
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    let pod = |privileged: bool| -> Result<Pod> {
        Ok(serde_json::from_value(json!({"metadata": {"name": "one"}, "spec": {"containers": [
            {"name": "main", "image": "one:1", "securityContext": {"privileged": privileged}}]}}))?)
    };
    let refused = |outcome: kube::Result<Pod>, word: &str| match outcome {
        Err(kube::Error::Api(status)) if status.is_forbidden() && status.message.contains(word) => {
            Ok(())
        }
        other => anyhow::bail!("not refused with {word:?}: {other:?}"),
    };
    let strict =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    Api::<Namespace>::all(client.clone())
        .patch(&namespace, &PatchParams::default(), &Patch::Merge(strict))
        .await?;
    refused(pods.create(&PostParams::default(), &pod(true)?).await, "PodSecurity")?;

    let quota = serde_json::from_value(
        json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}),
    )?;
    let quotas = Api::<ResourceQuota>::namespaced(client, &namespace);
    quotas.create(&PostParams::default(), &quota).await?;
    // The limit holds from when the controllers have counted what is there.
    let counted = |quota: Option<&ResourceQuota>| {
        quota.and_then(|quota| quota.status.as_ref()).is_some_and(|status| status.hard.is_some())
    };
    await_condition(quotas, "none", counted).await?;
    refused(pods.create(&PostParams::default(), &pod(false)?).await, "exceeded quota")
}

#[tokio::test]
async fn children_of_a_new_kind_go_with_their_owner() -> Result<()> {
    if testbed::require_or_skip()?.is_none() {
        return Ok(());
    }
    let plane = ControlPlane::start(Options::default()).await?;
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    }))?;
    plane.install_crds(std::slice::from_ref(&definition)).await?;
    let after_first = plane.processes().await;
    plane.install_crds(&[definition]).await?;
    ensure!(plane.processes().await == after_first, "a known definition replaced the controllers");

    let client = plane.client().await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let widgets = Api::<DynamicObject>::default_namespaced_with(client.clone(), &kind);
    let widget =
        widgets.create(&PostParams::default(), &DynamicObject::new("owner", &kind)).await?;
    let mut child = settings("default", &[]);
    child.metadata.owner_references = widget.controller_owner_ref(&kind).map(|owner| vec![owner]);
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let child = maps
        .create(&PostParams::default(), &child)
        .await?
        .uid()
        .context("a created object has a uid")?;
    widgets.delete("owner", &DeleteParams::default()).await?;
    tokio::time::timeout(PATIENCE, await_condition(maps, "settings", is_deleted(&child))).await??;
    plane.stop()
}
