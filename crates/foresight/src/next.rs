//! What a controller does next, in words: its steps, and the questions that only it can ask.

use phased::fact::{Question, Reach, SqlRequest, WordRequest, ZooKeeperRequest};
use phased::step::{Expect, Finalizer, Step};

use crate::words::named;

/// The object of a step.
pub fn subject_of(step: &Step) -> Option<String> {
    match step {
        Step::Apply(step) => Some(named(&step.id)),
        Step::CreateOnce(step) => Some(named(&step.id)),
        Step::Derive(step) => Some(named(&step.id)),
        Step::Delete(step) => Some(named(&step.id)),
        Step::Finalizer(_) | Step::Act(_) => None,
    }
}

/// A question.
pub fn ask_line(question: &Question) -> String {
    match question {
        Question::Sql(SqlRequest { host, port, .. })
        | Question::Word(WordRequest { host, port, .. })
        | Question::ZooKeeper(ZooKeeperRequest { host, port, .. }) => {
            format!("asks the server at {host}:{port}")
        }
        Question::Reach(Reach::Tcp { host, port, .. }) => format!("tries to reach {host}:{port}"),
        Question::Reach(Reach::Http { url, .. }) => format!("tries to reach {url}"),
        Question::Object(id) => format!("reads {}", named(id)),
        Question::Events { namespace, .. } => format!("reads Events in {namespace}"),
    }
}

/// A step.
pub fn step_line(step: &Step) -> String {
    match step {
        Step::Apply(step) if step.expect == Expect::Absent => {
            format!("creates {}", named(&step.id))
        }
        Step::Apply(step) => format!("changes {}: {}", named(&step.id), step.why),
        Step::CreateOnce(step) => format!("creates {}", named(&step.id)),
        Step::Derive(step) => format!("derives keys of {}: {}", named(&step.id), step.why),
        Step::Delete(step) => format!("deletes {}: {}", named(&step.id), step.why),
        Step::Finalizer(Finalizer::Add(name)) => format!("puts the finalizer {name} on"),
        Step::Finalizer(Finalizer::Remove(name)) => format!("takes the finalizer {name} off"),
        Step::Act(action) => format!("does {}: {}", action.name, action.why),
    }
}
