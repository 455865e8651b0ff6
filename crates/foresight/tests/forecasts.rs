//! Every shape of a forecast, as people see it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod toy;

use foresight::forecast::{Edit, Forecast, Outcome, Said};
use foresight::page::Page;
use foresight::page::summary::Summary;
use insta::assert_snapshot;
use phased::Live;
use serde_json::{Value, json};
use toy::{Bench, id, page, usual};

fn with(field: &str, value: Value) -> Value {
    let mut spec = usual();
    spec[field] = value;
    spec
}

fn first(spec: &Value) -> Forecast {
    let (course, end) = Bench::new(spec).play();
    let frozen = vec!["spec.name".to_owned()];
    let edit = Edit { new: true, frozen, ..Edit::default() };
    Forecast::of(&course, &end, "web.yaml".to_owned(), edit)
}

#[test]
fn a_first_install() {
    assert_snapshot!(page(&first(&usual())));
}

#[test]
fn an_image_change_on_three_replicas_restarts_from_the_last_to_the_first() {
    let forecast = Bench::settled(&usual()).foresee(&with("image", json!("web:2")));
    assert_eq!(forecast.pods[0].pods, ["web-2", "web-1", "web-0"]);
    assert!(!forecast.service[0].interrupted);
    assert_snapshot!(page(&forecast));
}

#[test]
fn one_replica_means_an_interruption() {
    let one = with("replicas", json!(1));
    let mut image = one.clone();
    image["image"] = json!("web:2");
    let forecast = Bench::settled(&one).foresee(&image);
    assert!(forecast.service[0].interrupted);
    assert_snapshot!(page(&forecast));
}

#[test]
fn fewer_replicas_stop_the_last_pods() {
    let forecast = Bench::settled(&usual()).foresee(&with("replicas", json!(1)));
    assert_eq!(forecast.pods[0].pods, ["web-2", "web-1"]);
    assert_snapshot!(page(&forecast));
}

#[test]
fn more_replicas_make_pods_and_volumes_and_long_lists_fold() {
    let forecast = Bench::settled(&usual()).foresee(&with("replicas", json!(20)));
    assert_snapshot!(page(&forecast));
}

#[test]
fn a_text_is_compared_line_by_line_and_restarts_nothing() {
    let forecast = Bench::settled(&usual()).foresee(&with("greeting", json!("good day")));
    assert!(forecast.pods.is_empty());
    assert_snapshot!(page(&forecast));
}

#[test]
fn a_growing_volume_cannot_be_undone() {
    let forecast = Bench::settled(&usual()).foresee(&with("size", json!("20Gi")));
    assert_eq!(forecast.outcome, Outcome::Changed);
    assert_snapshot!(page(&forecast));
}

#[test]
fn a_shrinking_volume_is_refused() {
    let forecast = Bench::settled(&usual()).foresee(&with("size", json!("5Gi")));
    assert_eq!(forecast.outcome, Outcome::Refused);
    assert_snapshot!(page(&forecast));
}

#[test]
fn a_name_that_belongs_to_somebody_else_is_held() {
    let mut bench = Bench::settled(&usual());
    bench.meddle(&id("ConfigMap", "web-config"), |map| {
        map["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Other",
            "name": "thief", "uid": "u2", "controller": true}]);
    });
    assert_snapshot!(page(&bench.foresee(&with("image", json!("web:2")))));
}

#[test]
fn a_pod_that_cannot_start_does_not_heal_by_itself_but_by_a_new_image() {
    let mut bench = Bench::settled(&with("replicas", json!(1)));
    bench.meddle(&id("Pod", "web-0"), |pod| {
        pod["status"] = json!({"phase": "Pending", "containerStatuses": [{"name": "web",
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]});
    });
    bench.meddle(&id("StatefulSet", "web"), |set| set["status"]["readyReplicas"] = json!(0));
    let mut greeting = with("replicas", json!(1));
    greeting["greeting"] = json!("good day");
    assert_snapshot!(page(&bench.foresee(&greeting)));
}

#[test]
fn a_question_that_nobody_can_suppose_ends_the_forecast() {
    assert_snapshot!(page(&first(&with("mystery", json!(true)))));
}

#[test]
fn what_the_server_refuses_and_what_does_not_change() {
    let said = Said {
        reason: "RefusedByServer".to_owned(),
        message: "spec.size: not a quantity; write a number with a unit, such as 10Gi".to_owned(),
        remedy: "Correct the manifest and plan again.".to_owned(),
    };
    let notes = vec!["the manifest is a dump".to_owned()];
    let edit = Edit { notes, ..Edit::default() };
    let name = "Widget/shop/web".to_owned();
    let refused = Forecast::refused(name, "all.yaml#3".to_owned(), edit, vec![said]);
    let same = Bench::settled(&usual()).foresee(&usual());
    assert!(same.is_quiet(), "{same:?}");
    assert_snapshot!(page(&refused) + &page(&same));
}

#[test]
fn no_secret_value_is_in_a_forecast() {
    let forecast = first(&usual());
    let text = serde_json::to_string(&forecast).unwrap() + &page(&forecast);
    assert!(text.contains("Secret/shop/web-login"));
    assert!(!text.contains("made-up-by-the-operator") && !text.contains("bWFkZS11cC"), "{text}");
}

#[test]
fn the_last_line_says_it_all() {
    let mut summary = Summary { others: 2, failed: 1, ..Summary::default() };
    let bench = Bench::settled(&with("replicas", json!(1)));
    let mut spec = with("replicas", json!(1));
    spec["image"] = json!("web:2");
    summary.add(&bench.foresee(&spec));
    summary.add(&bench.foresee(&with("size", json!("5Gi"))));
    summary.add(&first(&usual()));
    let mut page = Page::new(false);
    summary.show(&mut page);
    assert_snapshot!(page.text(false));
    assert_eq!(summary.exit_code(), 1);
}

#[test]
fn colour_marks_what_comes_changes_and_goes() {
    let forecast = Bench::settled(&usual()).foresee(&with("image", json!("web:2")));
    let mut page = Page::new(false);
    foresight::page::forecast::add(&mut page, &forecast);
    assert_snapshot!(page.text(true).replace('\x1b', "ESC"));
}

#[test]
fn programs_read_the_same() {
    let forecast = Bench::settled(&usual()).foresee(&with("image", json!("web:2")));
    assert_snapshot!(serde_json::to_string_pretty(&forecast).unwrap());
}

#[test]
fn what_others_hold_of_a_child_stays_and_is_not_told() {
    let mut bench = Bench::settled(&usual());
    bench.meddle(&id("Service", "web"), |service| {
        service["metadata"]["annotations"]["mesh.example.com/on"] = json!("true");
    });
    let forecast = bench.foresee(&with("image", json!("web:2")));
    assert!(
        forecast.children.iter().all(|c| !c.name.starts_with("Service") || c.fields.is_empty())
    );
    let live: &Live = &bench.objects[&id("Service", "web")];
    assert!(live.annotation("mesh.example.com/on").is_some());
}
