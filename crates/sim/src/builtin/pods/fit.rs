//! Whether a node takes a pod: taints, selectors, affinity, resources.
//!
//! Must not read the store; all that counts is passed in. Preferences (`preferred…`) are ignored.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::builtin::field;
use crate::quantity::Quantity;

/// Why a node does not take the pod, in the scheduler's words; none when it does.
pub(super) fn obstacle(
    pod: &Value,
    node: &Value,
    pods: &[Value],
    nodes: &[Value],
) -> Option<String> {
    if field::flag(node, "/spec/unschedulable") {
        return Some("node(s) were unschedulable".into());
    }
    if let Some(taint) = untolerated(pod, node) {
        let (key, value) = (field::text(taint, "/key"), field::text(taint, "/value"));
        return Some(format!("node(s) had untolerated taint {{{key}: {value}}}"));
    }
    if !selected(pod, node) {
        return Some("node(s) didn't match Pod's node affinity/selector".into());
    }
    let here: Vec<&Value> = pods
        .iter()
        .filter(|one| field::text(one, "/spec/nodeName") == field::name(node))
        .filter(|one| !matches!(field::text(one, "/status/phase"), "Failed" | "Succeeded"))
        .collect();
    if let Some(short) = shortage(pod, node, &here) {
        return Some(short);
    }
    repelled(pod, node, pods, nodes)
        .then(|| "node(s) didn't match pod anti-affinity rules".to_owned())
}

fn untolerated<'a>(pod: &Value, node: &'a Value) -> Option<&'a Value> {
    field::list(node, "/spec/taints").iter().find(|taint| {
        let effect = field::text(taint, "/effect");
        let hard = matches!(effect, "NoSchedule" | "NoExecute");
        let tolerated = field::list(pod, "/spec/tolerations").iter().any(|toleration| {
            let key = field::text(toleration, "/key");
            let exists = field::text(toleration, "/operator") == "Exists";
            let same_key = key == field::text(taint, "/key") || (key.is_empty() && exists);
            let wanted = field::text(toleration, "/effect");
            let same_value = exists || toleration["value"] == taint["value"];
            same_key && same_value && (wanted.is_empty() || wanted == effect)
        });
        hard && !tolerated
    })
}

fn selected(pod: &Value, node: &Value) -> bool {
    let labels = field::labels(node);
    let plain = field::strings(pod, "/spec/nodeSelector");
    if !plain.iter().all(|(key, value)| labels.get(key) == Some(value)) {
        return false;
    }
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                 /nodeSelectorTerms";
    let terms = field::list(pod, terms);
    terms.is_empty() || terms.iter().any(|term| field::selects(term, &labels))
}

fn shortage(pod: &Value, node: &Value, here: &[&Value]) -> Option<String> {
    let allocatable = field::strings(node, "/status/allocatable");
    let most: usize = allocatable.get("pods").and_then(|text| text.parse().ok()).unwrap_or(110);
    if here.len() >= most {
        return Some("Too many pods".into());
    }
    let wanted = requests(pod);
    for (resource, amount) in wanted {
        let Some(room) = allocatable.get(&resource).and_then(|text| amount_of(text)) else {
            continue;
        };
        let used: i128 = here.iter().map(|one| *requests(one).get(&resource).unwrap_or(&0)).sum();
        if used + amount > room {
            return Some(format!("Insufficient {resource}"));
        }
    }
    None
}

/// The requests of all containers together, in thousandths.
pub(in crate::builtin) fn requests(pod: &Value) -> BTreeMap<String, i128> {
    let mut sum = BTreeMap::new();
    for container in field::list(pod, "/spec/containers") {
        for (resource, text) in field::strings(container, "/resources/requests") {
            *sum.entry(resource).or_insert(0) += amount_of(&text).unwrap_or(0);
        }
    }
    sum
}

/// A quantity in thousandths.
fn amount_of(text: &str) -> Option<i128> {
    Quantity::parse(text).ok()?.scaled(-3)
}

/// Required anti-affinity of the pod against pods that run in the same topology domain.
fn repelled(pod: &Value, node: &Value, pods: &[Value], nodes: &[Value]) -> bool {
    let rules = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    field::list(pod, rules).iter().any(|rule| {
        let topology = field::text(rule, "/topologyKey");
        let domain = |node: &Value| field::labels(node).get(topology).cloned();
        let Some(mine) = domain(node) else { return false };
        pods.iter().any(|other| {
            let place = field::text(other, "/spec/nodeName");
            let host = nodes.iter().find(|node| field::name(node) == place);
            let same = host.and_then(domain).is_some_and(|theirs| theirs == mine);
            same && field::uid(other) != field::uid(pod)
                && field::namespace(other) == field::namespace(pod)
                && field::selects(&rule["labelSelector"], &field::labels(other))
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node() -> Value {
        json!({
            "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n", "disk": "ssd"}},
            "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "2"}},
        })
    }

    #[test]
    fn obstacles_by_table() {
        let tolerant = json!([{"key": "gpu", "operator": "Exists"}]);
        let cpu = |amount: &str| json!([{"resources": {"requests": {"cpu": amount}}}]);
        let cases = [
            (json!({"containers": []}), Some("node(s) had untolerated taint {gpu: }")),
            (json!({"tolerations": tolerant, "containers": cpu("500m")}), None),
            (json!({"tolerations": tolerant, "containers": cpu("2")}), Some("Insufficient cpu")),
            (
                json!({"tolerations": tolerant, "nodeSelector": {"disk": "hdd"}}),
                Some("node(s) didn't match Pod's node affinity/selector"),
            ),
            (json!({"tolerations": tolerant, "nodeSelector": {"disk": "ssd"}}), None),
        ];
        for (spec, expected) in cases {
            let pod = json!({"metadata": {"name": "p"}, "spec": spec});
            let found = obstacle(&pod, &node(), &[], &[node()]);
            assert_eq!(found.as_deref(), expected, "{pod}");
        }
    }
}
