//! PodDisruptionBudgets: how many pods may be evicted now.
//!
//! Must not evict; whoever asks for an eviction reads the status written here.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::door::{BUDGETS, DEPLOYMENTS, Door, PODS, REPLICA_SETS, STATEFUL_SETS};
use super::{Controller, Model, field};
use crate::Core;

/// The disruption controller; it holds no state of its own.
#[derive(Default)]
pub(super) struct Budgets;

impl Controller for Budgets {
    fn watches(&self) -> &'static [&'static str] {
        &["poddisruptionbudgets", "pods", "statefulsets", "replicasets", "deployments"]
    }

    fn sync(&mut self, core: &mut Core, _: &mut Model) -> Option<Timestamp> {
        let mut door = Door::controller(core, "disruption-controller", "controllermanager");
        for budget in door.list(BUDGETS, None) {
            one(&mut door, budget);
        }
        None
    }
}

fn one(door: &mut Door, budget: Value) {
    let mut pods = door.list(PODS, Some(field::namespace(&budget)));
    let chosen = |pod: &Value| field::selects(&budget["spec"]["selector"], &field::labels(pod));
    pods.retain(|pod| {
        !matches!(field::text(pod, "/status/phase"), "Succeeded" | "Failed") && chosen(pod)
    });
    let healthy = pods.iter().filter(|pod| !field::deleting(pod) && field::is_true(pod, "Ready"));
    let current = i64::try_from(healthy.count()).unwrap_or(0);
    if pods.is_empty() && field::list(&budget, "/status/conditions").is_empty() {
        door.event(&budget, "Normal", "NoPods", "No matching pods found");
    }
    let (expected, desired) = wanted(door, &budget, &pods);
    let allowed = if expected > 0 { (current - desired).max(0) } else { 0 };
    let mut status = field::map(&budget, "/status");
    status.insert("observedGeneration".into(), budget["metadata"]["generation"].clone());
    status.insert("currentHealthy".into(), json!(current));
    status.insert("desiredHealthy".into(), json!(desired));
    status.insert("expectedPods".into(), json!(expected));
    status.insert("disruptionsAllowed".into(), json!(allowed));
    status.insert("conditions".into(), json!([condition(door, &budget, allowed > 0)]));
    if Some(&status) != budget["status"].as_object() {
        let mut written = budget;
        written["status"] = Value::Object(status);
        let _ = door.update_status(BUDGETS, written);
    }
}

fn condition(door: &Door, budget: &Value, allowed: bool) -> Value {
    let (status, reason) = match allowed {
        true => ("True", "SufficientPods"),
        false => ("False", "InsufficientPods"),
    };
    let before = field::condition(budget, "DisruptionAllowed");
    let since = match before.filter(|one| one["status"] == status) {
        Some(one) => one["lastTransitionTime"].clone(),
        None => json!(field::stamp(door.now())),
    };
    json!({
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": "",
        "observedGeneration": budget["metadata"]["generation"],
        "lastTransitionTime": since,
    })
}

/// Expected pods and the number that must stay healthy.
fn wanted(door: &Door, budget: &Value, pods: &[Value]) -> (i64, i64) {
    let count = i64::try_from(pods.len()).unwrap_or(0);
    let share = |value: &Value, of: i64| match value {
        Value::String(text) => {
            let percent: i64 = text.trim_end_matches('%').parse().unwrap_or(0);
            (of * percent + 99) / 100
        }
        other => other.as_i64().unwrap_or(0),
    };
    if let Some(unavailable) = budget["spec"].get("maxUnavailable") {
        let expected = scale(door, pods);
        return (expected, (expected - share(unavailable, expected)).max(0));
    }
    match &budget["spec"]["minAvailable"] {
        number @ Value::Number(_) => (count, number.as_i64().unwrap_or(0)),
        Value::String(text) => {
            let expected = scale(door, pods);
            (expected, share(&Value::from(text.as_str()), expected))
        }
        _ => (count, 0),
    }
}

/// The sum of the wanted replicas of the pods' controllers.
fn scale(door: &Door, pods: &[Value]) -> i64 {
    let mut owners: Vec<(String, i64)> = Vec::new();
    for pod in pods {
        let Some(owner) = field::controller(pod) else { continue };
        let uid = field::text(owner, "/uid").to_owned();
        if owners.iter().any(|one| one.0 == uid) {
            continue;
        }
        let resources = [STATEFUL_SETS, REPLICA_SETS, DEPLOYMENTS];
        let found = resources.iter().find_map(|resource| {
            let object = door.get(*resource, field::namespace(pod), field::text(owner, "/name"))?;
            (field::uid(&object) == uid).then(|| field::number(&object, "/spec/replicas", 1))
        });
        owners.extend(found.map(|replicas| (uid, replicas)));
    }
    owners.iter().map(|one| one.1).sum()
}
