//! Configuration, accounts, nodes, Events, and kinds without columns of their own.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Printer, age, age_of, each, name, number, text, text_or};

pub(super) const OTHERS: Printer = Printer {
    headings: &[("Name", "string", 0), ("Created At", "date", 0)],
    cells: |object, _| vec![name(object), json!(text(object, "/metadata/creationTimestamp"))],
};

fn entries(object: &Value, field: &str) -> i64 {
    object[field].as_object().map_or(0, |map| i64::try_from(map.len()).unwrap_or(i64::MAX))
}

pub(super) const CONFIG_MAPS: Printer = Printer {
    headings: &[("Name", "string", 0), ("Data", "string", 0), ("Age", "string", 0)],
    cells: |map, now| {
        let count = entries(map, "data") + entries(map, "binaryData");
        vec![name(map), json!(count), age_of(map, now)]
    },
};

pub(super) const SECRETS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Type", "string", 0),
        ("Data", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |secret, now| {
        vec![
            name(secret),
            json!(text(secret, "/type")),
            json!(entries(secret, "data")),
            age_of(secret, now),
        ]
    },
};

pub(super) const ACCOUNTS: Printer = Printer {
    headings: &[("Name", "string", 0), ("Secrets", "string", 0), ("Age", "string", 0)],
    cells: |account, now| {
        vec![name(account), json!(each(account, "/secrets").count()), age_of(account, now)]
    },
};

pub(super) const NAMESPACES: Printer = Printer {
    headings: &[("Name", "string", 0), ("Status", "string", 0), ("Age", "string", 0)],
    cells: |namespace, now| {
        vec![name(namespace), json!(text(namespace, "/status/phase")), age_of(namespace, now)]
    },
};

pub(super) const NODES: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Status", "string", 0),
        ("Roles", "string", 0),
        ("Age", "string", 0),
        ("Version", "string", 0),
        ("Internal-IP", "string", 1),
        ("External-IP", "string", 1),
        ("OS-Image", "string", 1),
        ("Kernel-Version", "string", 1),
        ("Container-Runtime", "string", 1),
    ],
    cells: node,
};

fn node(node: &Value, now: Timestamp) -> Vec<Value> {
    let ready = each(node, "/status/conditions").find(|c| text(c, "/type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "/status")) {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == json!(true) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = node["metadata"]["labels"].as_object();
    let roles: Vec<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(label, _)| label.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    let address = |kind: &str| {
        let found = each(node, "/status/addresses").find(|a| text(a, "/type") == kind);
        json!(found.map_or("<none>", |address| text(address, "/address")))
    };
    let info =
        |field: &str| json!(text_or(node, &format!("/status/nodeInfo/{field}"), "<unknown>"));
    vec![
        name(node),
        json!(status),
        json!(if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }),
        age_of(node, now),
        json!(text(node, "/status/nodeInfo/kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

pub(super) const EVENTS: Printer = Printer {
    headings: &[
        ("Last Seen", "string", 0),
        ("Type", "string", 0),
        ("Reason", "string", 0),
        ("Object", "string", 0),
        ("Subobject", "string", 1),
        ("Source", "string", 1),
        ("Message", "string", 0),
        ("First Seen", "string", 1),
        ("Count", "string", 1),
        ("Name", "string", 1),
    ],
    cells: event,
};

/// Works on both Event APIs: the fields of one are absent in the other.
fn event(event: &Value, now: Timestamp) -> Vec<Value> {
    let either = |new: &str, old: &str| match text(event, new) {
        "" => text(event, old).to_owned(),
        found => found.to_owned(),
    };
    let first = match either("/deprecatedFirstTimestamp", "/firstTimestamp") {
        empty if empty.is_empty() => text(event, "/eventTime").to_owned(),
        found => found,
    };
    let last = match text(event, "/series/lastObservedTime") {
        "" => either("/deprecatedLastTimestamp", "/lastTimestamp"),
        seen => seen.to_owned(),
    };
    let last = if last.is_empty() { first.clone() } else { last };
    let count = [
        number(event, "/series/count"),
        number(event, "/count"),
        number(event, "/deprecatedCount"),
        1,
    ];
    let about = if event.get("regarding").is_some() { "/regarding" } else { "/involvedObject" };
    let object = format!(
        "{}/{}",
        text(event, &format!("{about}/kind")).to_lowercase(),
        text(event, &format!("{about}/name"))
    );
    let source = match either("/deprecatedSource/component", "/source/component") {
        empty if empty.is_empty() => either("/reportingController", "/reportingComponent"),
        found => found,
    };
    vec![
        json!(age::since(&last, now)),
        json!(text(event, "/type")),
        json!(text(event, "/reason")),
        json!(object),
        json!(text(event, &format!("{about}/fieldPath"))),
        json!(source),
        json!(either("/note", "/message").trim()),
        json!(age::since(&first, now)),
        json!(count.into_iter().find(|count| *count > 0).unwrap_or(1)),
        name(event),
    ]
}

pub(super) const QUOTAS: Printer = Printer {
    headings: &[
        ("Name", "string", 0),
        ("Request", "string", 0),
        ("Limit", "string", 0),
        ("Age", "string", 0),
    ],
    cells: |quota, now| {
        let part = |limits: bool| {
            let hard = quota["status"]["hard"].as_object();
            let shown: Vec<String> = hard
                .into_iter()
                .flatten()
                .filter(|(name, _)| name.starts_with("limits") == limits)
                .map(|(name, hard)| {
                    let used = quota["status"]["used"][name].as_str().unwrap_or("0");
                    format!("{name}: {used}/{}", hard.as_str().unwrap_or(""))
                })
                .collect();
            json!(shown.join(", "))
        };
        vec![name(quota), part(false), part(true), age_of(quota, now)]
    },
};

pub(super) const LEASES: Printer = Printer {
    headings: &[("Name", "string", 0), ("Holder", "string", 0), ("Age", "string", 0)],
    cells: |lease, now| {
        vec![name(lease), json!(text(lease, "/spec/holderIdentity")), age_of(lease, now)]
    },
};

pub(super) const BINDINGS: Printer = Printer {
    headings: &[("Name", "string", 0), ("Role", "string", 0), ("Age", "string", 0)],
    cells: |binding, now| {
        let role = format!("{}/{}", text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        vec![name(binding), json!(role), age_of(binding, now)]
    },
};
