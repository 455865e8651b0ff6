//! From the raw spec to a checked one, with every default of the replaced operator filled in.
//!
//! The stored resource is not changed: defaults live here and in the schema. Must not look at
//! children; [`super::held`] compares with them.

use k8s_openapi::api::core::v1::ContainerPort;
use phased::name;
use phased::quantity::Quantity;
use serde_json::{Value, json};

use super::api::{Image, Part, Persistence, ReclaimPolicy, Texts, Written, ZookeeperClusterSpec};
use super::options::{PodPolicy, Probe};
use super::settings::{self, Settings};
use crate::parts::refusal::Refusal;

/// A spec that can be carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct Valid {
    /// Image of the servers.
    pub image: Image,
    /// Servers wanted.
    pub replicas: u32,
    /// Labels of pods and objects.
    pub labels: Texts,
    /// Ports of the server's container, the operator's own among them.
    pub ports: Vec<ContainerPort>,
    /// What the pods should carry.
    pub pod: PodPolicy,
    /// Where the data lie.
    pub storage: Storage,
    /// Settings.
    pub settings: Settings,
    /// Domain for external-dns, with its final dot; empty for none.
    pub domain: String,
    /// DNS domain of the Kubernetes cluster, when the spec names one.
    pub cluster_domain: Option<String>,
    /// Readiness and liveness.
    pub probes: (Probe, Probe),
    /// How many pods a drain may take at once.
    pub max_unavailable: i32,
    /// Patience with upgrades and rollouts, in seconds.
    pub progress_deadline_seconds: i64,
    /// What is copied as it was written.
    pub raw: ZookeeperClusterSpec,
}

/// Where the data lie.
#[derive(Clone, Debug, PartialEq)]
pub enum Storage {
    /// In volumes that outlive pods.
    Persistent {
        /// What becomes of them.
        reclaim: ReclaimPolicy,
        /// Spec of the claims.
        claim: Value,
        /// Annotations of the claims.
        annotations: Texts,
    },
    /// In an `emptyDir`.
    Ephemeral(Part),
}

/// Longest name of a cluster: `<name>-admin-server` is a Service.
const NAME_LIMIT: usize = 50;
/// Size of a volume when none is named.
const DEFAULT_SIZE: &str = "20Gi";
/// The operator's own ports, in the order in which absent ones are added.
const PORTS: [(&str, u16); 5] = [
    (CLIENT, 2181),
    (QUORUM, 2888),
    (LEADER_ELECTION, 3888),
    (METRICS, 7000),
    (ADMIN_SERVER, 8080),
];
/// Port for clients.
pub const CLIENT: &str = "client";
/// Port for followers.
pub const QUORUM: &str = "quorum";
/// Port for elections.
pub const LEADER_ELECTION: &str = "leader-election";
/// Port of the metrics.
pub const METRICS: &str = "metrics";
/// Port of the servers' own HTTP server.
pub const ADMIN_SERVER: &str = "admin-server";
/// The service account that every namespace has.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";

impl Valid {
    /// The number of one of the operator's own ports.
    pub fn port(&self, name: &str) -> u16 {
        let number = self.ports.iter().find(|p| p.name.as_deref() == Some(name));
        number.and_then(|p| u16::try_from(p.container_port).ok()).unwrap_or_default()
    }

    /// The image as a pod names it.
    pub fn image_name(&self) -> String {
        format!("{}:{}", self.image.repository, self.image.tag)
    }

    /// Whether volumes go when the spec says that servers or the cluster go.
    pub fn reclaims(&self) -> bool {
        matches!(self.storage, Storage::Persistent { reclaim: ReclaimPolicy::Delete, .. })
    }
}

/// Checks everything that can be checked without looking at the cluster.
///
/// # Errors
/// All refusals at once.
pub fn check(name: &str, written: &Written) -> Result<Valid, Vec<Refusal>> {
    let spec = &written.spec;
    let mut refusals = Vec::new();
    refusals.extend(name_refusal(name).map(|m| Refusal::new("metadata.name", m)));
    if !(1..=255).contains(&replicas(spec)) {
        refusals.push(Refusal::new("spec.replicas", "must lie between 1 and 255; set it to 3"));
    }
    refusals.extend(settings::refusals(&spec.config));
    check_image(&spec.image, &mut refusals);
    check_maps(spec, &mut refusals);
    check_ports(&spec.ports, &mut refusals);
    check_storage(spec.persistence.as_ref(), &mut refusals);
    if refusals.is_empty() { Ok(valid(name, spec)) } else { Err(refusals) }
}

fn valid(name: &str, spec: &ZookeeperClusterSpec) -> Valid {
    let mut pod = spec.pod.clone();
    pod.labels = with_defaults(name, &spec.pod.labels);
    if pod.service_account_name.is_empty() {
        DEFAULT_SERVICE_ACCOUNT.clone_into(&mut pod.service_account_name);
    }
    Valid {
        image: image(&spec.image),
        replicas: u32::try_from(replicas(spec)).unwrap_or(1),
        labels: with_defaults(name, &spec.labels),
        ports: ports(&spec.ports),
        pod,
        storage: storage(spec),
        settings: settings::effective(&spec.config),
        domain: public_domain(&spec.domain_name),
        cluster_domain: cluster_domain(&spec.kubernetes_cluster_domain),
        probes: probes(spec),
        max_unavailable: spec.max_unavailable_replicas.unwrap_or(1).max(1),
        progress_deadline_seconds: i64::from(spec.progress_deadline_seconds.unwrap_or(600)),
        raw: spec.clone(),
    }
}

fn replicas(spec: &ZookeeperClusterSpec) -> i32 {
    spec.replicas.unwrap_or(super::api::DEFAULT_REPLICAS)
}

/// Empty texts count as absent, as they did.
fn image(image: &Image) -> Image {
    let or = |text: &String, default: &str| {
        if text.is_empty() { default.to_owned() } else { text.clone() }
    };
    Image {
        repository: or(&image.repository, super::family::DEFAULT_REPOSITORY),
        tag: or(&image.tag, super::family::DEFAULT_TAG),
        ..image.clone()
    }
}

fn with_defaults(name: &str, labels: &Texts) -> Texts {
    let mut all = labels.clone();
    for key in ["app", "release"] {
        all.entry(key.to_owned()).or_insert_with(|| name.to_owned());
    }
    all
}

fn ports(written: &[ContainerPort]) -> Vec<ContainerPort> {
    let mut all = written.to_vec();
    for (name, number) in PORTS {
        if !written.iter().any(|p| p.name.as_deref() == Some(name)) {
            all.push(ContainerPort {
                name: Some(name.to_owned()),
                container_port: i32::from(number),
                ..ContainerPort::default()
            });
        }
    }
    all
}

fn storage(spec: &ZookeeperClusterSpec) -> Storage {
    if spec.storage_type.eq_ignore_ascii_case("ephemeral") {
        let ephemeral = spec.ephemeral.clone().unwrap_or_default();
        return Storage::Ephemeral(ephemeral.emptydirvolumesource);
    }
    let persistence = spec.persistence.clone().unwrap_or_default();
    let mut claim = Value::Object(persistence.spec.clone());
    claim["accessModes"] = json!(["ReadWriteOnce"]);
    if storage_size(&persistence).is_none() {
        claim["resources"]["requests"] = json!({"storage": DEFAULT_SIZE});
    }
    Storage::Persistent {
        reclaim: persistence.reclaim_policy,
        claim,
        annotations: persistence.annotations,
    }
}

/// The size that is asked for, if it is one.
fn storage_size(persistence: &Persistence) -> Option<Quantity> {
    let amount = persistence.spec.get("resources")?.get("requests")?.get("storage")?;
    let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
    let zero: Quantity = "0".parse().ok()?;
    text.parse().ok().filter(|size| *size != zero)
}

/// A blank before, after, or no dot at the end is how people write it.
fn public_domain(written: &str) -> String {
    let trimmed = written.trim();
    match trimmed {
        "" => String::new(),
        dotted if dotted.ends_with('.') => dotted.to_owned(),
        bare => format!("{bare}."),
    }
}

/// Capitals and a final dot mean nothing in DNS (field case C-17).
fn cluster_domain(written: &str) -> Option<String> {
    let normal = written.trim().trim_end_matches('.').to_ascii_lowercase();
    (!normal.is_empty()).then_some(normal)
}

fn probes(spec: &ZookeeperClusterSpec) -> (Probe, Probe) {
    let alive = Probe {
        initial_delay_seconds: 10,
        period_seconds: 10,
        failure_threshold: 3,
        success_threshold: 0,
        timeout_seconds: 10,
    };
    let ready = Probe { success_threshold: 1, ..alive };
    let written = spec.probes.clone().unwrap_or_default();
    (written.readiness_probe.unwrap_or(ready), written.liveness_probe.unwrap_or(alive))
}

fn name_refusal(name: &str) -> Option<String> {
    if name.len() > NAME_LIMIT {
        let length = name.len();
        return Some(format!(
            "has {length} characters, and at most {NAME_LIMIT} leave room for the Service <name>-admin-server; choose a shorter name"
        ));
    }
    name::dns_1035_label(name).err().map(|error| format!("{error}; choose another name"))
}

fn check_image(image: &Image, refusals: &mut Vec<Refusal>) {
    for (field, text) in [("repository", &image.repository), ("tag", &image.tag)] {
        if text.contains(char::is_whitespace) {
            let message = "an image's name holds no blanks; remove them";
            refusals.push(Refusal::new(format!("spec.image.{field}"), message));
        }
    }
}

/// What the API server would refuse in a child is refused with the path of our own field.
fn check_maps(spec: &ZookeeperClusterSpec, refusals: &mut Vec<Refusal>) {
    for (path, labels) in [("spec.labels", &spec.labels), ("spec.pod.labels", &spec.pod.labels)] {
        for (key, value) in labels {
            let checked = name::label_key(key).and_then(|()| name::label_value(value));
            if let Err(error) = checked {
                refusals.push(Refusal::new(format!("{path}[{key:?}]"), error.to_string()));
            }
        }
    }
    let annotations = [
        ("spec.pod.annotations", &spec.pod.annotations),
        ("spec.clientService.annotations", &spec.client_service.annotations),
        ("spec.headlessService.annotations", &spec.headless_service.annotations),
        ("spec.adminServerService.annotations", &spec.admin_server_service.annotations),
    ];
    for (path, map) in annotations {
        for key in map.keys() {
            if let Err(error) = name::label_key(key) {
                refusals.push(Refusal::new(format!("{path}[{key:?}]"), error.to_string()));
            }
        }
    }
}

fn check_ports(ports: &[ContainerPort], refusals: &mut Vec<Refusal>) {
    let all = self::ports(ports);
    for (index, port) in all.iter().enumerate() {
        let path = || format!("spec.ports[{index}]");
        if !(1..=65535).contains(&port.container_port) {
            refusals.push(Refusal::new(path(), "containerPort must lie between 1 and 65535"));
        }
        let twice = |other: &ContainerPort| {
            other.container_port == port.container_port
                || other.name.is_some() && other.name == port.name
        };
        if all[..index].iter().any(twice) {
            let message = "a port's name and number must be its own; two ports of the pod collide";
            refusals.push(Refusal::new(path(), message));
        }
    }
}

fn check_storage(persistence: Option<&Persistence>, refusals: &mut Vec<Refusal>) {
    let amount = persistence
        .and_then(|p| p.spec.get("resources")?.get("requests")?.get("storage"))
        .map(|amount| amount.as_str().map_or_else(|| amount.to_string(), str::to_owned));
    let Some(text) = amount else { return };
    let zero = "0".parse::<Quantity>();
    let sound = matches!((text.parse::<Quantity>(), zero), (Ok(size), Ok(zero)) if size >= zero);
    if !sound {
        let path = "spec.persistence.spec.resources.requests.storage";
        let message = format!("{text:?} is no size; write a number with a unit, such as 20Gi");
        refusals.push(Refusal::new(path, message));
    }
}
