//! Binding a pod to a node: the scheduler's one write that no update may do.

use serde_json::{Value, json};

use crate::clock;
use crate::cluster::{Actor, Core};
use crate::status::Failure;
use crate::store::Key;

impl Core {
    /// Binds the pod at `key` to `node`.
    ///
    /// # Errors
    /// 404 without such a pod, 409 when it is bound or being deleted.
    pub fn bind(&mut self, by: &Actor, key: &Key, node: &str) -> Result<(), Failure> {
        let kind = self.kinds.get("", "pods").ok_or_else(Failure::no_such_resource)?;
        let before = self.live(&kind, key)?;
        if before["metadata"]["deletionTimestamp"].is_string() {
            let text = format!("pod {} is being deleted, cannot be assigned to a host", key.name);
            return Err(Failure::conflict_on(&kind, &key.name, &text));
        }
        let mut binding = kind.as_ref().clone();
        binding.plural = "pods/binding".to_owned();
        if let Some(bound) = before["spec"]["nodeName"].as_str().filter(|name| !name.is_empty()) {
            let text = format!("pod {} is already assigned to node \"{bound}\"", key.name);
            return Err(Failure::conflict_on(&binding, &key.name, &text));
        }
        let mut object = before.clone();
        let condition = json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": clock::seconds(self.now()),
        });
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|known: &Value| known["type"] != "PodScheduled");
        conditions.push(condition);
        object["status"]["conditions"] = json!(conditions);
        self.track(by, &kind, None, Some(&before), &mut object);
        // The real server sets the node behind the back of the field managers.
        object["spec"]["nodeName"] = json!(node);
        self.keep(&kind, key.clone(), object);
        Ok(())
    }
}
