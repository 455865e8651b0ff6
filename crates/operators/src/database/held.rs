//! Changes of the spec that the recorded facts forbid: held back, while the rest is in force.
//!
//! The API server refuses most of them already; this holds where admission was laxer, and where
//! only the facts can tell (fault catalogue PG-17, PG-32, PG-33, PG-46).

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, VolumeResourceRequirements};
use phased::Live;
use phased::ladder::Finding;
use phased::quantity::Quantity;

use super::api::DatabaseStatus;
use super::record::Records;
use super::valid::Valid;
use super::{image, labels, reason, record};

/// What was recorded, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Database that the data hold.
    pub database: Option<String>,
    /// Role that owns it.
    pub username: Option<String>,
    /// Image that was last in force.
    pub image: Option<String>,
    /// Size in the claim template.
    pub size: Option<String>,
    /// Class in the claim template; the outer `None` means that there is no template.
    pub storage_class: Option<Option<String>>,
    /// uid in the claim template.
    pub template_uid: Option<String>,
    /// What the server calls itself.
    pub identity: Option<String>,
    /// What the volume of a former Database has, while there is no claim template.
    pub kept: Option<Kept>,
}

/// The volume that a Database finds and did not make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Size that its claim asks for.
    pub size: Option<String>,
    /// Its class.
    pub storage_class: Option<String>,
}

impl Recorded {
    /// Reads what was written down, and the claim template, which nobody can change in place.
    pub fn read(records: &Records) -> Self {
        let mut recorded = Self {
            database: records.read(record::DATABASE),
            username: records.read(record::USERNAME),
            identity: records.read(record::IDENTITY),
            image: records.read(record::IMAGE),
            ..Self::default()
        };
        let set = records.set.as_ref().and_then(|live| live.read::<StatefulSet>().ok());
        let template = set
            .and_then(|set| set.spec?.volume_claim_templates)
            .unwrap_or_default()
            .into_iter()
            .find(|t| t.metadata.name.as_deref() == Some("data"));
        if let Some(template) = template {
            let annotations = template.metadata.annotations.unwrap_or_default();
            recorded.template_uid = annotations.get(labels::RESOURCE_UID_ANNOTATION).cloned();
            let claim = template.spec.unwrap_or_default();
            recorded.storage_class = Some(claim.storage_class_name);
            recorded.size = storage(claim.resources);
        } else {
            recorded.kept = records.claim.as_ref().and_then(kept);
        }
        recorded
    }
}

fn storage(resources: Option<VolumeResourceRequirements>) -> Option<String> {
    resources?.requests?.get("storage").map(|q| q.0.clone())
}

fn kept(claim: &Live) -> Option<Kept> {
    let spec = claim.read::<PersistentVolumeClaim>().ok()?.spec?;
    Some(Kept { size: storage(spec.resources), storage_class: spec.storage_class_name })
}

/// A spec with recorded values in the place of refused ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// What is in force.
    pub valid: Valid,
    /// What was refused.
    pub findings: Vec<Finding>,
    /// The larger size that is wanted, while the claim template still has the smaller one.
    pub growth: Option<String>,
}

/// Puts recorded values in the place of refused ones and says what was refused.
///
/// `volume_exists`: whether a claim was ever seen; before that the StatefulSet can be made anew, so
/// that a wrong size or class is healed by a corrected spec alone.
pub fn hold(
    mut valid: Valid,
    recorded: &Recorded,
    status: &DatabaseStatus,
    volume_exists: bool,
) -> Held {
    let mut held = Vec::new();
    let mut growth = None;
    rename(&mut valid.database, recorded.database.as_ref(), "spec.databaseName", &mut held);
    rename(&mut valid.username, recorded.username.as_ref(), "spec.username", &mut held);
    if volume_exists {
        growth = size(&mut valid, recorded, &mut held);
        storage_class(&mut valid, recorded, &mut held);
    }
    major(&mut valid, recorded, status, &mut held);
    Held { valid, findings: held, growth }
}

fn rename(wanted: &mut String, was: Option<&String>, path: &str, held: &mut Vec<Finding>) {
    let Some(was) = was.filter(|w| *w != wanted) else { return };
    let message = format!(
        "{path}: {wanted:?} differs from {was:?}, which the data were made with; write {was:?} again, \
         or create a new Database and move the data with pg_dump"
    );
    held.push(Finding::new(&reason::RENAME_REFUSED, message));
    wanted.clone_from(was);
}

/// The size that volumes are to grow to, if they are. The claim template keeps the old one until the
/// StatefulSet is made anew.
fn size(valid: &mut Valid, recorded: &Recorded, held: &mut Vec<Finding>) -> Option<String> {
    // A volume that is larger than the spec says is told; one that is smaller grows when there is a
    // set, whose template says the wanted size from the start.
    let kept = recorded.kept.as_ref().and_then(|kept| kept.size.as_ref());
    let was = recorded.size.as_ref().or(kept)?;
    let old = was.parse::<Quantity>().ok()?;
    let new = valid.size.parse::<Quantity>().ok()?;
    let wanted = valid.size.clone();
    if new < old {
        let message = format!(
            "spec.storage.size: a volume of {was} cannot shrink to {wanted}; write {was} again, or \
             create a new Database and move the data with pg_dump"
        );
        held.push(Finding::new(&reason::STORAGE_SHRINK_REFUSED, message));
    }
    if new > old && recorded.size.is_none() {
        return None;
    }
    valid.size.clone_from(was);
    (new > old).then_some(wanted)
}

fn storage_class(valid: &mut Valid, recorded: &Recorded, held: &mut Vec<Finding>) {
    // No class in the spec is any class that a volume has already.
    let kept = recorded.kept.as_ref().filter(|_| valid.storage_class.is_some());
    let kept = kept.map(|kept| &kept.storage_class);
    let Some(was) = recorded.storage_class.as_ref().or(kept) else { return };
    if *was == valid.storage_class {
        return;
    }
    let word = |class: &Option<String>| class.clone().unwrap_or_else(|| "(default)".to_owned());
    let message = format!(
        "spec.storage.storageClass: {} differs from the volume's {}; write the old value again, or \
         create a new Database and move the data with pg_dump",
        word(&valid.storage_class),
        word(was)
    );
    held.push(Finding::new(&reason::STORAGE_CLASS_CHANGE_REFUSED, message));
    valid.storage_class.clone_from(was);
}

/// Refuses an obvious change of the major version. Opaque names pass: the guard and the server
/// itself refuse the data then (field case C-11).
fn major(valid: &mut Valid, recorded: &Recorded, status: &DatabaseStatus, held: &mut Vec<Finding>) {
    // Without a version that was seen there are no data yet, and nothing to protect.
    let Some(server) = status.server_version.as_deref().and_then(major_of) else { return };
    let Some(was) = recorded.image.clone().filter(|i| *i != valid.image) else { return };
    // Two names are compared by their names, for a local stand-in may play both of them.
    let server = image::major_hint(&was).unwrap_or(server);
    let Some(wanted) = image::major_hint(&valid.image).filter(|w| *w != server) else { return };
    let message = format!(
        "spec.image: {:?} is PostgreSQL {wanted}, and the data were made by {server}; write an image \
         of PostgreSQL {server} again, or create a new Database and move the data with pg_dump",
        valid.image
    );
    held.push(Finding::new(&reason::MAJOR_VERSION_CHANGE_REFUSED, message));
    valid.image = was;
}

/// The major version at the beginning of a version text.
pub fn major_of(version: &str) -> Option<u32> {
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}
