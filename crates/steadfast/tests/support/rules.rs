//! What must hold at every moment, whatever happens to the operator.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;
use sim::Store;
use sim::checker::Moment;
use sim::world::World;

use super::{condition, is_ready, text};

/// Installs every rule that no history of one Database may break: the status does not contradict
/// itself, Ready is only said of a pod that is ready behind its Service, generated passwords stay,
/// and no volume is deleted (fault catalogue R4, R5; PG-26).
pub(crate) fn install(world: &World) {
    install_lasting(world);
    world.check("Ready only over a ready pod", becomes_ready_truly);
}

/// The rules that hold even while views are stale and servers fall over between two reads.
pub(crate) fn install_lasting(world: &World) {
    world.check("status agrees with itself", |moment| on_database(moment, agrees));
    world.check("observed generation never runs ahead", |moment| {
        on_database(moment, |database, _| {
            let number = |at: &str| database.pointer(at).and_then(Value::as_i64).unwrap_or(0);
            let (observed, now) =
                (number("/status/observedGeneration"), number("/metadata/generation"));
            if observed <= now { Ok(()) } else { Err(format!("{observed} of {now}")) }
        })
    });
    keep_passwords(world);
    world.check("no volume is deleted", |moment| {
        let claim = moment.change.key.plural == "persistentvolumeclaims";
        if claim && moment.change.after.is_none() && !forgotten(moment.store, moment) {
            return Err("a claim is gone".to_owned());
        }
        Ok(())
    });
}

/// Whether the Database that an object belongs to is gone or asked for the deletion.
fn forgotten(store: &Store, moment: &Moment) -> bool {
    let databases = store.list("database.example.com", "databases", Some("default"));
    !databases.into_iter().any(|(key, database)| {
        moment.change.key.name.contains(&key.name)
            && database["metadata"]["deletionTimestamp"].is_null()
    })
}

fn on_database(
    moment: &Moment,
    rule: impl Fn(&Value, &Moment) -> Result<(), String>,
) -> Result<(), String> {
    match &moment.change.after {
        Some(after) if moment.change.key.plural == "databases" => rule(after, moment),
        _ => Ok(()),
    }
}

fn agrees(database: &Value, _: &Moment) -> Result<(), String> {
    let phase = text(database, "/status/phase");
    if phase.is_empty() {
        return Ok(());
    }
    let ready = condition(database, "Ready")["status"] == "True";
    let flag = database["status"]["ready"] == true;
    if ready != flag || ready != (phase == "Ready") {
        return Err(format!("phase {phase}, ready {flag}, condition Ready {ready}"));
    }
    if ready && condition(database, "Progressing")["status"] == "True" {
        return Err("Ready and Progressing at once".to_owned());
    }
    Ok(())
}

/// Judges the write that turns Ready on, with the store as it is then.
fn becomes_ready_truly(moment: &Moment) -> Result<(), String> {
    on_database(moment, |database, moment| {
        let before = moment.change.before.as_ref().is_some_and(|b| is_ready(b));
        if before || !is_ready(database) {
            return Ok(());
        }
        let (namespace, name) = (&moment.change.key.namespace, &moment.change.key.name);
        let get = |group: &str, plural: &str, name: &str| {
            moment.store.get(&sim::Key::new(group, plural, namespace, name))
        };
        let pod = get("", "pods", &format!("{name}-0")).ok_or("there is no pod")?;
        if condition(pod, "Ready")["status"] != "True" {
            return Err("the pod is not ready".to_owned());
        }
        let set = get("apps", "statefulsets", name).ok_or("there is no StatefulSet")?;
        // How many standbys there are, and how far they are, is no matter of the primary.
        let count = |at: &str| set.pointer(at).and_then(Value::as_i64).unwrap_or(1);
        let several = count("/spec/replicas") > 1 || count("/status/replicas") > 1;
        let update = &set["status"]["updateRevision"];
        if several && &pod["metadata"]["labels"]["controller-revision-hash"] != update {
            return Err("the primary is of a superseded revision".to_owned());
        }
        if !several
            && (set["status"]["observedGeneration"] != set["metadata"]["generation"]
                || &set["status"]["currentRevision"] != update)
        {
            return Err("the StatefulSet has not rolled out".to_owned());
        }
        let service = get("", "services", name).ok_or("there is no Service")?;
        let selector = service["spec"]["selector"].as_object().ok_or("it selects nothing")?;
        let labels = &pod["metadata"]["labels"];
        match selector.iter().all(|(key, value)| &labels[key] == value) {
            true => Ok(()),
            false => Err("the Service does not select the pod".to_owned()),
        }
    })
}

/// The value of the key `password`, once it is there, changes only by a user's hand, and the
/// Secret goes only with its Database.
fn keep_passwords(world: &World) {
    let first: Mutex<BTreeMap<String, Value>> = Mutex::default();
    world.check("passwords are made once", move |moment| {
        if moment.change.key.plural != "secrets" {
            return Ok(());
        }
        let mut first = first.lock().expect("no rule panics");
        let name = &moment.change.key.name;
        let Some(after) = &moment.change.after else {
            let gone = forgotten(moment.store, moment) || name.ends_with("-credentials");
            first.remove(name);
            return if gone { Ok(()) } else { Err("a Secret is gone".to_owned()) };
        };
        let password = &after["data"]["password"];
        match first.get(name) {
            Some(kept) if kept != password && !edited_by_user(after) => {
                Err("another password was made".to_owned())
            }
            _ => {
                first.insert(name.clone(), password.clone());
                Ok(())
            }
        }
    });
}

fn edited_by_user(secret: &Value) -> bool {
    let entries = secret["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().any(|entry| {
        text(entry, "/manager").starts_with("kubectl")
            && !entry["fieldsV1"]["f:data"]["f:password"].is_null()
    })
}

/// Fails with every broken rule.
pub(crate) fn hold(world: &World) {
    let broken = world.violations();
    assert!(broken.is_empty(), "{broken:#?}");
}
