//! What has happened before a person types the command.

use std::time::Duration;

use serde_json::{Value, json};

use crate::shell::transcript;
use crate::support::{Bench, NAME, Operator, TEST_DB, kubectl};

const REPLICATED: &str = include_str!("../../../../examples/replicated-db.yaml");
const DEPENDENT: &str = include_str!("../../../../examples/dependent-db.yaml");

pub(crate) fn parsed(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).expect("an example is YAML")
}

fn person(bench: &Bench) -> kube::Client {
    kube::Client::new(bench.world.cluster.client("person").service(), "default")
}

async fn applied(manifest: &Value) -> (Bench, Operator) {
    let bench = Bench::new(1);
    let operator = bench.operator();
    kubectl::apply(&person(&bench), manifest).await.expect("the manifest is accepted");
    (bench, operator)
}

/// A cluster in which the manifest was applied and came to rest.
pub(crate) async fn settled(manifest: &Value) -> (Bench, Operator) {
    let (bench, operator) = applied(manifest).await;
    bench.settle(manifest["metadata"]["name"].as_str().expect("it has a name")).await;
    (bench, operator)
}

pub(crate) async fn a_first_install() -> String {
    let bench = Bench::new(1);
    let manifest = parsed(&TEST_DB.replace(NAME, "shop"));
    transcript(&bench, "steadfast plan -f first.yaml", Some(&manifest)).await
}

pub(crate) async fn an_image_change() -> String {
    let mut manifest = parsed(TEST_DB);
    let (bench, _operator) = settled(&manifest).await;
    manifest["spec"]["image"] = json!("postgres:14.19");
    transcript(&bench, "steadfast plan -f image.yaml", Some(&manifest)).await
}

pub(crate) async fn an_image_change_on_three_replicas() -> String {
    let mut manifest = parsed(REPLICATED);
    let (bench, _operator) = settled(&manifest).await;
    manifest["spec"]["image"] = json!("postgres:17.6");
    transcript(&bench, "steadfast plan -f image.yaml", Some(&manifest)).await
}

pub(crate) async fn fewer_replicas() -> String {
    let mut manifest = parsed(REPLICATED);
    let (bench, _operator) = settled(&manifest).await;
    manifest["spec"]["replicas"] = json!(2);
    transcript(&bench, "steadfast plan -f fewer.yaml", Some(&manifest)).await
}

pub(crate) async fn a_storage_shrink() -> String {
    let mut manifest = parsed(TEST_DB);
    let (bench, _operator) = settled(&manifest).await;
    manifest["spec"]["storage"]["size"] = json!("5Gi");
    transcript(&bench, "steadfast plan -f shrink.yaml", Some(&manifest)).await
}

pub(crate) async fn a_stuck_rollout() -> String {
    let mut manifest = parsed(&TEST_DB.replace(NAME, "orders"));
    manifest["spec"]["podTemplate"] = json!({"nodeSelector": {"disk": "nvme"}});
    let (bench, _operator) = applied(&manifest).await;
    bench.world.run_for(Duration::from_secs(14)).await;
    transcript(&bench, "steadfast explain database/orders", None).await
}

pub(crate) async fn a_missing_dependency() -> String {
    let (bench, _operator) = applied(&parsed(DEPENDENT)).await;
    bench.world.run_for(Duration::from_secs(14)).await;
    transcript(&bench, "steadfast explain database/dependent-db", None).await
}

pub(crate) async fn another_manager() -> String {
    let mut manifest = parsed(TEST_DB);
    let (bench, _operator) = settled(&manifest).await;
    let tuned = json!({
        "apiVersion": manifest["apiVersion"], "kind": manifest["kind"],
        "metadata": {"name": NAME}, "spec": {"parameters": {"work_mem": "64MB"}},
    });
    kubectl::apply_as(&person(&bench), &tuned, "tuner").await.expect("nobody else holds the field");
    bench.settle(NAME).await;
    manifest["spec"]["parameters"]["work_mem"] = json!("16MB");
    transcript(&bench, "steadfast plan --server-side -f tuned.yaml", Some(&manifest)).await
}
