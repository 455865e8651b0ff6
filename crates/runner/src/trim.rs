//! What of an object's `metadata.managedFields` is kept in memory.
//!
//! Must not touch anything else of an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use serde_json::json;

/// What is kept of `metadata.managedFields`, which is often larger than the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Nothing.
    Nothing,
    /// Who holds which label.
    Labels,
    /// All of it.
    Whole,
}

impl Ownership {
    /// Takes away what is not kept.
    pub fn trim(self, metadata: &mut ObjectMeta) {
        match self {
            Self::Whole => {}
            Self::Nothing => metadata.managed_fields = None,
            Self::Labels => {
                let entries = metadata.managed_fields.take().unwrap_or_default();
                metadata.managed_fields = Some(entries.into_iter().filter_map(labels).collect());
            }
        }
    }
}

/// What an entry tells of labels.
fn labels(entry: ManagedFieldsEntry) -> Option<ManagedFieldsEntry> {
    let held = entry.fields_v1.as_ref()?.0.pointer("/f:metadata/f:labels")?;
    let only = json!({"f:metadata": {"f:labels": held}});
    Some(ManagedFieldsEntry { fields_v1: Some(FieldsV1(only)), ..entry })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_pod_it_is_kept_who_holds_which_label() {
        let mut metadata: ObjectMeta = serde_json::from_value(json!({"managedFields": [
            {"manager": "kubectl-label", "fieldsV1":
                {"f:metadata": {"f:labels": {"f:a": {}}, "f:annotations": {"f:b": {}}}}},
            {"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}},
        ]}))
        .unwrap();
        Ownership::Labels.trim(&mut metadata);
        let kept = json!({"managedFields": [{"manager": "kubectl-label", "fieldsV1":
            {"f:metadata": {"f:labels": {"f:a": {}}}}}]});
        assert_eq!(serde_json::to_value(metadata).unwrap(), kept);
    }
}
