//! Troubles with volumes.

use serde_json::{Value, json};

use super::real::scene::Scene;
use super::real::trouble::{IN_THE_MANIFEST, Trouble, create, own, play, remove_for_all, with};

fn in_class(class: &str) -> Value {
    with("storage", json!({"size": "1Gi", "storageClass": class}))
}

/// A storage class of the scenario's own.
fn class(scene: &Scene, provisioner: &str, mode: &str) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": own(scene, "idle")}, "provisioner": provisioner,
        "volumeBindingMode": mode})
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_pending() {
    play(Trouble {
        name: "volume pending",
        arrange: |scene| {
            Box::pin(create(scene, class(scene, "example.com/idle", "Immediate"), false))
        },
        spec: |scene| in_class(&own(scene, "idle")),
        reason: "VolumePending",
        words: &["example.com/idle"],
        mend: |scene| {
            Box::pin(async {
                // A class is not changed but made again.
                let kind = ("storage.k8s.io", "StorageClass");
                remove_for_all(scene, kind, &own(scene, "idle")).await;
                let class = class(scene, testbed::node::PROVISIONER, "WaitForFirstConsumer");
                create(scene, class, false).await;
            })
        },
        corrected: |scene| in_class(&own(scene, "idle")),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_storage_class() {
    play(Trouble {
        name: "wrong storage class",
        spec: |_| in_class("no-such-class"),
        reason: "StorageClassNotFound",
        words: &["no-such-class"],
        corrected: |_| in_class(testbed::node::STORAGE_CLASS),
        ..IN_THE_MANIFEST
    })
    .await;
}

/// Larger than what a new database takes, and soon full.
const SMALL: &str = "160Mi";

/// Takes all the space, and has the server ask for more until it gives up. Goes on by itself, for its
/// container ends with it.
const FILL: &str = "setsid sh -c '
    cat /dev/zero >/var/lib/postgresql/data/ballast
    while psql -U postgres -c \"SELECT txid_current()\" -c \"SELECT pg_switch_wal()\"; do :; done' </dev/null >/dev/null 2>&1 &";

fn of_size(size: &str) -> Value {
    with("storage", json!({"size": size}))
}

#[tokio::test(flavor = "multi_thread")]
async fn volume_full() {
    if !testbed::node::enforces_sizes() {
        let reason = "no loop devices, which give volumes their sizes";
        testbed::stand_aside(reason).expect("volumes of a size are required");
        return;
    }
    play(Trouble {
        name: "volume full",
        arrange: |scene| {
            Box::pin(async {
                scene.apply(of_size(SMALL)).await;
                scene.ready("to come up").await;
                scene.exec(0, &["sh", "-c", FILL]).await;
            })
        },
        spec: |_| of_size(SMALL),
        reason: "ContainerCrashing",
        words: &["No space left on device"],
        corrected: |_| of_size("320Mi"),
        ..IN_THE_MANIFEST
    })
    .await;
}
