//! StatefulSets, Deployments, DaemonSets, their revisions and budgets.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Printer, age_of, containers, name, number, selector, text};

pub(super) const STATEFUL_SETS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
    ],
    cells: |set, now| {
        let [names, images] = containers(set);
        vec![name(set), ready(set), age_of(set, now), names, images]
    },
};

pub(super) const DEPLOYMENTS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Ready", "string", 0),
        ("Up-to-date", "string", 0),
        ("Available", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |set, now| {
        let [names, images] = containers(set);
        vec![
            name(set),
            ready(set),
            json!(number(set, "/status/updatedReplicas")),
            json!(number(set, "/status/availableReplicas")),
            age_of(set, now),
            names,
            images,
            json!(selector(set.pointer("/spec/selector"))),
        ]
    },
};

pub(super) const DAEMON_SETS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Up-to-date", "integer", 0),
        ("Available", "integer", 0),
        ("Node Selector", "string", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: daemon_set,
};

fn daemon_set(set: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(set);
    let count = |field: &str| json!(number(set, &format!("/status/{field}")));
    vec![
        name(set),
        count("desiredNumberScheduled"),
        count("currentNumberScheduled"),
        count("numberReady"),
        count("updatedNumberScheduled"),
        count("numberAvailable"),
        json!(selector(set.pointer("/spec/template/spec/nodeSelector"))),
        age_of(set, now),
        names,
        images,
        json!(selector(set.pointer("/spec/selector"))),
    ]
}

pub(super) const REPLICA_SETS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Desired", "integer", 0),
        ("Current", "integer", 0),
        ("Ready", "integer", 0),
        ("Age", "string", 0),
        ("Containers", "string", 1),
        ("Images", "string", 1),
        ("Selector", "string", 1),
    ],
    cells: |set, now| {
        let [names, images] = containers(set);
        vec![
            name(set),
            json!(number(set, "/spec/replicas")),
            json!(number(set, "/status/replicas")),
            json!(number(set, "/status/readyReplicas")),
            age_of(set, now),
            names,
            images,
            json!(selector(set.pointer("/spec/selector"))),
        ]
    },
};

pub(super) const REVISIONS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Controller", "string", 0),
        ("Revision", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |revision, now| {
        let owner = super::each(revision, "/metadata/ownerReferences")
            .find(|owner| owner["controller"] == json!(true));
        let controller = owner.map_or("<none>".to_owned(), |owner| {
            let group = text(owner, "/apiVersion").split_once('/').map_or("", |(group, _)| group);
            let kind = text(owner, "/kind").to_lowercase();
            let dotted = if group.is_empty() { kind } else { format!("{kind}.{group}") };
            format!("{dotted}/{}", text(owner, "/name"))
        });
        vec![
            name(revision),
            json!(controller),
            json!(number(revision, "/revision").to_string()),
            age_of(revision, now),
        ]
    },
};

pub(super) const BUDGETS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Min Available", "string", 0),
        ("Max Unavailable", "string", 0),
        ("Allowed Disruptions", "integer", 0),
        ("Age", "string", 0),
    ],
    cells: |budget, now| {
        let bound = |field: &str| match &budget["spec"][field] {
            Value::Null => json!("N/A"),
            Value::String(text) => json!(text),
            other => json!(other.to_string()),
        };
        vec![
            name(budget),
            bound("minAvailable"),
            bound("maxUnavailable"),
            json!(number(budget, "/status/disruptionsAllowed")),
            age_of(budget, now),
        ]
    },
};

fn ready(set: &Value) -> Value {
    let ready = number(set, "/status/readyReplicas");
    json!(format!("{ready}/{}", number(set, "/spec/replicas")))
}
