//! Troubles of a rollout, and how each is played: the cause stands in the resource's own condition,
//! and a corrected manifest heals it.

use futures::future::BoxFuture;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::scene::Scene;
use super::{apply, condition, exercise};

/// A trouble, and what ends it.
pub(crate) struct Trouble {
    pub(crate) name: &'static str,
    /// What makes it, before the manifest is applied.
    pub(crate) arrange: fn(&Scene) -> BoxFuture<'_, ()>,
    /// The manifest's spec that meets it.
    pub(crate) spec: fn(&Scene) -> Value,
    /// Reason of the condition `Ready`.
    pub(crate) reason: &'static str,
    /// Words that its message must hold.
    pub(crate) words: &'static [&'static str],
    /// What else than the manifest is put right.
    pub(crate) mend: fn(&Scene) -> BoxFuture<'_, ()>,
    /// The corrected manifest's spec.
    pub(crate) corrected: fn(&Scene) -> Value,
}

/// A trouble that lies in the manifest alone.
pub(crate) const IN_THE_MANIFEST: Trouble = Trouble {
    name: "",
    arrange: |_| Box::pin(async {}),
    spec: |_| exercise(),
    reason: "",
    words: &[],
    mend: |_| Box::pin(async {}),
    corrected: |_| exercise(),
};

/// The exercise's spec with one field set.
pub(crate) fn with(field: &str, value: Value) -> Value {
    let mut spec = exercise();
    spec[field] = value;
    spec
}

/// Plays a trouble on the shared cluster.
pub(crate) async fn play(trouble: Trouble) {
    if let Some(scene) = Scene::open(trouble.name).await {
        play_on(scene, trouble).await;
    }
}

/// Plays a trouble on a scene that is there.
pub(crate) async fn play_on(scene: Scene, trouble: Trouble) {
    (trouble.arrange)(&scene).await;
    scene.apply((trouble.spec)(&scene)).await;
    let database = scene
        .until(trouble.name, |database| {
            let ready = condition(database, "Ready");
            let message = ready["message"].as_str().unwrap_or_default();
            ready["reason"] == trouble.reason && trouble.words.iter().all(|w| message.contains(w))
        })
        .await;
    let ready = condition(&database, "Ready");
    assert_eq!(ready["status"], "False");
    eprintln!("{}: {}: {}", trouble.name, trouble.reason, ready["message"]);
    (trouble.mend)(&scene).await;
    scene.apply((trouble.corrected)(&scene)).await;
    scene.ready("to be healed").await;
    scene.close().await;
}

/// Creates an object in the scenario's namespace; cluster-wide ones carry no namespace.
pub(crate) async fn create(scene: &Scene, mut object: Value, namespaced: bool) {
    if namespaced {
        object["metadata"]["namespace"] = json!(scene.bench.namespace);
    }
    apply(&scene.bench.client, &object).await;
}

/// Removes an object that belongs to no namespace.
pub(crate) async fn remove_for_all(scene: &Scene, (group, kind): (&str, &str), name: &str) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let api: Api<DynamicObject> = Api::all_with(scene.bench.client.clone(), &resource);
    api.delete(name, &DeleteParams::default()).await.expect("deletable");
}

/// Removes an object of the scenario's namespace.
pub(crate) async fn remove(scene: &Scene, (group, kind, plural): (&str, &str, &str), name: &str) {
    let api = scene.bench.api(group, kind, plural);
    api.delete(name, &DeleteParams::default()).await.expect("deletable");
}

/// A name for a cluster-wide object that no other scenario has.
pub(crate) fn own(scene: &Scene, what: &str) -> String {
    format!("{what}-{}", scene.bench.namespace)
}
