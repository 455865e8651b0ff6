//! A made-up kind with all that a controller may have, and a bench that brings it up by forecast.
//!
//! `foresight` must not know a controller; this one belongs to its tests alone.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(unreachable_pub, reason = "a module of tests is nobody's interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod children;
mod controller;

use std::collections::BTreeMap;

use foresight::course::{Course, End};
use foresight::forecast::{Edit, Forecast};
use foresight::page::{self, Page};
use foresight::stage::{Outside, Progress, Stage};
use foresight::{change, edit};
use jiff::Timestamp;
use phased::fact::Reply;
use phased::subject::Of;
use phased::{Live, ObjectId, Question, Seen, Settings, Subject};
use serde_json::{Value, json};

#[allow(unused_imports, reason = "each test file uses its own part")]
pub use children::id;
pub use controller::Widget;

/// The subject.
pub const WIDGET: &dyn Subject = Of::<Widget>::SUBJECT;

/// The time of every snapshot.
pub fn noon() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

/// A Widget as a user writes it.
pub fn manifest(spec: &Value) -> Value {
    json!({
        "apiVersion": "toys.example.com/v1", "kind": "Widget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": spec,
    })
}

/// The usual spec.
pub fn usual() -> Value {
    json!({"image": "web:1", "replicas": 3, "size": "10Gi", "greeting": "hello"})
}

/// A snapshot: the Widget and what is around it.
#[derive(Clone)]
pub struct Bench {
    pub root: Value,
    pub objects: BTreeMap<ObjectId, Live>,
    pub now: Timestamp,
}

impl Bench {
    /// Nothing but a Widget, as a server stored it.
    pub fn new(spec: &Value) -> Self {
        let mut root = edit::remembered(&manifest(spec));
        root["metadata"]["uid"] = json!("uid-of-web");
        root["metadata"]["resourceVersion"] = json!("1");
        root["metadata"]["generation"] = json!(1);
        root["metadata"]["creationTimestamp"] = json!("2026-03-01T11:00:00Z");
        Self { root, objects: BTreeMap::new(), now: "2026-03-01T11:00:05Z".parse().unwrap() }
    }

    /// A Widget that is settled.
    pub fn settled(spec: &Value) -> Self {
        let (course, end) = Self::new(spec).play();
        assert!(matches!(end, End::At(_)), "{end:?}");
        let objects = course.stage.world.all().map(|(id, live)| (id.clone(), live.clone()));
        Self { root: course.stage.seen.root.value.clone(), objects: objects.collect(), now: noon() }
    }

    /// The stage of this snapshot.
    pub fn stage(&self, outside: Outside) -> Stage {
        let seen = Seen {
            resource: (),
            root: Live::new(self.root.clone()).unwrap(),
            objects: self.objects.clone(),
            facts: phased::Facts::new(),
            troubles: Vec::new(),
            now: self.now,
            settings: Settings::default(),
        };
        Stage::new(WIDGET, seen, outside)
    }

    /// Plays it to its end; what is not on the bench does not exist.
    pub fn play(&self) -> (Course, End) {
        let mut course = Course::new(self.stage(Outside::Supposed));
        loop {
            match course.run() {
                Progress::Done(end) => return (course, end),
                Progress::Needs(questions) => {
                    questions.into_iter().for_each(|q| tell(&mut course.stage, q));
                }
            }
        }
    }

    /// The forecast of another spec.
    pub fn foresee(&self, spec: &Value) -> Forecast {
        let mut after = self.root.clone();
        after["spec"] = spec.clone();
        let changes = change::between("Widget", &self.root, &after);
        let generation = self.root["metadata"]["generation"].as_i64().unwrap();
        after["metadata"]["generation"] = json!(generation + 1);
        let edit = Edit { changes, ..Edit::default() };
        let (course, end) = Self { root: after, ..self.clone() }.play();
        Forecast::of(&course, &end, "web.yaml".to_owned(), edit)
    }

    /// Changes an object behind the controller's back.
    pub fn meddle(&mut self, id: &ObjectId, change: impl FnOnce(&mut Value)) {
        let mut value = self.objects[id].value.clone();
        change(&mut value);
        self.objects.insert(id.clone(), Live::new(value).unwrap());
    }
}

/// Answers as an empty cluster does.
pub fn tell(stage: &mut Stage, question: Question) {
    let reply = match &question {
        Question::Object(_) => Reply::Object(None),
        Question::Events { .. } => Reply::Events(Vec::new()),
        other => panic!("asked outside: {other:?}"),
    };
    stage.tell(question, Ok(reply));
}

/// A forecast as people see it.
pub fn page(forecast: &Forecast) -> String {
    let mut page = Page::new(false);
    page::forecast::add(&mut page, forecast);
    let text = page.text(false);
    assert!(text.lines().all(|line| line.chars().count() <= page::WIDTH), "too wide:\n{text}");
    text
}
