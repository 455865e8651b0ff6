//! What the StatefulSet controller, the kubelet and the scripts of the image do by themselves: one
//! move at a time, in the order of an `OrderedReady` set with a partition.

use std::collections::{BTreeMap, BTreeSet};

use phased::ObjectId;
use phased::digest;
use serde_json::{Value, json};

use super::World;
use super::stored::merge;

/// Annotation by which a test keeps a pod from becoming ready.
const STUCK: &str = "test/stuck";

impl World {
    fn pod_id(&self, ordinal: u32) -> ObjectId {
        let names = self.names();
        let kind = phased::KindRef::of::<k8s_openapi::api::core::v1::Pod>(true);
        ObjectId::new(kind, names.namespace, format!("{}-{ordinal}", names.name))
    }

    pub fn pod(&self, ordinal: u32) -> Option<&Value> {
        self.objects.get(&self.pod_id(ordinal))
    }

    fn ordinals(&self) -> BTreeSet<u32> {
        (0..16).filter(|n| self.pod(*n).is_some()).collect()
    }

    pub fn ready_pods(&self) -> BTreeSet<u32> {
        let ready = |n: &u32| {
            self.pod(*n).is_some_and(|pod| pod["status"]["conditions"][0]["status"] == "True")
        };
        self.ordinals().into_iter().filter(ready).collect()
    }

    /// Images that the pods run, by ordinal.
    pub fn images(&self) -> Vec<String> {
        let image = |n: u32| self.pod(n).unwrap()["spec"]["containers"][0]["image"].clone();
        self.ordinals().into_iter().map(|n| image(n).as_str().unwrap().to_owned()).collect()
    }

    pub fn lose_pod(&mut self, ordinal: u32) {
        let id = self.pod_id(ordinal);
        self.stored.objects.remove(&id);
        self.next();
    }

    pub fn break_pod(&mut self, ordinal: u32) {
        let id = self.pod_id(ordinal);
        self.meddle(&id, |pod| {
            pod["metadata"]["annotations"][STUCK] = json!("true");
            pod["status"]["conditions"][0]["status"] = json!("False");
        });
    }

    pub fn mend_pod(&mut self, ordinal: u32) {
        let id = self.pod_id(ordinal);
        self.meddle(&id, |pod| pod["metadata"]["annotations"][STUCK] = json!("no"));
    }

    /// One move of the set's controller, then its status.
    pub fn tick(&mut self) {
        let id = self.names().stateful_set();
        let Some(set) = self.objects.get(&id).cloned() else { return };
        let before = set["status"].clone();
        let update = digest::of(&set["spec"]["template"]);
        let current = before["currentRevision"].as_str().unwrap_or(&update).to_owned();
        self.remember(&update, &set["spec"]["template"]);
        self.step_set(&set, &current, &update);
        self.count(&id, &current, &update);
    }

    /// Templates by revision, kept as a ControllerRevision is.
    fn remember(&mut self, revision: &str, template: &Value) {
        let id = self.revisions_id();
        let mut all = self.objects.get(&id).cloned().unwrap_or_else(|| json!({"metadata": {}}));
        if all["data"][revision].is_null() {
            all["data"][revision] = template.clone();
            self.stored.objects.insert(id, all);
        }
    }

    fn revisions_id(&self) -> ObjectId {
        let kind = phased::KindRef::of::<k8s_openapi::api::apps::v1::ControllerRevision>(true);
        ObjectId::new(kind, "default", "all")
    }

    fn step_set(&mut self, set: &Value, current: &str, update: &str) {
        let wanted = u32::try_from(set["spec"]["replicas"].as_u64().unwrap()).unwrap();
        let rolling = &set["spec"]["updateStrategy"]["rollingUpdate"];
        let partition = u32::try_from(rolling["partition"].as_u64().unwrap_or(0)).unwrap();
        if let Some(left) = self.ordinals().into_iter().rfind(|n| *n >= wanted) {
            self.stop(left);
            return;
        }
        for ordinal in 0..wanted {
            match self.pod(ordinal) {
                None => {
                    let revision = if ordinal >= partition { update } else { current };
                    self.start(set, ordinal, revision);
                    return;
                }
                Some(_) if self.ready_pods().contains(&ordinal) => {}
                Some(_) => {
                    self.become_ready(ordinal);
                    return;
                }
            }
        }
        let old = (partition..wanted).rfind(|n| {
            self.pod(*n).unwrap()["metadata"]["labels"]["controller-revision-hash"] != update
        });
        if let Some(ordinal) = old {
            assert!(
                wanted < 3 || self.ready_pods().len() == wanted as usize,
                "a second member is taken down"
            );
            self.lose_pod(ordinal);
        }
    }

    /// The stop hook: it leaves the ensemble when the record says so.
    fn stop(&mut self, ordinal: u32) {
        self.lose_pod(ordinal);
        let size = self.servers.record().and_then(|r| r.strip_prefix("CLUSTER_SIZE="));
        let leaves = size.is_some_and(|size| size.parse::<u32>().unwrap() < ordinal + 1);
        if leaves && !self.servers.cut_off && !self.servers.mute.contains(&ordinal) {
            self.servers.voters.remove(&ordinal);
            self.servers.version += 1;
        }
    }

    fn start(&mut self, set: &Value, ordinal: u32, revision: &str) {
        let template = self.objects[&self.revisions_id()]["data"][revision].clone();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
        merge(&mut pod, &template);
        pod["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "controller": true,
            "name": set["metadata"]["name"], "uid": set["metadata"]["uid"],
        }]);
        let image = pod["spec"]["containers"][0]["image"].clone();
        pod["status"] = json!({
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [{"name": "zookeeper", "image": image, "imageID": "",
                "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}}],
        });
        if image.as_str().unwrap().ends_with(":bad") {
            pod["status"]["containerStatuses"][0]["state"] = json!({"waiting": {
                "reason": "ImagePullBackOff", "message": "not found"}});
        }
        let id = self.pod_id(ordinal);
        self.store(&id, pod);
        self.read_settings(ordinal);
    }

    fn become_ready(&mut self, ordinal: u32) {
        let pod = self.pod(ordinal).unwrap();
        let stuck = pod["metadata"]["annotations"][STUCK] == "true";
        if stuck || pod["spec"]["containers"][0]["image"].as_str().unwrap().ends_with(":bad") {
            return;
        }
        let id = self.pod_id(ordinal);
        self.meddle(&id, |pod| {
            pod["status"] = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        });
        if self.servers.voters.insert(ordinal) {
            self.servers.version += 1;
        }
    }

    /// A server reads its file when it starts.
    fn read_settings(&mut self, ordinal: u32) {
        let config = self.objects.get(&self.names().config_map());
        let text = config.and_then(|c| c["data"]["zoo.cfg"].as_str()).unwrap_or("").to_owned();
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let settings: BTreeMap<String, String> =
            pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        self.servers.running.insert(ordinal, settings);
    }

    fn count(&mut self, id: &ObjectId, current: &str, update: &str) {
        let pods = self.ordinals();
        let of = |n: &&u32| {
            self.pod(**n).unwrap()["metadata"]["labels"]["controller-revision-hash"] == update
        };
        let updated = pods.iter().filter(of).count();
        let (total, ready) = (pods.len(), self.ready_pods().len());
        let set = &self.objects[id];
        let wanted = set["spec"]["replicas"].as_u64().unwrap();
        let done = [updated, total, ready].iter().all(|n| *n as u64 == wanted);
        let current = if done { update } else { current };
        let status = json!({
            "observedGeneration": set["metadata"]["generation"],
            "replicas": total, "readyReplicas": ready, "updatedReplicas": updated,
            "currentRevision": current, "updateRevision": update,
        });
        self.meddle(id, |set| set["status"] = status);
    }
}
