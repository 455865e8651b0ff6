//! From the raw spec to a checked one: parse once, and nothing later sees raw text.
//!
//! Everything that the CRD's schema and rules refuse is refused here too, since a resource may
//! have been stored under a laxer definition (fault catalogue PG-46). Each refusal names the
//! field's path and the way out. Must not look at children; [`super::held`] compares with them.

use std::collections::BTreeMap;

use phased::fact::Reach;
use phased::name;
use phased::quantity::Quantity;

use super::api::{DatabaseSpec, PodOptions, Resources};
use super::dependencies::{self, Dependency};
use super::{image, parameters};
pub use crate::parts::refusal::{Refusal, sentence};

/// Most servers of one Database (the schema's own bound).
pub const MOST_REPLICAS: u32 = 16;

/// A spec that can be carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Valid {
    /// Image of the server.
    pub image: String,
    /// Servers wanted.
    pub replicas: u32,
    /// Name of the database.
    pub database: String,
    /// Name of the role that owns it.
    pub username: String,
    /// Size of the volume, as written.
    pub size: String,
    /// Storage class, when one is named.
    pub storage_class: Option<String>,
    /// Settings.
    pub parameters: BTreeMap<String, String>,
    /// Compute resources.
    pub resources: Resources,
    /// Options of the pod.
    pub pod: PodOptions,
    /// What must answer first.
    pub dependencies: Vec<Dependency>,
    /// Patience with rollouts, in seconds.
    pub progress_deadline_seconds: i64,
}

/// Longest name of a Database, in characters.
const NAME_LIMIT: usize = 52;
/// Longest identifier that PostgreSQL keeps, in bytes.
const IDENTIFIER_LIMIT: usize = 63;

/// Checks everything that can be checked without looking at the cluster.
///
/// # Errors
/// All refusals at once, in the order of the fields.
pub fn check(name: &str, spec: &DatabaseSpec) -> Result<Valid, Vec<Refusal>> {
    let mut refusals = Vec::new();
    refusals.extend(name_refusal(name).map(|m| Refusal::new("metadata.name", m)));
    refusals.extend(image::refusal(&spec.image).map(|m| Refusal::new("spec.image", m)));
    refusals.extend(supported(&spec.image).map(|m| Refusal::new("spec.image", m)));
    if !u32::try_from(spec.replicas).is_ok_and(|n| (1..=MOST_REPLICAS).contains(&n)) {
        let message = format!("must lie between 1 and {MOST_REPLICAS}; set it to 1");
        refusals.push(Refusal::new("spec.replicas", message));
    }
    let database = identifier_refusal(&spec.database_name, &["postgres", "template0", "template1"]);
    refusals.extend(database.map(|m| Refusal::new("spec.databaseName", m)));
    let own = ["postgres", "public", "none", super::secrets::REPLICATION_ROLE];
    let username = identifier_refusal(&spec.username, &own);
    refusals.extend(username.map(|m| Refusal::new("spec.username", m)));
    refusals.extend(size_refusal(&spec.storage.size).map(|m| Refusal::new("spec.storage.size", m)));
    if let Some(class) = &spec.storage.storage_class {
        // The name becomes part of a request's path.
        let refused = name::dns_subdomain(class).err();
        refusals.extend(refused.map(|e| Refusal::new("spec.storage.storageClass", e.to_string())));
    }
    check_pod(&spec.pod_template, &mut refusals);
    for (name, value) in &spec.parameters {
        let message = parameters::refusal(name, value);
        refusals.extend(message.map(|m| Refusal::new(format!("spec.parameters[{name:?}]"), m)));
    }
    let servers = u32::try_from(spec.replicas).unwrap_or(1);
    for (name, message) in parameters::unfit(&spec.parameters, servers) {
        refusals.push(Refusal::new(format!("spec.parameters[{name:?}]"), message));
    }
    if !(10..=86_400).contains(&spec.progress_deadline_seconds) {
        let message = "must lie between 10 and 86400 seconds";
        refusals.push(Refusal::new("spec.progressDeadlineSeconds", message));
    }
    let dependencies = check_dependencies(spec, &mut refusals);
    if refusals.is_empty() { Ok(valid(spec, dependencies)) } else { Err(refusals) }
}

fn valid(spec: &DatabaseSpec, dependencies: Vec<Dependency>) -> Valid {
    Valid {
        image: spec.image.clone(),
        replicas: u32::try_from(spec.replicas).unwrap_or(1),
        database: spec.database_name.clone(),
        username: spec.username.clone(),
        size: spec.storage.size.clone(),
        storage_class: spec.storage.storage_class.clone(),
        parameters: spec.parameters.clone(),
        resources: spec.resources.clone(),
        pod: spec.pod_template.clone(),
        dependencies,
        progress_deadline_seconds: i64::from(spec.progress_deadline_seconds),
    }
}

/// What the API server would refuse in the StatefulSet is refused with the path of our own field.
fn check_pod(pod: &PodOptions, refusals: &mut Vec<Refusal>) {
    let mut refuse = |path: String, error: name::NameError| {
        refusals.push(Refusal::new(path, error.to_string()));
    };
    for (field, map) in [("labels", &pod.labels), ("nodeSelector", &pod.node_selector)] {
        for (key, value) in map {
            let path = format!("spec.podTemplate.{field}[{key:?}]");
            let checked = name::label_key(key).and_then(|()| name::label_value(value));
            checked.unwrap_or_else(|error| refuse(path, error));
        }
    }
    for key in pod.annotations.keys() {
        let path = format!("spec.podTemplate.annotations[{key:?}]");
        name::label_key(key).unwrap_or_else(|error| refuse(path, error));
    }
    let named = [
        ("priorityClassName", &pod.priority_class_name),
        ("serviceAccountName", &pod.service_account_name),
    ];
    for (field, value) in named {
        let checked = value.as_deref().map_or(Ok(()), name::dns_subdomain);
        checked.unwrap_or_else(|error| refuse(format!("spec.podTemplate.{field}"), error));
    }
}

fn check_dependencies(spec: &DatabaseSpec, refusals: &mut Vec<Refusal>) -> Vec<Dependency> {
    let mut all = Vec::new();
    for (index, raw) in spec.external_dependencies.iter().enumerate() {
        match dependencies::parse(raw) {
            Ok(dependency) => all.push(dependency),
            Err(message) => {
                refusals.push(Refusal::new(format!("spec.externalDependencies[{index}]"), message));
            }
        }
    }
    all
}

/// Why a resource's name cannot be used: Services and revision labels take it over.
pub fn name_refusal(name: &str) -> Option<String> {
    if name.len() > NAME_LIMIT {
        return Some(format!(
            "has {} characters, and at most {NAME_LIMIT} leave room for the names of pods and revisions; choose a shorter name",
            name.len()
        ));
    }
    let legal = name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    (!legal).then(|| {
        "must begin with a letter and hold only a-z, 0-9 and '-', since a Service takes it; choose another name"
            .to_owned()
    })
}

/// Why a text cannot be the name of a role or database (fault catalogue PG-11, PG-12).
pub fn identifier_refusal(name: &str, reserved: &[&str]) -> Option<String> {
    if name.is_empty() {
        return Some("is empty; write a name".to_owned());
    }
    if name.len() > IDENTIFIER_LIMIT {
        return Some(format!(
            "has {} bytes, and PostgreSQL keeps at most {IDENTIFIER_LIMIT}; choose a shorter name",
            name.len()
        ));
    }
    let first = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    if !first || !name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
        return Some(format!(
            "{name:?} must begin with a letter or '_' and hold only letters, digits, '_' and '-'; choose another name"
        ));
    }
    if name.starts_with("pg_") || reserved.contains(&name) {
        return Some(format!(
            "{name:?} is PostgreSQL's or the operator's own; choose another name"
        ));
    }
    None
}

/// What an empty database with its write-ahead log takes, and a little more. An amount below that is a
/// slip of the pen: `500m` is half a byte.
const SMALLEST: &str = "100Mi";

fn size_refusal(size: &str) -> Option<String> {
    let smallest = SMALLEST.parse::<Quantity>().ok()?;
    match size.parse::<Quantity>() {
        Err(_) => {
            Some(format!("{size:?} is not a quantity; write a number with a unit, such as 10Gi"))
        }
        Ok(amount) if amount < smallest => Some(format!(
            "{size:?} is less than {SMALLEST}, which an empty database takes; write a number with a \
             unit, such as 10Gi"
        )),
        Ok(_) => None,
    }
}

fn supported(image: &str) -> Option<String> {
    let major = image::major_hint(image)?;
    let supported = super::verify::OLDEST_MAJOR..=super::verify::NEWEST_MAJOR;
    (!supported.contains(&major)).then(|| {
        format!("{image:?} is PostgreSQL {major}, and 14 to 18 are supported; choose one of them")
    })
}

impl Valid {
    /// What is asked of the dependencies, in the order of the spec.
    pub fn reaches(&self) -> impl Iterator<Item = (&Dependency, &Reach)> {
        self.dependencies.iter().map(|d| (d, &d.reach))
    }
}
