//! ControllerRevisions of a StatefulSet: which template a pod was made from, named by hash.
//!
//! Must not touch pods.

use serde_json::{Value, json};

use crate::Failure;
use crate::builtin::door::{Door, REVISIONS};
use crate::builtin::field;

/// The two revisions a sync works with.
pub(super) struct Revisions {
    pub(super) current: Value,
    pub(super) update: Value,
    pub(super) collisions: i64,
    /// Every revision of the set, oldest first.
    pub(super) all: Vec<Value>,
}

/// Finds or makes the revision of the present template.
pub(super) fn resolve(door: &mut Door, set: &Value) -> Result<Revisions, Failure> {
    let mut all = owned(door, set);
    let collisions = field::number(set, "/status/collisionCount", 0);
    let next = all.iter().map(number).max().unwrap_or(0) + 1;
    let wanted = make(set, next, collisions);
    let equal = all.iter().rposition(|one| one["data"] == wanted["data"]);
    let mut collisions = collisions;
    let update = match equal {
        Some(index) if index + 1 == all.len() => all[index].clone(),
        Some(index) => {
            let mut old = all.remove(index);
            old["revision"] = json!(next);
            let moved = door.update(REVISIONS, old)?;
            all.push(moved.clone());
            moved
        }
        None => {
            let made = create(door, set, next, &mut collisions)?;
            all.push(made.clone());
            made
        }
    };
    let current_name = field::text(set, "/status/currentRevision");
    let current = all.iter().find(|one| field::name(one) == current_name);
    let current = current.cloned().unwrap_or_else(|| update.clone());
    Ok(Revisions { current, update, collisions, all })
}

/// Deletes what is beyond `revisionHistoryLimit` and used by no pod.
pub(super) fn truncate(
    door: &mut Door,
    set: &Value,
    revisions: &Revisions,
    pods: &[Value],
) -> Result<(), Failure> {
    let live = |one: &&Value| {
        let name = field::name(one);
        name == field::name(&revisions.current)
            || name == field::name(&revisions.update)
            || pods.iter().any(|pod| pod_revision(pod) == name)
    };
    let history: Vec<&Value> = revisions.all.iter().filter(|one| !live(one)).collect();
    let limit = field::number(set, "/spec/revisionHistoryLimit", 10).max(0) as usize;
    let surplus = history.len().saturating_sub(limit);
    for old in &history[..surplus] {
        door.delete(REVISIONS, old)?;
    }
    Ok(())
}

/// The revision label of a pod.
pub(super) fn pod_revision(pod: &Value) -> &str {
    field::text(pod, "/metadata/labels/controller-revision-hash")
}

/// The set with the template that a revision recorded.
pub(super) fn apply(set: &Value, revision: &Value) -> Value {
    let mut set = set.clone();
    let mut template = revision["data"]["spec"]["template"].clone();
    if let Some(map) = template.as_object_mut() {
        map.remove("$patch");
    }
    set["spec"]["template"] = template;
    set
}

fn number(revision: &Value) -> i64 {
    field::number(revision, "/revision", 0)
}

fn owned(door: &Door, set: &Value) -> Vec<Value> {
    let mut all = door.shared(REVISIONS, Some(field::namespace(set)));
    all.retain(|one| field::controller(one).is_some_and(|owner| owner["uid"] == field::uid(set)));
    let mut found: Vec<Value> = all.iter().map(|one| (**one).clone()).collect();
    found.sort_by_key(|one| (number(one), field::name(one).to_owned()));
    found
}

fn create(door: &mut Door, set: &Value, next: i64, collisions: &mut i64) -> Result<Value, Failure> {
    loop {
        let wanted = make(set, next, *collisions);
        match door.create(REVISIONS, field::namespace(set), wanted.clone()) {
            Err(failure) if failure.reason == "AlreadyExists" => {
                let there = door.get(REVISIONS, field::namespace(set), field::name(&wanted));
                match there {
                    Some(there) if there["data"] == wanted["data"] => return Ok(there),
                    _ => *collisions += 1,
                }
            }
            other => return other,
        }
    }
}

fn make(set: &Value, number: i64, collisions: i64) -> Value {
    let mut template = set["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    let data = json!({ "spec": { "template": template } });
    let hash = hash(&data, collisions);
    let prefix: String = field::name(set).chars().take(223).collect();
    let mut labels = field::map(set, "/spec/template/metadata/labels");
    labels.insert("controller.kubernetes.io/hash".into(), json!(hash));
    let mut metadata = json!({
        "name": format!("{prefix}-{hash}"),
        "namespace": field::namespace(set),
        "labels": labels,
        "ownerReferences": [field::owner_reference(set, true)],
    });
    let annotations = field::map(set, "/metadata/annotations");
    if !annotations.is_empty() {
        metadata["annotations"] = Value::Object(annotations);
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "data": data,
        "revision": number,
    })
}

/// FNV-1 (32 bit) over the patch and the collision count, spelt in kube's safe alphabet. The real
/// controller hashes the same text: sorted keys, and Go's escapes of `<`, `>` and `&`.
fn hash(data: &Value, collisions: i64) -> String {
    let text = data.to_string();
    let text = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    let mut sum: u32 = 2_166_136_261;
    for byte in text.bytes().chain(collisions.to_string().bytes()) {
        sum = sum.wrapping_mul(16_777_619) ^ u32::from(byte);
    }
    const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    sum.to_string().bytes().map(|byte| char::from(SAFE[usize::from(byte) % SAFE.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_depends_on_template_and_collisions() {
        let data = json!({"spec": {"template": {"spec": {"containers": []}}}});
        assert_ne!(hash(&data, 0), hash(&data, 1));
        assert_eq!(hash(&data, 0), hash(&data.clone(), 0));
        assert!(hash(&data, 0).bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte)));
    }
}
