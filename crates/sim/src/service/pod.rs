//! Subresources that only pods have: binding and eviction.

use serde_json::{Value, json};

use super::dispatch::Served;
use super::object;
use crate::clock;
use crate::cluster::{Actor, Core, Options, Sub};
use crate::reply::Reply;
use crate::selector::{Labels, labels_text};
use crate::status::Failure;
use crate::store::Key;

pub(super) fn serve(core: &mut Core, served: &Served<'_>) -> Result<Reply, Failure> {
    if served.call.verb() != "create" {
        return Err(Failure::method_not_allowed());
    }
    let by = served.call.actor(&served.user);
    let body = served.call.json("Object")?;
    match served.place.subresource.as_str() {
        "binding" => core.bind(&by, &served.key, body["target"]["name"].as_str().unwrap_or(""))?,
        _ => evict(core, served, &by, &body)?,
    }
    Ok(Reply::Json {
        code: 201,
        value: json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        }),
    })
}

/// Eviction asks the disruption budgets of the pod's namespace, then deletes.
fn evict(core: &mut Core, served: &Served<'_>, by: &Actor, body: &Value) -> Result<(), Failure> {
    let pod = core.read(&served.kind, &served.key, 0)?;
    let mut options = match body.get("deleteOptions") {
        Some(options) => object::delete_options(&served.call.with_body(options))?,
        None => Default::default(),
    };
    options.dry_run |= served.call.dry_run();
    let unguarded =
        matches!(pod["status"]["phase"].as_str(), Some("Pending" | "Succeeded" | "Failed"))
            || pod["metadata"]["deletionTimestamp"].is_string();
    if !unguarded {
        spend_budget(core, served, by, &pod, options.dry_run)?;
    }
    core.delete(by, &served.kind, &served.key, &options).map(|_| ())
}

fn spend_budget(
    core: &mut Core,
    served: &Served<'_>,
    by: &Actor,
    pod: &Value,
    dry_run: bool,
) -> Result<(), Failure> {
    let namespace = &served.key.namespace;
    let guards: Vec<(Key, Value)> = core
        .store
        .list("policy", "poddisruptionbudgets", Some(namespace))
        .filter(|(_, budget)| {
            Labels::parse(&labels_text(&budget["spec"]["selector"]))
                .is_ok_and(|labels| labels.matches(pod))
        })
        .map(|(key, budget)| (key.clone(), budget.clone()))
        .collect();
    let (key, mut budget) = match guards.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        _ => {
            return Err(Failure::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let status = &budget["status"];
    let allowed = status["disruptionsAllowed"].as_i64().unwrap_or(0);
    let seen = status["observedGeneration"] == budget["metadata"]["generation"];
    if allowed <= 0 || !seen {
        return Err(too_few(&budget));
    }
    budget["status"]["disruptionsAllowed"] = json!(allowed - 1);
    budget["status"]["disruptedPods"][&served.key.name] = json!(clock::seconds(core.now()));
    let Some(kind) = core.kinds.get("policy", "poddisruptionbudgets") else { return Ok(()) };
    let options = Options { dry_run, ..Options::default() };
    core.update(by, &kind, &key, budget, Some(Sub::Status), &options).map(|_| ())
}

fn too_few(budget: &Value) -> Failure {
    let status = &budget["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    Failure::too_many("Cannot evict pod as it would violate the pod's disruption budget.", None)
        .with(json!({ "causes": [{
            "reason": "DisruptionBudget",
            "message": format!(
                "The disruption budget {} needs {} healthy pods and has {} currently",
                budget["metadata"]["name"].as_str().unwrap_or(""),
                number("desiredHealthy"),
                number("currentHealthy"),
            ),
        }] }))
}
