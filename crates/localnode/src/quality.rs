//! The quality-of-service class of a pod. Pure. Source: Kubernetes documentation, "Pod Quality of
//! Service Classes".

use crate::quantity::thousandths;
use k8s_openapi::api::core::v1::{Container, Pod};

/// `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn class(pod: &Pod) -> &'static str {
    let Some(spec) = &pod.spec else { return "BestEffort" };
    let containers: Vec<&Container> =
        spec.init_containers.iter().flatten().chain(&spec.containers).collect();
    let amount = |container: &Container, list: &str, resource: &str| {
        let resources = container.resources.as_ref()?;
        let list =
            if list == "limits" { resources.limits.as_ref() } else { resources.requests.as_ref() };
        thousandths(&list?.get(resource)?.0).filter(|amount| *amount > 0)
    };
    let any = |container: &&Container| {
        ["cpu", "memory"].iter().any(|resource| {
            amount(container, "limits", resource)
                .or_else(|| amount(container, "requests", resource))
                .is_some()
        })
    };
    let full = |container: &&Container| {
        ["cpu", "memory"].iter().all(|resource| {
            let limit = amount(container, "limits", resource);
            limit.is_some()
                && amount(container, "requests", resource).is_none_or(|r| Some(r) == limit)
        })
    };
    if !containers.iter().any(any) {
        "BestEffort"
    } else if containers.iter().all(full) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_class_follows_requests_and_limits() {
        for (resources, expected) in [
            (json!({}), "BestEffort"),
            (json!({"requests": {"cpu": "1"}}), "Burstable"),
            (json!({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed"),
            (
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m"}}),
                "Guaranteed",
            ),
            (
                json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}),
                "Burstable",
            ),
        ] {
            let pod = serde_json::from_value(
                json!({"spec": {"containers": [{"name": "m", "resources": resources}]}}),
            );
            assert_eq!(class(&pod.expect("a pod")), expected);
        }
    }
}
