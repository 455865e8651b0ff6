//! Whether a workload runs what we wrote, by its own status, generation first.
//!
//! Must not look at pods: a workload's controller has counted them (design.md section 2).

use k8s_openapi::api::apps::v1::StatefulSet;

/// How far a rollout is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// The workload's controller has not looked at this generation yet.
    Unseen,
    /// It is at work.
    Moving {
        /// Counts and revisions; any change of it is progress.
        mark: String,
        /// The same for people.
        message: String,
    },
    /// Every replica runs this generation and is ready.
    Complete,
}

/// Reads a StatefulSet: `observedGeneration` current, then
/// `updatedReplicas == readyReplicas == replicas` and equal revisions.
pub fn stateful_set(set: &StatefulSet) -> Rollout {
    let Some(status) = &set.status else { return Rollout::Unseen };
    let generation = set.metadata.generation.unwrap_or_default();
    if status.observed_generation.unwrap_or_default() < generation {
        return Rollout::Unseen;
    }
    let wanted = set.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    let ready = status.ready_replicas.unwrap_or_default();
    let updated = status.updated_replicas.unwrap_or_default();
    let revisions_equal = status.current_revision == status.update_revision;
    if status.replicas == wanted && ready == wanted && updated == wanted && revisions_equal {
        return Rollout::Complete;
    }
    let revision = status.update_revision.as_deref().unwrap_or("none");
    Rollout::Moving {
        mark: format!("{generation}/{revision}/{}/{updated}/{ready}", status.replicas),
        message: format!(
            "{ready} of {wanted} ready, {updated} of {wanted} updated to revision {revision}"
        ),
    }
}
