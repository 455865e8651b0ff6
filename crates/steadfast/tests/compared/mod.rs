//! One play for two stages: what a Database goes through, and the form in which both stages tell what
//! came of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Name of the Database.
pub(crate) const DB: &str = "test-db";

/// One step of the play.
#[derive(Clone, Copy)]
pub(crate) struct Act {
    pub(crate) name: &'static str,
    pub(crate) what: What,
    /// Servers that are there and Ready at its end.
    pub(crate) servers: u32,
}

/// What a person does.
#[derive(Clone, Copy)]
pub(crate) enum What {
    /// Applies the manifest with this change to the spec before.
    Apply(fn(&mut Value)),
    /// Deletes a child.
    Lose { kind: &'static str, plural: &'static str, name: &'static str },
    /// Deletes the Database, whose policy is `Retain`, waits until it is gone, and applies it again.
    Recreate,
}

/// The play: each planned change that issue 3 names.
pub(crate) const PLAY: &[Act] = &[
    Act { name: "bring-up", what: What::Apply(|_| {}), servers: 1 },
    Act {
        name: "a parameter that needs a restart",
        what: What::Apply(|spec| spec["parameters"] = json!({"max_connections": "120"})),
        servers: 1,
    },
    Act {
        name: "a Service is lost",
        what: What::Lose { kind: "Service", plural: "services", name: DB },
        servers: 1,
    },
    Act { name: "1 to 3", what: What::Apply(|spec| spec["replicas"] = json!(3)), servers: 3 },
    Act { name: "3 to 1", what: What::Apply(|spec| spec["replicas"] = json!(1)), servers: 1 },
    Act {
        name: "growth",
        what: What::Apply(|spec| spec["storage"]["size"] = json!("2Gi")),
        servers: 1,
    },
    Act { name: "delete with Retain, and again", what: What::Recreate, servers: 1 },
];

/// What one act came to on one stage.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// Phases in order, without repetition.
    pub(crate) phases: Vec<String>,
    /// Writes of the operator by number, the status and Events left out: `patch services/test-db`.
    pub(crate) writes: BTreeMap<String, usize>,
    /// The children at the end, as far as they are declared.
    pub(crate) children: BTreeMap<String, Value>,
    /// Whether a server that runs failed its probe, as it does on a machine that is too busy to run
    /// the probe in time. The Database is not Ready for that moment.
    pub(crate) is_shaken: bool,
}

impl Outcome {
    /// The phases without the moments in which the Database was Ready, was not, and was again.
    fn steady(&self) -> Vec<&str> {
        let mut steady = vec!["Ready"];
        for phase in &self.phases {
            steady.push(phase);
            if steady.ends_with(&["Ready", "Deploying", "Verifying", "Ready"]) {
                steady.truncate(steady.len() - 3);
            }
        }
        steady.dedup();
        steady
    }
}

/// The children by `KIND/NAME`, without what each cluster gives of its own: uids, versions, times,
/// addresses, volumes, classes, passwords, and digests over the namespace's name.
pub(crate) fn told(objects: Vec<(&str, Value)>, namespace: &str) -> BTreeMap<String, Value> {
    let uids: Vec<String> = objects
        .iter()
        .filter_map(|(_, object)| Some(object["metadata"]["uid"].as_str()?.to_owned()))
        .collect();
    let mut all = BTreeMap::new();
    for (kind, object) in objects {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        all.insert(format!("{kind}/{name}"), plain(declared(kind, object), &uids, namespace));
    }
    all
}

/// The part of an object that somebody declares.
fn declared(kind: &str, object: Value) -> Value {
    let metadata = &object["metadata"];
    let annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
    let ours = annotations.into_iter().filter(|(key, _)| key.starts_with("steadfast.dev/"));
    let labels = &metadata["labels"];
    let mut told = json!({"annotations": ours.collect::<Map<_, _>>(), "labels": labels});
    match kind {
        "Secret" => {
            let keys = object["data"].as_object().into_iter().flat_map(Map::keys);
            told["keys"] = json!(keys.collect::<Vec<_>>());
        }
        "ConfigMap" => told["data"] = object["data"].clone(),
        "Pod" => {
            told["image"] = object["spec"]["containers"][0]["image"].clone();
            let labels = told["labels"].as_object_mut().expect("a pod has labels");
            labels.remove("controller-revision-hash");
        }
        _ => told["spec"] = object["spec"].clone(),
    }
    if let Some(spec) = told["spec"].as_object_mut() {
        for given in ["clusterIP", "clusterIPs", "volumeName", "storageClassName"] {
            spec.remove(given);
        }
    }
    told
}

/// The same with words in the place of what differs by chance.
fn plain(value: Value, uids: &[String], namespace: &str) -> Value {
    match value {
        Value::String(text) => {
            let text = uids.iter().fold(text, |text, uid| text.replace(uid, "UID"));
            let spoken = text.replace(&format!(".{namespace}.svc"), ".NAMESPACE.svc");
            Value::String(without_chance(&spoken))
        }
        Value::Array(items) => items.into_iter().map(|item| plain(item, uids, namespace)).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            members.map(|(key, value)| (key, plain(value, uids, namespace))).collect()
        }
        other => other,
    }
}

/// Digests, uids of objects that are gone, and system identifiers are runs of digits.
fn without_chance(text: &str) -> String {
    let is_run = |run: &str| {
        let digest = run.len() == 24 && run.chars().all(|c| c.is_ascii_hexdigit());
        let uid = run.len() == 36 && run.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let identifier = run.len() >= 18 && run.chars().all(|c| c.is_ascii_digit());
        digest || uid || identifier
    };
    let mut plain = String::new();
    let mut run = String::new();
    for letter in text.chars().chain(['\0']) {
        if letter.is_ascii_alphanumeric() || letter == '-' {
            run.push(letter);
            continue;
        }
        plain.push_str(if is_run(&run) { "CHANCE" } else { &run });
        run.clear();
        if letter != '\0' {
            plain.push(letter);
        }
    }
    plain
}

/// Counts the writes that tell decisions: the status is compared by its phases.
pub(crate) fn counted(writes: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for write in writes.filter(|write| !write.ends_with("/status")) {
        *counts.entry(write).or_default() += 1;
    }
    counts
}

/// What differs between two outcomes of an act, in words.
pub(crate) fn differences(simulated: &Outcome, real: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let same =
        simulated.phases == real.phases || real.is_shaken && simulated.steady() == real.steady();
    if !same {
        found.push(format!("phases {:?} here, {:?} there", simulated.phases, real.phases));
    }
    for (write, count) in &simulated.writes {
        let there = real.writes.get(write).copied().unwrap_or_default();
        if there != *count {
            found.push(format!("{write}: {count} times here, {there} times there"));
        }
    }
    for (write, count) in real.writes.iter().filter(|(w, _)| !simulated.writes.contains_key(*w)) {
        found.push(format!("{write}: not here, {count} times there"));
    }
    let names = simulated.children.keys().chain(real.children.keys());
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        let pair = (simulated.children.get(name), real.children.get(name));
        if let Some(difference) = differ(name, pair) {
            found.push(difference);
        }
    }
    found
}

fn differ(at: &str, pair: (Option<&Value>, Option<&Value>)) -> Option<String> {
    match pair {
        (Some(Value::Object(here)), Some(Value::Object(there))) => {
            let keys = here.keys().chain(there.keys());
            keys.into_iter()
                .find_map(|key| differ(&format!("{at}.{key}"), (here.get(key), there.get(key))))
        }
        (Some(Value::Array(here)), Some(Value::Array(there))) if here.len() == there.len() => {
            let mut pairs = here.iter().zip(there).enumerate();
            pairs.find_map(|(n, (h, t))| differ(&format!("{at}[{n}]"), (Some(h), Some(t))))
        }
        (here, there) if here == there => None,
        (here, there) => {
            let shown = |side: Option<&Value>| side.map_or("nothing".to_owned(), Value::to_string);
            Some(format!("{at}: {} here, {} there", shown(here), shown(there)))
        }
    }
}
