//! Edits of a Database, drawn from every leaf of its schema.
//!
//! Values are such that the world does not stand in the way: images exist, and there is room. That is
//! what a forecast supposes, and says. Whether the server or the operator takes them is another matter.

use fastrand::Rng;
use serde_json::{Value, json};

/// A leaf, and values to set it to.
type Sample = (&'static str, Vec<Value>);

/// Leaves with values to set. A list of objects is one leaf: its items are set as a whole.
fn samples() -> Vec<Sample> {
    let parts = [of_the_server(), of_its_pods(), of_the_rest()];
    parts.concat()
}

fn of_the_server() -> Vec<Sample> {
    vec![
        (
            "image",
            vec![
                json!("postgres:14"),
                json!("postgres:14.19"),
                json!("postgres:14.20-bookworm"),
                json!("registry.example.com/library/postgres:14.18"),
                json!("postgres:15"),
                json!("post gres"),
                json!(""),
            ],
        ),
        ("replicas", vec![json!(1), json!(2), json!(3), json!(0), json!(99), json!("one")]),
        ("databaseName", vec![json!("mydb"), json!("other"), json!("pg_own")]),
        ("username", vec![json!("admin"), json!("someone"), json!("postgres")]),
        (
            "storage.size",
            // Growth has a test of its own: the server lets nobody take it back.
            vec![json!("10Gi"), json!("10240Mi"), json!("5Gi"), json!("much")],
        ),
        ("storage.storageClass", vec![json!("standard"), json!("fast"), json!("Not-a-name")]),
        (
            "parameters",
            vec![
                json!({"max_connections": "50"}),
                json!({"work_mem": "8MB"}),
                json!({"max_connections": "80", "work_mem": "16MB"}),
                json!({"log_min_duration_statement": "250"}),
                json!({"port": "1234"}),
                json!({}),
            ],
        ),
        (
            "resources.requests",
            vec![
                json!({"cpu": "100m"}),
                json!({"cpu": "0.2", "memory": "128Mi"}),
                json!({"cpu": "1000m", "memory": "256Mi"}),
                json!({"memory": "plenty"}),
            ],
        ),
        (
            "resources.limits",
            vec![
                json!({"memory": "512Mi"}),
                json!({"cpu": 2, "memory": "1Gi"}),
                json!({"cpu": "1500m", "memory": "768Mi"}),
            ],
        ),
    ]
}

fn of_its_pods() -> Vec<Sample> {
    vec![
        ("podTemplate.labels", vec![json!({"team": "blue"}), json!({"team": "red", "tier": "1"})]),
        ("podTemplate.annotations", vec![json!({"note": "a"}), json!({"note": "b", "more": "c"})]),
        ("podTemplate.nodeSelector", vec![json!({"kubernetes.io/os": "linux"})]),
        (
            "podTemplate.affinity",
            vec![
                json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": {"matchExpressions": [
                        {"key": "disk", "operator": "In", "values": ["ssd"]}]}}]}}),
                json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 5, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"team": "blue"}}}}]}}),
            ],
        ),
        (
            "podTemplate.tolerations",
            vec![
                json!([{"key": "dedicated", "operator": "Exists"}]),
                json!([{"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"},
                    {"key": "other", "operator": "Exists", "effect": "NoExecute"}]),
            ],
        ),
        (
            "podTemplate.topologySpreadConstraints",
            vec![json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app.kubernetes.io/instance": "test-db"}}}])],
        ),
        ("podTemplate.priorityClassName", vec![json!("system-cluster-critical")]),
        (
            "podTemplate.imagePullSecrets",
            vec![json!([{"name": "pull"}]), json!([{"name": "pull"}, {"name": "more"}])],
        ),
        (
            "podTemplate.securityContext",
            vec![json!({"fsGroupChangePolicy": "Always"}), json!({"supplementalGroups": [1000]})],
        ),
        ("podTemplate.serviceAccountName", vec![json!("default"), json!("apps")]),
    ]
}

fn of_the_rest() -> Vec<Sample> {
    vec![
        (
            "externalDependencies",
            vec![
                json!([{"name": "other", "address": "other.default.svc:5432"}]),
                json!([{"name": "other", "address": "other.default.svc:5432", "timeoutSeconds": 9}]),
                json!([{"name": "far", "url": "https://example.com/health"}]),
                json!([{"name": "both", "address": "a.svc:1", "url": "http://a.svc"}]),
            ],
        ),
        ("deletionPolicy", vec![json!("Retain"), json!("Delete"), json!("Perhaps")]),
        ("progressDeadlineSeconds", vec![json!(600), json!(900), json!(5)]),
    ]
}

/// Leaves of the schema that no sample covers.
pub(crate) fn leaves_without_samples() -> Vec<String> {
    let rows = operators::catalog::rows();
    let database = rows.iter().find(|row| row.kind.kind == "Database").expect("it is run");
    let definition = steadfast::kinds::definition(database);
    let schema = foresight::schema::of(&definition, database.kind.version);
    let mut leaves = Vec::new();
    gather(&schema["properties"]["spec"], "", &mut leaves);
    assert!(leaves.len() > 15, "the schema was read: {leaves:?}");
    let known = samples();
    let covered = |leaf: &str| {
        known.iter().any(|(path, _)| leaf == *path || leaf.starts_with(&format!("{path}[]")))
    };
    leaves.into_iter().filter(|leaf| !covered(leaf)).collect()
}

fn gather(schema: &Value, path: &str, leaves: &mut Vec<String>) {
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match (schema["properties"].as_object(), &schema["items"]) {
        (Some(fields), _) => {
            fields.iter().for_each(|(name, node)| gather(node, &below(name), leaves))
        }
        (None, items) if items["properties"].is_object() => {
            gather(items, &format!("{path}[]"), leaves);
        }
        _ => leaves.push(path.to_owned()),
    }
}

/// An edit: the manifest after it, and what was done, in words.
pub(crate) fn edit(before: &Value, number: usize, chance: &mut Rng) -> (Value, String) {
    let samples = samples();
    for _ in 0..50 {
        let mut after = before.clone();
        let mut told = Vec::new();
        // The first leaf goes round, so that every leaf has its turn; the others are chance.
        let others = [0, 0, 0, 1, 1, 2][chance.usize(0..6)];
        let turns = (0..others).map(|_| chance.usize(0..samples.len())).collect::<Vec<_>>();
        for place in std::iter::once(number % samples.len()).chain(turns) {
            let (path, values) = &samples[place];
            let remove = chance.u8(0..4) == 0 && !path.starts_with("storage.size");
            let value =
                if remove { Value::Null } else { values[chance.usize(0..values.len())].clone() };
            told.push(format!("{path} = {value}"));
            set(&mut after["spec"], path, value);
        }
        if after != *before {
            return (after, told.join("; "));
        }
    }
    (before.clone(), "nothing".to_owned())
}

/// Sets a field; null takes it out, and what it leaves empty.
fn set(node: &mut Value, path: &str, value: Value) {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let Some(fields) = node.as_object_mut() else { return };
    if !rest.is_empty() {
        let below = fields.entry(name).or_insert_with(|| json!({}));
        set(below, rest, value);
        if below.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.remove(name);
        }
    } else if value.is_null() {
        fields.remove(name);
    } else {
        fields.insert(name.to_owned(), value);
    }
}
