//! Every shape of an explanation, as people see it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod toy;

use foresight::explanation::{Explanation, explain};
use foresight::page::{self, Page};
use foresight::stage::{Outside, Progress};
use insta::assert_snapshot;
use jiff::SignedDuration;
use phased::Live;
use serde_json::{Value, json};
use toy::{Bench, id, tell, usual};

fn told(bench: &Bench, events: &[Live]) -> Explanation {
    let mut stage = bench.stage(Outside::Unasked);
    loop {
        match explain(&mut stage, events) {
            Progress::Done(told) => return told,
            Progress::Needs(questions) => questions.into_iter().for_each(|q| tell(&mut stage, q)),
        }
    }
}

fn shown(all: &[Explanation]) -> String {
    let mut page = Page::new(false);
    all.iter().for_each(|one| page::explanation::add(&mut page, one));
    page::explanation::summary(&mut page, all);
    let text = page.text(false);
    assert!(text.lines().all(|line| line.chars().count() <= page::WIDTH), "too wide:\n{text}");
    text
}

fn event(bench: &Bench, kind: &str, name: &str, words: (&str, &str, &str), count: i64) -> Live {
    let (who, reason, message) = words;
    let uid = bench.objects[&id(kind, name)].uid();
    Live::new(json!({"metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": kind, "namespace": "shop", "name": name, "uid": uid},
        "source": {"component": who}, "type": "Warning", "reason": reason, "message": message,
        "count": count, "lastTimestamp": "2026-03-01T11:59:40Z"}))
    .unwrap()
}

/// A rollout that is stuck at its last pod for want of an image.
fn stuck() -> Bench {
    let mut bench = Bench::settled(&usual());
    bench.root["status"]["phase"] = json!("Deploying");
    bench.root["status"]["phaseSince"] = json!("2026-03-01T11:55:48Z");
    bench.root["status"]["conditions"][0]["status"] = json!("False");
    bench.meddle(&id("Pod", "web-2"), |pod| {
        pod["status"] = json!({"phase": "Pending", "containerStatuses": [{"name": "web",
            "state": {"waiting": {"reason": "ImagePullBackOff",
                "message": "Back-off pulling image \"web:9\": not found"}}}]});
    });
    bench.meddle(&id("StatefulSet", "web"), |set| set["status"]["readyReplicas"] = json!(2));
    bench
}

#[test]
fn a_settled_resource() {
    assert_snapshot!(shown(&[told(&Bench::settled(&usual()), &[])]));
}

#[test]
fn a_stuck_rollout_in_the_words_of_who_raised_it() {
    let bench = stuck();
    let words = ("kubelet", "Failed", "Failed to pull image \"web:9\": rpc error: not found");
    let told = told(&bench, &[event(&bench, "Pod", "web-2", words, 7)]);
    assert_eq!(told.deadline.map(|at| at.as_second() - bench.now.as_second()), Some(600));
    assert_snapshot!(shown(&[told]));
}

#[test]
fn a_new_resource_that_nobody_has_looked_at_is_overdue() {
    let mut bench = Bench::new(&usual());
    bench.now = toy::noon();
    let told = told(&bench, &[]);
    assert!(told.overdue.is_some());
    assert_snapshot!(shown(&[told]));
}

#[test]
fn an_edit_that_nobody_has_looked_at_is_overdue_since_it_was_made() {
    let mut bench = Bench::settled(&usual());
    bench.root["metadata"]["generation"] = json!(2);
    bench.root["metadata"]["managedFields"] = json!([{"manager": "kubectl-edit",
        "operation": "Update", "time": "2026-03-01T11:58:00Z", "fieldsV1": {"f:spec": {"f:image": {}}}}]);
    let told = told(&bench, &[]);
    let since = told.overdue.as_ref().and_then(|overdue| overdue.since);
    assert_eq!(since.map(|at| at.to_string()).as_deref(), Some("2026-03-01T11:58:00Z"));
    assert_snapshot!(shown(&[told]));
}

#[test]
fn an_edit_of_a_moment_ago_is_not_overdue() {
    let mut bench = Bench::settled(&usual());
    bench.root["metadata"]["generation"] = json!(2);
    let just_now = bench.now.checked_sub(SignedDuration::from_secs(3)).unwrap();
    bench.root["metadata"]["managedFields"] = json!([{"manager": "kubectl-edit",
        "operation": "Update", "time": just_now, "fieldsV1": {"f:spec": {}}}]);
    assert_eq!(told(&bench, &[]).overdue, None);
}

#[test]
fn what_only_the_operator_can_ask_is_told_by_the_status() {
    let mut bench = Bench::settled(&usual());
    bench.root["status"]["phase"] = json!("Verifying");
    bench.root["status"]["conditions"] = json!([{"type": "Ready", "status": "False",
        "reason": "Preparing", "message": "the server does not answer",
        "lastTransitionTime": "2026-03-01T11:50:00Z"}]);
    assert_snapshot!(shown(&[told(&bench, &[])]));
}

#[test]
fn an_edit_of_a_child_by_another_manager_is_what_comes_next() {
    let mut bench = Bench::settled(&usual());
    bench.meddle(&id("Service", "web"), |service| {
        service["spec"]["ports"] = json!([{"port": 80, "targetPort": 1}, {"port": 81}]);
        service["spec"]["selector"] = json!({"app": "stolen"});
        service["metadata"]["managedFields"] = json!([{"manager": "kubectl-edit",
            "operation": "Update", "time": "2026-03-01T11:59:00Z",
            "fieldsV1": {"f:spec": {"f:selector": {}}}}]);
    });
    assert_snapshot!(shown(&[told(&bench, &[])]));
}

#[test]
fn several_resources_end_with_one_line() {
    let all = [told(&Bench::settled(&usual()), &[]), told(&stuck(), &[])];
    let text = shown(&all);
    let last = text.lines().last().unwrap();
    assert_eq!(last, "2 resources: 1 ready, 1 on the way.");
    assert_snapshot!(text);
}

#[test]
fn programs_read_the_same() {
    let bench = stuck();
    let value: Value = serde_json::to_value(told(&bench, &[])).unwrap();
    assert_snapshot!(serde_json::to_string_pretty(&value).unwrap());
}
