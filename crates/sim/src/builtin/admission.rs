//! Admission that needs the store: quota, service addresses, default classes and accounts, the
//! first status of objects, protection finalizers.
//!
//! Must not run for dry-run what would reserve something.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::door::{Door, PRIORITY_CLASSES, SERVICE_ACCOUNTS, SERVICES, STORAGE_CLASSES};
use super::{claims, field, quota};
use crate::quantity::Quantity;
use crate::{Admission, Core, Failure, Kind, Operation, Review};

/// All built-in hooks, in the order in which they run.
pub(crate) fn hooks() -> Vec<Admission> {
    vec![Arc::new(mutate), Arc::new(check)]
}

fn mutate(
    core: &mut Core,
    review: &Review,
    kind: &Kind,
    object: &mut Value,
) -> Result<(), Failure> {
    if kind.custom || review.subresource.is_some() || review.operation == Operation::Delete {
        return Ok(());
    }
    let create = review.operation == Operation::Create;
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") if create => pod(core, kind, object)?,
        ("", "persistentvolumeclaims") if create => claim(core, object),
        ("", "persistentvolumes") if create => {
            field::set_finalizer(object, "kubernetes.io/pv-protection", true);
            if object["status"]["phase"].is_null() {
                object["status"] = json!({ "phase": "Pending" });
            }
        }
        ("", "services") => service(core, review, kind, object)?,
        ("apps", "statefulsets") if create && object["status"].is_null() => {
            object["status"] = json!({ "replicas": 0, "availableReplicas": 0 });
        }
        _ => {}
    }
    Ok(())
}

fn check(core: &mut Core, review: &Review, kind: &Kind, object: &mut Value) -> Result<(), Failure> {
    if review.subresource.is_some() {
        return Ok(());
    }
    let claim = kind.is("", "PersistentVolumeClaim");
    match review.operation {
        Operation::Create if kind.namespaced => quota::admit(core, kind, object),
        Operation::Update if claim => growth(core, review, kind, object),
        _ => Ok(()),
    }
}

fn pod(core: &mut Core, kind: &Kind, object: &mut Value) -> Result<(), Failure> {
    object["status"] = json!({ "phase": "Pending", "qosClass": quality(object) });
    if field::text(object, "/spec/serviceAccountName").is_empty() {
        object["spec"]["serviceAccountName"] = json!("default");
    }
    object["spec"]["serviceAccount"] = object["spec"]["serviceAccountName"].clone();
    account(core, kind, object)?;
    let mut tolerations = field::list(object, "/spec/tolerations").to_vec();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let covered = tolerations.iter().any(|one| {
            let held = field::text(one, "/key");
            (held == key || held.is_empty())
                && matches!(field::text(one, "/effect"), "" | "NoExecute")
        });
        if !covered {
            tolerations.push(json!({
                "key": key,
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }));
        }
    }
    object["spec"]["tolerations"] = Value::Array(tolerations);
    priority(core, kind, object)?;
    token(core, object);
    Ok(())
}

/// The priority of the pod's class; a pod without one has priority 0.
fn priority(core: &Core, kind: &Kind, object: &mut Value) -> Result<(), Failure> {
    let name = field::text(object, "/spec/priorityClassName").to_owned();
    let usual = json!("PreemptLowerPriority");
    let (value, policy) = match name.as_str() {
        "" => (json!(0), usual),
        // Every cluster has these two.
        "system-cluster-critical" => (json!(2_000_000_000), usual),
        "system-node-critical" => (json!(2_000_001_000), usual),
        name => {
            let Some(class) = core.store.get(&super::door::key(PRIORITY_CLASSES, "", name)) else {
                let text = format!("no PriorityClass with name {name} was found");
                return Err(Failure::forbidden(kind, field::name(object), &text));
            };
            let policy = class.get("preemptionPolicy").cloned().unwrap_or(usual);
            (class["value"].clone(), policy)
        }
    };
    for (member, value) in [("priority", value), ("preemptionPolicy", policy)] {
        if object["spec"][member].is_null() {
            object["spec"][member] = value;
        }
    }
    Ok(())
}

/// A pod's ServiceAccount must exist.
fn account(core: &Core, kind: &Kind, object: &Value) -> Result<(), Failure> {
    let (namespace, name) =
        (field::namespace(object), field::text(object, "/spec/serviceAccountName"));
    if core.store.get(&super::door::key(SERVICE_ACCOUNTS, namespace, name)).is_some() {
        return Ok(());
    }
    let text = format!(
        "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
    );
    Err(Failure::forbidden(kind, field::name(object), &text))
}

/// Mounts the account's token, as the ServiceAccount admission does.
fn token(core: &mut Core, object: &mut Value) {
    let off = |flag: &Value| flag == &Value::Bool(false);
    let account = super::door::key(
        SERVICE_ACCOUNTS,
        field::namespace(object),
        field::text(object, "/spec/serviceAccountName"),
    );
    let account_off =
        core.store.get(&account).is_some_and(|one| off(&one["automountServiceAccountToken"]));
    let here = &object["spec"]["automountServiceAccountToken"];
    if off(here) || (here.is_null() && account_off) {
        return;
    }
    let name = format!("kube-api-access-{}", core.seed.suffix(5));
    let mut volumes = field::list(object, "/spec/volumes").to_vec();
    volumes.push(json!({
        "name": name,
        "projected": {
            "defaultMode": 420,
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                { "configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{ "key": "ca.crt", "path": "ca.crt" }],
                } },
                { "downwardAPI": { "items": [{
                    "path": "namespace",
                    "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" },
                }] } },
            ],
        },
    }));
    object["spec"]["volumes"] = Value::Array(volumes);
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    for list in ["containers", "initContainers"] {
        let Some(containers) = object["spec"].get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers {
            let mut mounts = field::list(container, "/volumeMounts").to_vec();
            mounts.push(json!({ "mountPath": path, "name": name, "readOnly": true }));
            container["volumeMounts"] = Value::Array(mounts);
        }
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`.
fn quality(pod: &Value) -> &'static str {
    let mut any = false;
    let mut all = true;
    for list in ["/spec/containers", "/spec/initContainers"] {
        for container in field::list(pod, list) {
            let requests = field::strings(container, "/resources/requests");
            let limits = field::strings(container, "/resources/limits");
            any |= !requests.is_empty() || !limits.is_empty();
            all &= ["cpu", "memory"].iter().all(|name| {
                let limit = limits.get(*name);
                limit.is_some() && requests.get(*name).is_none_or(|request| Some(request) == limit)
            });
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn claim(core: &mut Core, object: &mut Value) {
    field::set_finalizer(object, "kubernetes.io/pvc-protection", true);
    object["status"] = json!({ "phase": "Pending" });
    if object["spec"]["storageClassName"].is_null() {
        let door = Door::component(core, "", "");
        if let Some(class) = claims::default_class(&door) {
            object["spec"]["storageClassName"] = json!(field::name(&class));
        }
    }
}

/// Growth needs a class that allows it; shrinking is refused by validation.
fn growth(core: &mut Core, review: &Review, kind: &Kind, object: &Value) -> Result<(), Failure> {
    let Some(old) = &review.old else { return Ok(()) };
    let size = |claim: &Value| {
        Quantity::parse(field::text(claim, "/spec/resources/requests/storage"))
            .ok()
            .and_then(|quantity| quantity.scaled(0))
    };
    if size(object) <= size(old) || field::text(old, "/status/phase") != "Bound" {
        return Ok(());
    }
    let name = field::text(old, "/spec/storageClassName");
    let class = core.store.get(&super::door::key(STORAGE_CLASSES, "", name));
    if class.is_some_and(|class| field::flag(class, "/allowVolumeExpansion")) {
        return Ok(());
    }
    let text = "only dynamically provisioned pvc can be resized and the storageclass that \
                provisions the pvc must support resize";
    Err(Failure::forbidden(kind, field::name(object), text))
}

/// Cluster addresses: kept over updates, allocated from 10.96.0.0/16 otherwise.
fn service(
    core: &mut Core,
    review: &Review,
    kind: &Kind,
    object: &mut Value,
) -> Result<(), Failure> {
    if let Some(old) = review.old.as_deref() {
        drop_of_old_type(old, object);
    }
    if field::text(object, "/spec/type") == "ExternalName" {
        return Ok(());
    }
    let old = review.old.as_deref().map(|old| field::text(old, "/spec/clusterIP").to_owned());
    if let Some(old) = old.filter(|old| !old.is_empty())
        && field::text(object, "/spec/clusterIP").is_empty()
    {
        object["spec"]["clusterIP"] = json!(old);
    }
    let wanted = field::text(object, "/spec/clusterIP").to_owned();
    if wanted.is_empty() {
        object["spec"]["clusterIP"] = json!(free_address(core));
    } else if review.operation == Operation::Create && wanted != "None" {
        allocate(core, kind, object, &wanted)?;
    }
    object["spec"]["clusterIPs"] = json!([object["spec"]["clusterIP"]]);
    if object["status"].is_null() {
        object["status"] = json!({ "loadBalancer": {} });
    }
    node_ports(core, review, object);
    Ok(())
}

/// Takes out what the old type needed and the new one does not have, unless the request changed it.
fn drop_of_old_type(old: &Value, object: &mut Value) {
    let (was, is) = (field::text(old, "/spec/type"), field::text(object, "/spec/type").to_owned());
    let outside = |kind: &str| matches!(kind, "NodePort" | "LoadBalancer");
    let mut lost: Vec<&str> = Vec::new();
    if was != "ExternalName" && is == "ExternalName" {
        lost.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"]);
        lost.push("internalTrafficPolicy");
    }
    if outside(was) && !outside(&is) {
        lost.push("externalTrafficPolicy");
        let same = |port: &Value| {
            let ports = field::list(old, "/spec/ports").iter();
            ports.filter(|one| one["port"] == port["port"]).any(|one| {
                one["nodePort"] == port["nodePort"] && one["protocol"] == port["protocol"]
            })
        };
        if let Some(Value::Array(ports)) = object.pointer_mut("/spec/ports") {
            for port in ports.iter_mut().filter(|port| same(port)) {
                if let Some(port) = port.as_object_mut() {
                    port.remove("nodePort");
                }
            }
        }
    }
    if was == "LoadBalancer" && is != "LoadBalancer" {
        lost.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    for member in lost {
        if old["spec"].get(member) == object["spec"].get(member) {
            field::remove(object, "/spec", member);
        }
    }
}

/// An address asked for by hand must be of the range, and free.
fn allocate(core: &Core, kind: &Kind, object: &Value, wanted: &str) -> Result<(), Failure> {
    let mut others = core.store.list(SERVICES.group, SERVICES.plural, None);
    let why = if !wanted.starts_with("10.96.") {
        format!(
            "the provided IP ({wanted}) is not in the valid range. The range of the valid IPs is \
             10.96.0.0/16"
        )
    } else if others.any(|(_, one)| field::text(one, "/spec/clusterIP") == wanted) {
        "provided IP is already allocated".to_owned()
    } else {
        return Ok(());
    };
    let cause = crate::Cause::new(
        "FieldValueInvalid",
        "spec.clusterIPs",
        format!("Invalid value: [\"{wanted}\"]: failed to allocate IP {wanted}: {why}"),
    );
    Err(Failure::invalid(kind, field::name(object), vec![cause]))
}

/// Ports of every node: kept over updates, drawn from 30000-32767 otherwise.
fn node_ports(core: &mut Core, review: &Review, object: &mut Value) {
    if !matches!(field::text(object, "/spec/type"), "NodePort" | "LoadBalancer") {
        return;
    }
    let mut taken: BTreeSet<u64> = core
        .store
        .list(SERVICES.group, SERVICES.plural, None)
        .flat_map(|(_, service)| field::list(service, "/spec/ports"))
        .filter_map(|port| port["nodePort"].as_u64())
        .collect();
    let old = review.old.as_deref().map(|old| field::list(old, "/spec/ports")).unwrap_or_default();
    let Some(ports) = object["spec"].get_mut("ports").and_then(Value::as_array_mut) else { return };
    for port in ports {
        if port["nodePort"].as_u64().is_some_and(|number| number > 0) {
            continue;
        }
        let same =
            |one: &&Value| one["port"] == port["port"] && one["protocol"] == port["protocol"];
        let kept = old.iter().find(same).and_then(|one| one["nodePort"].as_u64());
        let number = kept.unwrap_or_else(|| {
            let mut number = 30_000 + core.seed.below(2768);
            while taken.contains(&number) {
                number = 30_000 + (number - 29_999) % 2768;
            }
            number
        });
        taken.insert(number);
        port["nodePort"] = json!(number);
    }
}

fn free_address(core: &mut Core) -> String {
    let taken: BTreeSet<String> = core
        .store
        .list(SERVICES.group, SERVICES.plural, None)
        .map(|(_, service)| field::text(service, "/spec/clusterIP").to_owned())
        .collect();
    loop {
        // The low part of the range is for addresses that are asked for by hand.
        let number = 256 + core.seed.below(65_000 - 256);
        let address = format!("10.96.{}.{}", number >> 8, number & 0xff);
        if !taken.contains(&address) {
            return address;
        }
    }
}
