//! A Database on a node with kubelet and containers: what is planned and what is not, with a row
//! that was written before and, where something is planned, a client that writes all along.

mod real;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use real::scene::{DB, Scene};
use real::sql::{Who, ask, connect, login, login_as, secret};
use real::writer::Writer;
use real::{condition, exercise, is_ready};
use serde_json::{Value, json};
use tokio_postgres::Client;

/// A session through a port-forward to the pod, as from a person's machine.
async fn through_port_forward(pods: &Api<Pod>, password: &str) -> Result<Client, String> {
    let mut forward = pods.portforward(&format!("{DB}-0"), &[5432]).await.expect("a forward");
    let stream = forward.take_stream(5432).expect("a stream");
    let client = connect(stream, ("admin", password, "mydb")).await?;
    // The forward carries the session on by itself, and ends with it.
    tokio::spawn(forward.join());
    Ok(client)
}

#[tokio::test(flavor = "multi_thread")]
async fn it_comes_up_and_asks_for_the_password_through_a_port_forward_too() {
    let Some(scene) = Scene::open("bring-up").await else { return };
    scene.apply(exercise()).await;
    scene.ready("to come up").await;
    let password = secret(&scene.bench, &format!("{DB}-credentials"), "password").await;
    let client = through_port_forward(&scene.pods(), &password.expect("a password")).await;
    let method = ask(&client.expect("a login"), "SELECT current_user").await;
    assert_eq!(method.as_deref(), Ok("admin"));
    let refused = through_port_forward(&scene.pods(), "wrong").await.err();
    assert!(refused.as_deref().is_some_and(|why| why.starts_with("28P01")), "{refused:?}");
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_survives_the_deletion_of_its_pod() {
    let Some(scene) = Scene::with_a_row("pod deletion").await else { return };
    scene.replace_pod(0).await;
    scene.ready("after the deletion").await;
    scene.close_with_the_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_operator_repairs_what_it_missed_and_restarts_no_pod() {
    let Some(mut scene) = Scene::with_a_row("operator restart").await else { return };
    let before = scene.life(0).await;
    scene.stop_operator().await;
    let services = scene.bench.api("", "Service", "services");
    services.delete(DB, &DeleteParams::default()).await.expect("deletable");
    scene.start_operator().await;
    let back = async || services.get_opt(DB).await.expect("readable").is_some();
    scene.bench.eventually("the Service does not come back", back).await;
    scene.ready("after the restart").await;
    assert_eq!(scene.life(0).await, before, "the pod was touched");
    scene.close_with_the_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_survives_a_change_of_the_image_and_no_acknowledged_write_is_lost() {
    let Some(scene) = Scene::with_a_row("image change").await else { return };
    let writer = Writer::start(&scene.bench, DB).await;
    let mut spec = exercise();
    spec["image"] = json!("postgres:15.1");
    scene.apply(spec).await;
    scene.ready("with the new image").await;
    let pod = scene.pod(0).await.expect("a pod");
    let image = pod.spec.and_then(|spec| spec.containers[0].image.clone());
    assert_eq!(image.as_deref(), Some("postgres:15.1"));
    let tally = writer.finish(&scene.bench, DB).await;
    tally.tell("image change");
    scene.close_with_the_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_survives_retained_deletion_and_the_same_manifest_again() {
    let Some(scene) = Scene::with_a_row("delete with Retain, apply again").await else { return };
    scene.bench.databases().delete(DB, &DeleteParams::default()).await.expect("deletable");
    scene.until("to be gone", Value::is_null).await;
    let claim = scene.claims().get_opt(&format!("data-{DB}-0")).await.expect("readable");
    assert!(claim.is_some_and(|c| c.metadata.deletion_timestamp.is_none()), "the claim was taken");
    scene.apply(exercise()).await;
    scene.ready("to come back").await;
    scene.close_with_the_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_password_is_in_force_under_load_without_a_restart() {
    let Some(scene) = Scene::with_a_row("password rotation under load").await else { return };
    let writer = Writer::start(&scene.bench, DB).await;
    let before = scene.life(0).await;
    let old = secret(&scene.bench, &format!("{DB}-credentials"), "password").await;
    let old = old.expect("a password");
    scene.set_password("a new one: with 'signs' \\ and ü").await;
    let taken = async || login(&scene.bench, DB, Who::Application).await.is_ok();
    scene.bench.eventually("the new password is never taken", taken).await;
    let refused = login_as(&scene.bench, DB, ("admin", &old, "mydb")).await.err();
    assert!(refused.as_deref().is_some_and(|why| why.starts_with("28P01")), "{refused:?}");
    scene.ready("with the new password").await;
    assert_eq!(scene.life(0).await, before, "the server was started again");
    let tally = writer.finish(&scene.bench, DB).await;
    tally.tell("password rotation");
    scene.close_with_the_row().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loss_of_the_primarys_volume_is_refused_and_never_made_anew() {
    let Some(scene) = Scene::with_a_row("loss of the primary's volume").await else { return };
    let (before, _) = scene.life(0).await;
    let claim = format!("data-{DB}-0");
    scene.claims().delete(&claim, &DeleteParams::default()).await.expect("deletable");
    scene.pods().delete(&format!("{DB}-0"), &DeleteParams::default()).await.expect("deletable");
    let database = scene
        .until("the loss to be named", |d| condition(d, "Degraded")["reason"] == "DataMissing")
        .await;
    assert_eq!(condition(&database, "Ready")["status"], "False", "{database:#}");
    let pod = scene.pod(0).await.expect("a pod");
    assert_ne!(pod.uid(), before);
    let started = pod.status.and_then(|status| status.container_statuses);
    let started = started.into_iter().flatten().any(|c| c.started == Some(true));
    assert!(!started, "a server was started over the empty volume");
    assert!(!is_ready(&database));
    scene.close().await;
}
