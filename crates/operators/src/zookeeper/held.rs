//! What the live objects record, and changes of the spec that it forbids: held back, while the rest
//! is in force.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Container;
use phased::Live;
use phased::compare;
use phased::ladder::Finding;
use serde_json::{Value, json};

use super::api::Scripts;
use super::config::BASELINE_ANNOTATION;
use super::family::{self, CONTAINER};
use super::pod::RESTART_ANNOTATION;
use super::reason;
use super::valid::{CLIENT, LEADER_ELECTION, QUORUM, Storage, Valid};

/// What was recorded, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// Whether there is a StatefulSet.
    pub exists: bool,
    /// Who brings the scripts.
    pub scripts: Option<Scripts>,
    /// Digest of the configuration that the servers were first run with.
    pub baseline: Option<String>,
    /// Image in the template.
    pub image: Option<String>,
    /// Ports in the template, by name.
    pub ports: Vec<(String, i32)>,
    /// Whether data lie in an `emptyDir`.
    pub ephemeral: bool,
    /// The claim templates, without what the server adds.
    pub claim_templates: Option<Vec<Value>>,
    /// When every pod was last made anew on request.
    pub restart_time: Option<String>,
    /// Size of the set.
    pub count: Option<u32>,
}

impl Recorded {
    /// Reads the live StatefulSet and ConfigMap.
    pub fn read(set: Option<&Live>, config: Option<&Live>) -> Self {
        let annotation = |live: Option<&Live>, key| live?.annotation(key).map(str::to_owned);
        let mut recorded = Self {
            exists: set.is_some(),
            scripts: family::recorded(set, config),
            baseline: annotation(set, BASELINE_ANNOTATION)
                .or_else(|| annotation(config, BASELINE_ANNOTATION)),
            ..Self::default()
        };
        let Some(live) = set else { return recorded };
        let Some(spec) = live.read::<StatefulSet>().ok().and_then(|s| s.spec) else {
            return recorded;
        };
        recorded.count = spec.replicas.and_then(|count| u32::try_from(count).ok());
        let annotations = spec.template.metadata.unwrap_or_default().annotations;
        recorded.restart_time = annotations.unwrap_or_default().remove(RESTART_ANNOTATION);
        let pod = spec.template.spec.unwrap_or_default();
        recorded.ephemeral =
            pod.volumes.iter().flatten().any(|v| v.name == "data" && v.empty_dir.is_some());
        if let Some(server) = pod.containers.into_iter().find(|c| c.name == CONTAINER) {
            recorded.take(server);
        }
        let claims = live.value.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
        recorded.claim_templates = Some(claims.into_iter().flatten().map(plain_claim).collect());
        recorded
    }

    fn take(&mut self, server: Container) {
        let ports = server.ports.unwrap_or_default();
        self.ports = ports.into_iter().filter_map(|p| Some((p.name?, p.container_port))).collect();
        self.image = server.image;
    }

    /// Tag of the image in the template.
    pub fn tag(&self) -> Option<&str> {
        self.image.as_deref()?.rsplit_once(':').map(|(_, tag)| tag)
    }
}

/// A claim template without what the server adds to it.
fn plain_claim(stored: &Value) -> Value {
    let mut claim = stored.clone();
    if let Some(fields) = claim.as_object_mut() {
        fields.remove("status");
    }
    if let Some(fields) = claim["metadata"].as_object_mut() {
        fields.remove("creationTimestamp");
    }
    claim
}

/// A spec with recorded values in the place of refused ones, and what was refused.
pub fn hold(mut valid: Valid, recorded: &Recorded) -> (Valid, Vec<Finding>) {
    let mut findings = Vec::new();
    if !recorded.exists {
        return (valid, findings);
    }
    ports(&mut valid, recorded, &mut findings);
    storage(&mut valid, recorded, &mut findings);
    (valid, findings)
}

/// The family of the spec's image, against the one that holds. The recorded image stays.
pub fn family(valid: &mut Valid, recorded: &Recorded) -> (Scripts, Option<Finding>) {
    let asked = family::asked(&valid.image);
    let Some(holds) = recorded.scripts.filter(|holds| *holds != asked) else {
        return (asked, None);
    };
    let message = format!(
        "spec.image: {} is of the family {}, and this cluster runs with scripts of the family {}; \
         restore the image, or set spec.image.scripts: {} if the new image belongs to it",
        valid.image_name(),
        asked.as_str(),
        holds.as_str(),
        holds.as_str()
    );
    if let Some((repository, tag)) = recorded.image.as_deref().and_then(|i| i.rsplit_once(':')) {
        repository.clone_into(&mut valid.image.repository);
        tag.clone_into(&mut valid.image.tag);
    }
    (holds, Some(Finding::new(&reason::IMAGE_FAMILY_CHANGE_REFUSED, message)))
}

/// Registered addresses hold three of the ports.
fn ports(valid: &mut Valid, recorded: &Recorded, findings: &mut Vec<Finding>) {
    for name in [CLIENT, QUORUM, LEADER_ELECTION] {
        let Some((_, was)) = recorded.ports.iter().find(|(known, _)| known == name) else {
            continue;
        };
        let wanted = i32::from(valid.port(name));
        if wanted == *was {
            continue;
        }
        let message = format!(
            "spec.ports: the port {name:?} cannot change from {was} to {wanted}, since the members' \
             registered addresses hold it; write {was} again"
        );
        findings.push(Finding::new(&reason::PORT_CHANGE_REFUSED, message));
        for port in valid.ports.iter_mut().filter(|p| p.name.as_deref() == Some(name)) {
            port.container_port = *was;
        }
    }
}

fn storage(valid: &mut Valid, recorded: &Recorded, findings: &mut Vec<Finding>) {
    let asks_for_ephemeral = matches!(valid.storage, Storage::Ephemeral(_));
    if asks_for_ephemeral != recorded.ephemeral {
        let kind = |ephemeral| if ephemeral { "ephemeral" } else { "persistent" };
        let message = format!(
            "spec.storageType: the cluster is {} and cannot become {}; restore the old value, or \
             create a new ZookeeperCluster",
            kind(recorded.ephemeral),
            kind(asks_for_ephemeral)
        );
        findings.push(Finding::new(&reason::STORAGE_CHANGE_REFUSED, message));
        valid.storage = recorded_storage(valid, recorded);
        return;
    }
    let Storage::Persistent { claim, .. } = &valid.storage else { return };
    let Some(was) = recorded.claim_templates.as_ref().and_then(|all| all.first()) else { return };
    let live = &was["spec"];
    let named = |spec: &Value| spec["storageClassName"].clone();
    let path = match compare::difference(claim, live) {
        Some(path) => path.spelled(live),
        None if named(claim).is_null() && !named(live).is_null() => ".storageClassName".to_owned(),
        None => return,
    };
    let message = format!(
        "spec.persistence.spec{path}: {} differs from what the volumes were made with, {}; write \
         the old value again",
        shown(claim, &path),
        shown(live, &path)
    );
    findings.push(Finding::new(&reason::STORAGE_CHANGE_REFUSED, message));
}

fn shown(spec: &Value, path: &str) -> String {
    let value = spec.pointer(&path.replace('.', "/")).cloned().unwrap_or(Value::Null);
    if value.is_null() { "(default)".to_owned() } else { value.to_string() }
}

fn recorded_storage(valid: &Valid, recorded: &Recorded) -> Storage {
    if recorded.ephemeral {
        return Storage::Ephemeral(
            valid.raw.ephemeral.clone().unwrap_or_default().emptydirvolumesource,
        );
    }
    let persistence = valid.raw.persistence.clone().unwrap_or_default();
    let claim = recorded.claim_templates.as_ref().and_then(|all| all.first());
    Storage::Persistent {
        reclaim: persistence.reclaim_policy,
        claim: claim.map_or_else(|| json!({}), |claim| claim["spec"].clone()),
        annotations: persistence.annotations,
    }
}
