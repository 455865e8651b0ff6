//! Which node a pod goes to. Pure.

use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use kube::ResourceExt;

/// The node for a pod, or the scheduler's explanation why there is none.
pub(crate) fn choose<'a>(
    pod: &Pod,
    nodes: impl Iterator<Item = &'a Node>,
) -> Result<String, String> {
    let Some(spec) = &pod.spec else { return Err("the pod has no spec".to_owned()) };
    let pinned = pinned_node(spec);
    let mut seen = 0;
    for node in nodes {
        seen += 1;
        let suits = match &pinned {
            // A DaemonSet's pod goes to its node even when that takes no others.
            Some(name) => node.name_any() == *name,
            None => !closed(node) && selected(spec, node),
        };
        if suits {
            return Ok(node.name_any());
        }
    }
    Err(format!(
        "0/{seen} nodes are available: {seen} node(s) didn't match Pod's node affinity/selector."
    ))
}

/// The node that a DaemonSet's pod is pinned to by a required `matchFields` on the node's name.
fn pinned_node(spec: &PodSpec) -> Option<String> {
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    required
        .node_selector_terms
        .iter()
        .flat_map(|term| term.match_fields.iter().flatten())
        .find(|field| field.key == "metadata.name" && field.operator == "In")
        .and_then(|field| field.values.as_ref()?.first().cloned())
}

fn closed(node: &Node) -> bool {
    node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
}

fn selected(spec: &PodSpec, node: &Node) -> bool {
    spec.node_selector.iter().flatten().all(|(key, value)| node.labels().get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(spec: Value, expected: Result<&str, usize>) {
        let pod: Pod = serde_json::from_value(json!({"spec": spec})).expect("a pod");
        let nodes: Vec<Node> = serde_json::from_value(json!([
            {"metadata": {"name": "a"}, "spec": {"unschedulable": true}},
            {"metadata": {"name": "b"}},
            {"metadata": {"name": "c", "labels": {"disk": "pmem"}}},
        ]))
        .expect("nodes");
        match (choose(&pod, nodes.iter()), expected) {
            (Ok(name), Ok(expected)) => assert_eq!(name, expected),
            (Err(why), Err(count)) => {
                assert!(why.starts_with(&format!("0/{count} nodes")), "{why}")
            }
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_pod_goes_where_it_may() {
        let containers = json!([]);
        check(json!({"containers": containers}), Ok("b"));
        check(json!({"containers": containers, "nodeSelector": {"disk": "pmem"}}), Ok("c"));
        check(json!({"containers": containers, "nodeSelector": {"disk": "tape"}}), Err(3));
        let pin = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]}}});
        check(json!({"containers": containers, "affinity": pin}), Ok("a"));
    }
}
