//! The Services and the budget: where clients connect, the stable addresses of pods, and how many of
//! them a drain may take.
//!
//! A lone server is selected by the identity of [`super::labels::selector`] alone, so that no outage
//! of the operator, which writes the roles, can cut it off. As soon as there are standbys, clients
//! are led by role (docs/design/0002-standbys.md).

use phased::Live;
use phased::child::Desired;
use serde_json::{Value, json};

use super::blueprint::Blueprint;
use super::labels;
use super::names::PORT;

/// Name of the port in Services and containers.
pub const PORT_NAME: &str = "postgresql";

/// Where clients connect.
pub fn client(blueprint: &Blueprint) -> Desired {
    let name = &blueprint.names.name;
    let selector = if blueprint.several {
        labels::role_selector(name, labels::PRIMARY)
    } else {
        labels::selector(name)
    };
    let spec = json!({"type": "ClusterIP", "selector": selector, "ports": ports()});
    blueprint.owned(blueprint.names.client_service(), json!({"spec": spec}))
}

/// Whether a client Service leads to the primary alone, however many pods there are.
pub fn tells_roles_apart(service: &Live) -> bool {
    service.value["spec"]["selector"][labels::ROLE_LABEL] == labels::PRIMARY
}

/// Where clients read from standbys.
pub fn read_only(blueprint: &Blueprint) -> Desired {
    let selector = labels::role_selector(&blueprint.names.name, labels::STANDBY);
    let spec = json!({"type": "ClusterIP", "selector": selector, "ports": ports()});
    blueprint.owned(blueprint.names.read_only_service(), json!({"spec": spec}))
}

/// At most one pod at a time. With one server a budget would only stand in the way of drains.
pub fn budget(blueprint: &Blueprint) -> Desired {
    let spec = json!({
        "maxUnavailable": 1,
        "selector": {"matchLabels": labels::selector(&blueprint.names.name)},
    });
    blueprint.owned(blueprint.names.budget(), json!({"spec": spec}))
}

/// Stable addresses of the pods, before they are ready too.
pub fn headless(blueprint: &Blueprint) -> Desired {
    let spec = json!({
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": true,
        "selector": labels::selector(&blueprint.names.name),
        "ports": ports(),
    });
    blueprint.owned(blueprint.names.headless_service(), json!({"spec": spec}))
}

fn ports() -> Value {
    json!([{"name": PORT_NAME, "port": PORT, "protocol": "TCP", "targetPort": PORT_NAME}])
}
