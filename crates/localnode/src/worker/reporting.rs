//! Writes a pod's status, and only when it differs from what is there.

use super::Worker;
use crate::status;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};

impl Worker {
    /// Brings the object's status up to what the node knows.
    pub(super) async fn report(&mut self) {
        self.mark_creating();
        let wanted = status::build(&self.pod, &self.record, status::now());
        if self.written.as_ref() == Some(&wanted) || self.pod.status.as_ref() == Some(&wanted) {
            return;
        }
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), self.namespace());
        let patch = serde_json::json!({
            "metadata": {"uid": self.pod.metadata.uid},
            "status": &wanted,
        });
        match pods.patch_status(self.name(), &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(answer) => {
                self.pod = std::sync::Arc::new(answer);
                self.written = Some(wanted);
            }
            Err(kube::Error::Api(answer)) if answer.is_not_found() || answer.is_conflict() => {
                tracing::debug!(pod = self.name(), "the pod changed under its status");
            }
            Err(error) => {
                tracing::debug!(%error, pod = self.name(), "a status could not be written yet");
                self.retry = true;
            }
        }
    }
}
