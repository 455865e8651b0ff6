//! ResourceQuota: counting what a namespace uses, and refusing what would exceed it.
//!
//! Must not keep counts of its own; use is counted from the store each time.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::door::{Door, QUOTAS};
use super::{Controller, Model, field};
use crate::quantity::Quantity;
use crate::{Core, Failure, Kind};

/// The quota controller; it holds no state of its own.
#[derive(Default)]
pub(super) struct Quotas;

impl Controller for Quotas {
    fn watches(&self) -> &'static [&'static str] {
        &["*"]
    }

    fn sync(&mut self, core: &mut Core, _: &mut Model) -> Option<Timestamp> {
        let mut door =
            Door::controller(core, "resourcequota-controller", "resourcequota-controller");
        for quota in door.list(QUOTAS, None) {
            let hard = field::strings(&quota, "/spec/hard");
            let used = used(door.core, field::namespace(&quota), hard.keys());
            let used: Map<String, Value> =
                used.iter().map(|(name, amount)| (name.clone(), json!(spelt(amount)))).collect();
            let status = json!({ "hard": quota["spec"]["hard"], "used": used });
            if status != quota["status"] {
                let mut written = quota;
                written["status"] = status;
                let _ = door.update_status(QUOTAS, written);
            }
        }
        None
    }
}

/// Refuses a new object that a quota of its namespace has no room for.
///
/// # Errors
/// 403 Forbidden with the server's wording.
pub(crate) fn admit(core: &mut Core, kind: &Kind, object: &Value) -> Result<(), Failure> {
    let namespace = field::namespace(object);
    let quotas: Vec<Value> = core
        .store
        .list(QUOTAS.group, QUOTAS.plural, Some(namespace))
        .map(|(_, quota)| quota.clone())
        .collect();
    for quota in quotas {
        let hard = field::strings(&quota, "/spec/hard");
        let silent = silent(kind, object, hard.keys());
        if !silent.is_empty() {
            let text = format!(
                "failed quota: {}: must specify {}",
                field::name(&quota),
                silent.join("; ")
            );
            return Err(Failure::forbidden(kind, field::name(object), &text));
        }
        let asked = uses(&kind.group, &kind.plural, object);
        let used = used(core, namespace, hard.keys());
        let over: Vec<&String> = hard
            .iter()
            .filter(|(name, limit)| {
                let limit = amount(limit);
                let asked = asked.get(*name).and_then(|quantity| quantity.scaled(-3)).unwrap_or(0);
                let used = used.get(*name).and_then(|quantity| quantity.scaled(-3)).unwrap_or(0);
                asked > 0 && limit.is_some_and(|limit| used + asked > limit)
            })
            .map(|(name, _)| name)
            .collect();
        if over.is_empty() {
            continue;
        }
        let part = |of: &dyn Fn(&String) -> String| {
            let parts = over.iter().map(|name| format!("{name}={}", of(name)));
            parts.collect::<Vec<_>>().join(",")
        };
        let text = format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            field::name(&quota),
            part(&|name| asked.get(name).map_or_else(|| "0".into(), spelt)),
            part(&|name| used.get(name).map_or_else(|| "0".into(), spelt)),
            part(&|name| hard.get(name).cloned().unwrap_or_default()),
        );
        return Err(Failure::forbidden(kind, field::name(object), &text));
    }
    Ok(())
}

/// What a quota limits and containers of a pod say nothing about, with the names of these containers.
fn silent<'a>(kind: &Kind, object: &Value, names: impl Iterator<Item = &'a String>) -> Vec<String> {
    if !kind.is("", "Pod") {
        return Vec::new();
    }
    let says = |container: &Value, part: &str, resource: &str| {
        field::strings(container, &format!("/resources/{part}")).contains_key(resource)
    };
    let limited = names.filter_map(|name| match name.split_once('.') {
        Some((part @ ("requests" | "limits"), resource @ ("cpu" | "memory"))) => {
            Some((name, part, resource))
        }
        None if ["cpu", "memory"].contains(&name.as_str()) => {
            Some((name, "requests", name.as_str()))
        }
        _ => None,
    });
    limited
        .filter_map(|(name, part, resource)| {
            let all = ["/spec/containers", "/spec/initContainers"];
            let containers = all.into_iter().flat_map(|list| field::list(object, list));
            let who: Vec<&str> = containers
                .filter(|container| !says(container, part, resource))
                .map(|container| field::text(container, "/name"))
                .collect();
            (!who.is_empty()).then(|| format!("{name} for: {}", who.join(",")))
        })
        .collect()
}

/// What a pod needs at once: its containers together, or the neediest of those that run before them.
fn needed(pod: &Value, part: &str) -> BTreeMap<String, String> {
    let asks = |list: &str| {
        let containers = field::list(pod, list).iter();
        containers
            .flat_map(|container| field::strings(container, &format!("/resources/{part}")))
            .filter_map(|(name, text)| Some((name, Quantity::parse(&text).ok()?)))
            .collect::<Vec<_>>()
    };
    let mut sums: BTreeMap<String, Quantity> = BTreeMap::new();
    for (name, more) in asks("/spec/containers") {
        let sum = sums.get(&name).and_then(|sum| sum.plus(&more)).unwrap_or(more);
        sums.insert(name, sum);
    }
    for (name, one) in asks("/spec/initContainers") {
        if sums.get(&name).is_none_or(|sum| sum.scaled(-3) < one.scaled(-3)) {
            sums.insert(name, one);
        }
    }
    sums.into_iter().map(|(name, sum)| (name, spelt(&sum))).collect()
}

fn amount(text: &str) -> Option<i128> {
    Quantity::parse(text).ok()?.scaled(-3)
}

fn spelt(quantity: &Quantity) -> String {
    quantity.canonical()
}

/// What the namespace uses of the named resources.
fn used<'a>(
    core: &Core,
    namespace: &str,
    names: impl Iterator<Item = &'a String>,
) -> BTreeMap<String, Quantity> {
    let zero = Quantity::parse("0");
    let mut sums: BTreeMap<String, Quantity> =
        names.filter_map(|name| Some((name.clone(), zero.clone().ok()?))).collect();
    for (key, object) in core.store.all() {
        if key.namespace != namespace {
            continue;
        }
        for (name, quantity) in uses(&key.group, &key.plural, object) {
            if let Some(sum) = sums.get_mut(&name)
                && let Some(more) = sum.plus(&quantity)
            {
                *sum = more;
            }
        }
    }
    sums
}

/// What one object counts for.
fn uses(group: &str, plural: &str, object: &Value) -> BTreeMap<String, Quantity> {
    let mut uses = BTreeMap::new();
    let mut add = |name: String, text: &str| {
        let Ok(quantity) = Quantity::parse(text) else { return };
        let sum = match uses.remove(&name) {
            Some(before) => quantity.plus(&before).unwrap_or(before),
            None => quantity,
        };
        uses.insert(name, sum);
    };
    let ended = matches!(field::text(object, "/status/phase"), "Succeeded" | "Failed");
    let counted = match group {
        "" => format!("count/{plural}"),
        group => format!("count/{plural}.{group}"),
    };
    add(counted, "1");
    if !group.is_empty() {
        return uses;
    }
    match plural {
        "pods" if !ended => {
            add("pods".into(), "1");
            for (name, amount) in needed(object, "requests") {
                add(format!("requests.{name}"), &amount);
                add(name, &amount);
            }
            for (name, amount) in needed(object, "limits") {
                add(format!("limits.{name}"), &amount);
            }
        }
        "persistentvolumeclaims" => {
            add(plural.to_owned(), "1");
            let size = field::text(object, "/spec/resources/requests/storage");
            add("requests.storage".into(), size);
            let class = field::text(object, "/spec/storageClassName");
            let prefix = format!("{class}.storageclass.storage.k8s.io");
            add(format!("{prefix}/requests.storage"), size);
            add(format!("{prefix}/persistentvolumeclaims"), "1");
        }
        "services" => {
            add(plural.to_owned(), "1");
            match field::text(object, "/spec/type") {
                "LoadBalancer" => add("services.loadbalancers".into(), "1"),
                "NodePort" => add("services.nodeports".into(), "1"),
                _ => {}
            }
        }
        "secrets" | "configmaps" | "replicationcontrollers" | "resourcequotas" => {
            add(plural.to_owned(), "1");
        }
        _ => {}
    }
    uses
}
