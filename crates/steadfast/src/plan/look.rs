//! Reads of `plan`: the snapshot around a resource, and answers on the way.

use std::collections::BTreeMap;

use foresight::course::{Course, End};
use foresight::mistake::Mistake;
use foresight::rendering;
use foresight::stage::{Outside, Progress, Stage};
use foresight::words::named;
use operators::catalog::Row;
use phased::fact::{Answer, Fate, Question, Trouble};
use phased::{Live, Seen, Settings};
use runner::store::Store;
use serde_json::{Value, json};

use super::Task;
use crate::link::Link;

/// Resources that are looked at together before they are looked at one by one.
const FEW: usize = 4;

/// What is known of namespaces with many resources, by controller and namespace.
pub(super) type Stores = BTreeMap<(&'static str, String), Store>;

/// Reads namespaces with many resources as a whole.
pub(crate) async fn gather(link: &Link, tasks: &[Task]) -> Result<Stores, Mistake> {
    let mut counts: BTreeMap<(&'static str, String), (usize, &Row)> = BTreeMap::new();
    for task in tasks {
        let key = (task.row.name, task.id.namespace.clone());
        counts.entry(key).or_insert((0, &task.row)).0 += 1;
    }
    let mut stores = Stores::new();
    for ((name, namespace), (number, row)) in counts {
        if number > FEW {
            let store = link.viewer.gather(row.subject, &namespace, None).await;
            stores.insert((name, namespace), store.map_err(|e| unread(link, &e))?);
        }
    }
    Ok(stores)
}

/// A kind that could not be read, in words.
pub(crate) fn unread(link: &Link, unread: &runner::view::Unread) -> Mistake {
    let kind = unread.kind.plural;
    match unread.trouble.reason.as_str() {
        "Unreachable" | "Timeout" => link.silent(&unread.trouble.message),
        "Forbidden" => Mistake::new(
            format!("You may not list {kind} in namespace {}.", unread.namespace),
            format!(
                "Ask for that permission{}. The server says: {}",
                link.without, unread.trouble.message
            ),
        ),
        _ => Mistake::new(unread.to_string(), "Try again in a moment."),
    }
}

/// Plays the controller on from a resource as it would be stored.
pub(crate) async fn onward(
    link: &Link,
    task: &Task,
    root: Live,
    (stores, settings): (&Stores, &Settings),
) -> Result<(Course, End), Mistake> {
    let seen = look(link, task, root, (stores, settings)).await?;
    let stage = Stage::new(task.row.subject, seen, Outside::Supposed);
    Ok(play(link, Course::new(stage)).await)
}

/// The resource as it would be stored, as far as a dry run leaves it out.
pub(crate) fn root(task: &Task, mut after: Value, live: Option<&Live>) -> Result<Live, Mistake> {
    let kind = task.id.kind;
    after["apiVersion"] = json!(kind.api_version());
    after["kind"] = json!(kind.kind);
    match live {
        None => {
            after["metadata"]["uid"] = json!(rendering::UNKNOWN_UID);
            after["metadata"]["generation"] = json!(1);
        }
        Some(live) => {
            let generation = live.metadata.generation.unwrap_or(1);
            let changed = live.value["spec"] != after["spec"];
            after["metadata"]["generation"] = json!(generation + i64::from(changed));
            after["status"] = live.value["status"].clone();
        }
    }
    Live::new(after).map_err(|e| Mistake::new(format!("{}: {e}", named(&task.id)), ""))
}

/// The snapshot around the resource.
async fn look(
    link: &Link,
    task: &Task,
    root: Live,
    (stores, settings): (&Stores, &Settings),
) -> Result<Seen, Mistake> {
    let subject = task.row.subject;
    let wants = subject.wants(&root);
    let key = (task.row.name, task.id.namespace.clone());
    let objects = match stores.get(&key) {
        Some(store) => store.select(&wants),
        None => {
            let gathered =
                link.viewer.gather(subject, &task.id.namespace, Some(&task.id.name)).await;
            gathered.map_err(|e| unread(link, &e))?.select(&wants)
        }
    };
    Ok(Seen {
        resource: (),
        root,
        objects,
        facts: phased::Facts::new(),
        troubles: Vec::new(),
        now: link.clock.now(),
        settings: settings.clone(),
    })
}

/// Runs a course to its end, with answers from the cluster.
async fn play(link: &Link, mut course: Course) -> (Course, End) {
    loop {
        match course.run() {
            Progress::Done(end) => return (course, end),
            Progress::Needs(questions) => {
                for question in questions {
                    let answer = answer(link, &question).await;
                    course.stage.tell(question, answer);
                }
            }
        }
    }
}

/// An answer from the cluster. Of one that is only thought of nothing is known but what was put there:
/// objects beside the namespaces (storage classes) may exist.
pub(crate) async fn answer(link: &Link, question: &Question) -> Answer {
    match question {
        Question::Object(id) if link.is_thought() && !id.kind.namespaced => Err(Trouble {
            fate: Fate::WorldMayHeal,
            reason: "NotAsked".to_owned(),
            message: "there is no cluster to ask".to_owned(),
        }),
        other => link.viewer.answer(other).await,
    }
}
