//! What the controllers of a cluster do by themselves, said in so many words by a test.

use phased::ObjectId;
use serde_json::{Value, json};

use super::{World, merge};

impl World {
    /// What the StatefulSet controller and the kubelet do when nothing is wrong.
    pub fn roll_out(&mut self) {
        let id = self.names().stateful_set();
        let Some(set) = self.objects.get(&id).cloned() else { return };
        if set["metadata"].get("deletionTimestamp").is_some() {
            return;
        }
        let revision = phased::digest::of(&set["spec"]["template"]);
        self.provision(&set);
        let pod_id = self.names().primary_pod();
        let old = self.objects.get(&pod_id).cloned();
        let current = old.as_ref().is_some_and(|p| {
            p["metadata"]["labels"]["controller-revision-hash"] == revision.as_str()
                && p["status"]["conditions"][0]["status"] == "True"
        });
        if !current {
            self.objects.remove(&pod_id);
            self.store(&pod_id, pod(&set, &revision, true));
            let config = self.objects.get(&self.names().config_map()).cloned();
            self.server.start(config.as_ref());
        }
        self.set_status(&id, &revision, true);
    }

    /// Makes the claim and a pod in the given state, without a server.
    pub fn stall(&mut self, status: Value) {
        let id = self.names().stateful_set();
        let set = self.objects[&id].clone();
        let revision = phased::digest::of(&set["spec"]["template"]);
        self.provision(&set);
        let mut pod = pod(&set, &revision, false);
        merge(&mut pod["status"], &status);
        self.objects.remove(&self.names().primary_pod());
        self.store(&self.names().primary_pod(), pod);
        self.server.up = false;
        self.set_status(&id, &revision, false);
    }

    fn provision(&mut self, set: &Value) {
        let id = self.names().data_claim();
        if !self.objects.contains_key(&id) {
            let mut claim = set["spec"]["volumeClaimTemplates"][0].clone();
            claim["status"] = json!({"phase": "Bound"});
            self.store(&id, claim);
        }
    }

    pub fn set_status(&mut self, id: &ObjectId, revision: &str, ready: bool) {
        let count = i64::from(ready);
        self.meddle(id, |set| {
            set["status"] = json!({
                "observedGeneration": set["metadata"]["generation"],
                "replicas": 1, "readyReplicas": count, "updatedReplicas": 1,
                "currentRevision": revision, "updateRevision": revision,
            });
        });
    }
}

fn pod(set: &Value, revision: &str, ready: bool) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
    merge(&mut pod, &set["spec"]["template"]);
    pod["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
    let word = if ready { "True" } else { "False" };
    pod["status"] = json!({"conditions": [{"type": "Ready", "status": word}]});
    pod
}
