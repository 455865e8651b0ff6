//! The StatefulSet: its size, how it rolls, and the volumes of its pods.
//!
//! Whatever a running set cannot change is taken from it as it is recorded.

use phased::child::Desired;
use phased::{Live, compare, digest};
use serde_json::{Value, json};

use super::blueprint::Blueprint;
use super::valid::Storage;
use super::{config, pod};

/// Annotation on the set: digest of the template that was last written, by which a field that is no
/// longer declared is noticed.
const TEMPLATE_ANNOTATION: &str = "steadfast.dev/template";

/// Whether writing the set would change the template that its pods are made from.
pub fn changes_template(blueprint: &Blueprint, live: &Live) -> bool {
    let template = pod::template(blueprint);
    let last = live.annotation(TEMPLATE_ANNOTATION);
    last.is_some_and(|last| last != digest::of(&template))
        || compare::difference(&template, &live.value["spec"]["template"]).is_some()
}

/// The servers' set.
pub fn stateful_set(blueprint: &Blueprint) -> Desired {
    let names = &blueprint.names;
    let mut spec = json!({
        "replicas": blueprint.count,
        "serviceName": names.headless_service().name,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": blueprint.partition},
        },
        "selector": {"matchLabels": blueprint.selector()},
        "template": pod::template(blueprint),
    });
    let claims = claim_templates(blueprint);
    if !claims.is_empty() {
        spec["volumeClaimTemplates"] = json!(claims);
    }
    let mut annotations = config::records(blueprint);
    annotations[TEMPLATE_ANNOTATION] = json!(digest::of(&spec["template"]));
    let body = json!({"metadata": {"annotations": annotations}, "spec": spec});
    blueprint.owned(names.stateful_set(), blueprint.valid.labels.clone(), body)
}

/// The claim templates: the spec's, or those of the running set where they say something else.
fn claim_templates(blueprint: &Blueprint) -> Vec<Value> {
    let wanted: Vec<Value> = wanted_claim(blueprint).into_iter().collect();
    match &blueprint.recorded.claim_templates {
        Some(recorded) if !says_the_same(&wanted, recorded) => recorded.clone(),
        Some(_) | None => wanted,
    }
}

/// Whether recorded templates are what is wanted with the server's defaults, so that declaring them
/// anew after the first write changes nothing.
fn says_the_same(wanted: &[Value], recorded: &[Value]) -> bool {
    let class = |claim: &Value| claim["spec"]["storageClassName"].clone();
    wanted.len() == recorded.len()
        && wanted.iter().zip(recorded).all(|(wanted, recorded)| {
            class(wanted) == class(recorded) && compare::difference(wanted, recorded).is_none()
        })
}

/// The claim template that the spec asks for.
pub fn wanted_claim(blueprint: &Blueprint) -> Option<Value> {
    let Storage::Persistent { claim, annotations, .. } = &blueprint.valid.storage else {
        return None;
    };
    let mut labels = blueprint.valid.labels.clone();
    labels.insert("app".to_owned(), blueprint.names.name.clone());
    labels.insert("uid".to_owned(), blueprint.uid.clone());
    let mut template = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "labels": labels},
        "spec": claim,
    });
    if !annotations.is_empty() {
        template["metadata"]["annotations"] = json!(annotations);
    }
    Some(template)
}
