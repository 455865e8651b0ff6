//! Discovery: which groups, versions and kinds there are, aggregated and in the old form.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::kind::{Kind, Kinds, priority};
use crate::reply::Reply;
use crate::status::Failure;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The same in the order in which the server lists them for custom kinds.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const OBJECT_VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Groups with their versions, preferred first, and the kinds of each.
type Groups = BTreeMap<String, Vec<(String, Vec<Arc<Kind>>)>>;

fn groups(kinds: &Kinds) -> Groups {
    let mut groups: BTreeMap<String, BTreeMap<String, Vec<Arc<Kind>>>> = BTreeMap::new();
    for kind in kinds.all() {
        let versions = groups.entry(kind.group.clone()).or_default();
        versions.entry(kind.version.clone()).or_default().push(kind.clone());
    }
    groups
        .into_iter()
        .map(|(group, versions)| {
            let mut versions: Vec<_> = versions.into_iter().collect();
            versions.sort_by_key(|(version, _)| priority(version));
            (group, versions)
        })
        .collect()
}

/// Answers a discovery path.
pub(crate) fn serve(kinds: &Kinds, path: &str, accept: &str) -> Result<Reply, Failure> {
    let groups = groups(kinds);
    let aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2;")
        || accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2,");
    let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
    let value = match steps.as_slice() {
        ["api"] if aggregated => return Ok(aggregate(&groups, |group| group.is_empty())),
        ["apis"] if aggregated => return Ok(aggregate(&groups, |group| !group.is_empty())),
        ["api"] => json!({
            "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [],
        }),
        ["apis"] => {
            let named = groups.iter().filter(|(group, _)| !group.is_empty());
            let list: Vec<Value> =
                named.map(|(group, versions)| group_of(group, versions)).collect();
            json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": list })
        }
        ["apis", group] => {
            let versions = groups.get(*group).ok_or_else(Failure::no_such_resource)?;
            let mut value = group_of(group, versions);
            value["kind"] = json!("APIGroup");
            value["apiVersion"] = json!("v1");
            value
        }
        ["api", version] => resources(&groups, "", version)?,
        ["apis", group, version] => resources(&groups, group, version)?,
        [] => json!({ "paths": ["/api", "/api/v1", "/apis", "/openapi/v3", "/version"] }),
        _ => return Err(Failure::no_such_resource()),
    };
    Ok(Reply::ok(value))
}

fn group_of(group: &str, versions: &[(String, Vec<Arc<Kind>>)]) -> Value {
    let entry =
        |version: &str| json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    let all: Vec<Value> = versions.iter().map(|(version, _)| entry(version)).collect();
    json!({ "name": group, "preferredVersion": all.first(), "versions": all })
}

fn resources(groups: &Groups, group: &str, version: &str) -> Result<Value, Failure> {
    let versions = groups.get(group).ok_or_else(Failure::no_such_resource)?;
    let (_, kinds) = versions
        .iter()
        .find(|(known, _)| known == version)
        .ok_or_else(Failure::no_such_resource)?;
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut list: Vec<Value> = kinds.iter().flat_map(|kind| plain(kind)).collect();
    if kinds.iter().all(|kind| !kind.custom) {
        list.sort_by_key(|entry| entry["name"].as_str().map(str::to_owned));
    }
    Ok(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": list,
    }))
}

fn plain(kind: &Kind) -> Vec<Value> {
    let mut main = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": if kind.custom { CUSTOM_VERBS } else { OBJECT_VERBS },
    });
    decorate(&mut main, kind);
    main["storageVersionHash"] = json!(storage_hash(kind));
    let mut all = vec![main];
    for (name, verbs, group, version, answer) in subresources(kind) {
        let mut entry = json!({
            "name": format!("{}/{name}", kind.plural), "singularName": "",
            "namespaced": kind.namespaced, "kind": answer, "verbs": verbs,
        });
        if group != kind.group {
            entry["group"] = json!(group);
            entry["version"] = json!(version);
        }
        all.push(entry);
    }
    all
}

/// By this clients see that a kind is stored in another version than before.
fn storage_hash(kind: &Kind) -> String {
    let name = format!("{}/{}/{}", kind.storage_group(), kind.version, kind.kind);
    let digest = Sha256::digest(name.as_bytes());
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

fn decorate(entry: &mut Value, kind: &Kind) {
    if !kind.short_names.is_empty() {
        entry["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        entry["categories"] = json!(kind.categories);
    }
}

type Subresource = (&'static str, Vec<&'static str>, String, String, String);

/// Name, verbs, and group, version and kind of the answer of each subresource.
fn subresources(kind: &Kind) -> Vec<Subresource> {
    let verbs = || vec!["get", "patch", "update"];
    let mut all = Vec::new();
    let own = || (kind.group.clone(), kind.version.clone(), kind.kind.clone());
    if kind.status {
        let (group, version, answer) = own();
        all.push(("status", verbs(), group, version, answer));
    }
    if kind.scale.is_some() {
        all.push(("scale", verbs(), "autoscaling".into(), "v1".into(), "Scale".into()));
    }
    if kind.is("", "Pod") {
        let core = |kind: &str| (String::new(), "v1".to_owned(), kind.to_owned());
        let (group, version, answer) = core("Binding");
        all.push(("binding", vec!["create"], group, version, answer));
        all.push(("eviction", vec!["create"], "policy".into(), "v1".into(), "Eviction".into()));
        let (group, version, answer) = core("PodPortForwardOptions");
        all.push(("portforward", vec!["create", "get"], group, version, answer));
    }
    if kind.is("", "Namespace") {
        let (group, version, answer) = own();
        all.push(("finalize", vec!["update"], group, version, answer));
    }
    all
}

fn aggregate(groups: &Groups, wanted: impl Fn(&str) -> bool) -> Reply {
    let items: Vec<Value> = groups
        .iter()
        .filter(|(group, _)| wanted(group))
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|(version, kinds)| {
                    let resources: Vec<Value> = kinds.iter().map(|kind| discovered(kind)).collect();
                    json!({ "version": version, "freshness": "Current", "resources": resources })
                })
                .collect();
            json!({ "metadata": { "name": group, "creationTimestamp": null }, "versions": versions })
        })
        .collect();
    let value = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {}, "items": items,
    });
    Reply::Typed { value, content_type: AGGREGATED.to_owned() }
}

fn discovered(kind: &Kind) -> Value {
    let mut entry = json!({
        "resource": kind.plural, "singularResource": kind.singular,
        "responseKind": { "group": kind.group, "version": kind.version, "kind": kind.kind },
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "verbs": if kind.custom { CUSTOM_VERBS } else { OBJECT_VERBS },
    });
    decorate(&mut entry, kind);
    let parts: Vec<Value> = subresources(kind)
        .into_iter()
        .map(|(name, verbs, group, version, answer)| {
            json!({
                "subresource": name, "verbs": verbs,
                "responseKind": { "group": group, "version": version, "kind": answer },
            })
        })
        .collect();
    if !parts.is_empty() {
        entry["subresources"] = json!(parts);
    }
    entry
}
