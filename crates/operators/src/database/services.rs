//! The Services: where clients connect, and the stable addresses of pods.
//!
//! Selectors never change: they are the identity of [`super::labels::selector`].

use phased::child::Desired;
use serde_json::{Value, json};

use super::blueprint::Blueprint;
use super::labels;
use super::names::PORT;

/// Name of the port in Services and containers.
pub const PORT_NAME: &str = "postgresql";

/// Where clients connect.
pub fn client(blueprint: &Blueprint) -> Desired {
    let spec = json!({
        "type": "ClusterIP",
        "selector": labels::selector(&blueprint.names.name),
        "ports": ports(),
    });
    blueprint.owned(blueprint.names.client_service(), json!({"spec": spec}))
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
