//! What the controllers of a cluster do by themselves, said in so many words by a test.

use phased::ObjectId;
use serde_json::{Value, json};

use super::{World, merge, seed};

impl World {
    /// What the StatefulSet controller and the kubelet do when nothing is wrong.
    pub fn roll_out(&mut self) {
        let id = self.names().stateful_set();
        let Some(set) = self.objects.get(&id).cloned() else { return };
        if set["metadata"].get("deletionTimestamp").is_some() {
            return;
        }
        let revision = phased::digest::of(&set["spec"]["template"]);
        let count = u32::try_from(set["spec"]["replicas"].as_u64().unwrap()).unwrap();
        let names = self.names();
        for gone in count..16 {
            self.objects.remove(&names.pod(gone));
            self.server.standbys.remove(&gone);
        }
        let mut ready = 0;
        for ordinal in (0..count).rev() {
            self.provision(&set, ordinal);
            ready += i64::from(self.run(&set, &revision, ordinal));
        }
        self.set_count(&id, &revision, ready, i64::from(count));
    }

    /// Starts the pod of an ordinal, if it does not run as declared; whether it is ready then.
    fn run(&mut self, set: &Value, revision: &str, ordinal: u32) -> bool {
        let id = self.names().pod(ordinal);
        self.adopt(set, &id);
        let current = self.objects.get(&id).is_some_and(|p| {
            p["metadata"]["labels"]["controller-revision-hash"] == revision
                && p["status"]["conditions"][0]["status"] == "True"
        });
        if current {
            return true;
        }
        self.objects.remove(&id);
        let config = self.objects.get(&self.names().config_map()).cloned();
        let ready = ordinal == 0 || self.server.seeds(ordinal, config.as_ref());
        let claim = self.names().claim(ordinal).name;
        self.store(&id, pod(set, revision, &claim, ready));
        if ordinal == 0 {
            self.server.start(config.as_ref());
        }
        ready
    }

    /// Takes over a pod that an orphaning delete left.
    fn adopt(&mut self, set: &Value, id: &ObjectId) {
        let owner = owner(set);
        let orphan =
            self.objects.get(id).is_some_and(|p| p["metadata"]["ownerReferences"] != owner);
        if orphan {
            self.meddle(id, |pod| pod["metadata"]["ownerReferences"] = owner);
        }
    }

    /// Makes the claim and a pod in the given state, without a server.
    pub fn stall(&mut self, status: Value) {
        let id = self.names().stateful_set();
        let set = self.objects[&id].clone();
        let revision = phased::digest::of(&set["spec"]["template"]);
        self.provision(&set, 0);
        let claim = self.names().data_claim().name;
        let mut pod = pod(&set, &revision, &claim, false);
        merge(&mut pod["status"], &status);
        self.stored.objects.remove(&self.names().primary_pod());
        self.stored.store(&self.names().primary_pod(), pod);
        self.server.up = false;
        self.set_status(&id, &revision, false);
    }

    fn provision(&mut self, set: &Value, ordinal: u32) {
        let id = self.names().claim(ordinal);
        if !self.objects.contains_key(&id) {
            let mut claim = set["spec"]["volumeClaimTemplates"][0].clone();
            claim["status"] = json!({"phase": "Bound"});
            self.store(&id, claim);
        }
        // The provisioner's part: a volume grows as soon as it is asked to.
        let wanted = self.objects[&id]["spec"]["resources"]["requests"].clone();
        if self.objects[&id]["status"]["capacity"] != wanted {
            self.meddle(&id, |claim| claim["status"]["capacity"] = wanted);
        }
    }

    pub fn set_status(&mut self, id: &ObjectId, revision: &str, ready: bool) {
        self.set_count(id, revision, i64::from(ready), 1);
    }

    fn set_count(&mut self, id: &ObjectId, revision: &str, ready: i64, count: i64) {
        self.meddle(id, |set| {
            set["status"] = json!({
                "observedGeneration": set["metadata"]["generation"],
                "replicas": count, "readyReplicas": ready, "updatedReplicas": count,
                "currentRevision": revision, "updateRevision": revision,
            });
        });
    }
}

fn pod(set: &Value, revision: &str, claim: &str, ready: bool) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
    merge(&mut pod, &set["spec"]["template"]);
    pod["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
    pod["metadata"]["ownerReferences"] = owner(set);
    let volumes = pod["spec"]["volumes"].as_array_mut().unwrap();
    volumes.push(json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}}));
    let word = if ready { "True" } else { "False" };
    pod["status"] = json!({"conditions": [{"type": "Ready", "status": word}]});
    pod
}

fn owner(set: &Value) -> Value {
    json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "controller": true,
        "name": set["metadata"]["name"], "uid": set["metadata"]["uid"],
    }])
}

/// Three servers, Ready.
pub fn three() -> World {
    let mut root = seed();
    root["spec"]["replicas"] = json!(3);
    let mut world = World::of(root);
    world.bring_up();
    world.writes.clear();
    world
}
