//! A small world around `plan`: objects in a map, a server that answers SQL from a few facts, and
//! the one [`World::pass`] through which every test calls the controller, with the lint on every
//! plan.
//!
//! It is no simulator: it carries steps out literally, and everything that a cluster does by itself
//! (rolling out, provisioning, failing) a test says in so many words.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(unreachable_pub, reason = "a module of tests is nobody's interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

pub mod cluster;
mod hands;
pub mod server;
#[path = "../stored/mod.rs"]
pub mod stored;

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use operators::database::names::{self, Names};
use operators::database::{DatabaseController, secrets};
use phased::fact::{Answer, Question, Reach, Reply, Trouble};
use phased::lint::{self, Hidden, LintContext};
use phased::{Controller, Live, ObjectId, Plan, Step, StepTrouble};
use serde_json::{Value, json};

use server::Server;
use stored::Stored;
pub use stored::merge;
use stored::play::{self, Play};

/// Everything around one Database.
#[derive(Clone)]
pub struct World {
    pub stored: Stored,
    pub server: Server,
    pub down: BTreeMap<Reach, Trouble>,
    /// Pods of a deleted set stay until the test removes them.
    pub pods_linger: bool,
    /// What keeps commands from being run in pods.
    pub exec_trouble: Option<Trouble>,
}

impl Deref for World {
    type Target = Stored;

    fn deref(&self) -> &Stored {
        &self.stored
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Stored {
        &mut self.stored
    }
}

/// The seed's resource.
pub fn seed() -> Value {
    json!({
        "apiVersion": "database.example.com/v1",
        "kind": "Database",
        "metadata": {"name": "test-db", "namespace": "default"},
        "spec": {
            "image": "postgres:14", "replicas": 1, "databaseName": "mydb", "username": "admin",
            "storage": {"size": "10Gi"},
        },
    })
}

impl Play for World {
    type Of = DatabaseController;
    const CONDITIONS: &'static [&'static str] = &["Ready", "Progressing", "Degraded"];

    fn shows(_: &ObjectId, live: &Live) -> bool {
        live.label("app.kubernetes.io/managed-by") == Some("steadfast")
    }

    fn lint(&self, plan: &Plan) {
        let mut context = LintContext::new(DatabaseController::ladder());
        context.stored_status = self.root.get("status").cloned();
        context.allow_data_deletes = self.root["spec"]["deletionPolicy"] == "Delete";
        context.secrets = self
            .objects
            .iter()
            .filter(|(id, _)| id.kind == names::secret_kind())
            .filter_map(|(_, value)| value["data"]["password"].as_str())
            .filter_map(|encoded| String::from_utf8(STANDARD.decode(encoded).ok()?).ok())
            .filter(|password| password.len() >= 4)
            .map(Hidden::new)
            .collect();
        let violations = lint::check(plan, &context);
        assert!(violations.is_empty(), "{violations:#?}\n{plan:#?}");
    }

    fn answer(&mut self, question: &Question) -> Answer {
        match question {
            Question::Reach(reach) => match self.down.get(reach) {
                Some(trouble) => Err(trouble.clone()),
                None => Ok(Reply::Reached),
            },
            Question::Sql(request) => {
                Ok(Reply::Sql(self.server.session(&self.stored.objects, request)))
            }
            other => panic!("{other:?}"),
        }
    }

    fn carry_out(&mut self, step: &Step) -> Result<bool, Box<StepTrouble>> {
        self.do_step(step)
    }
}

impl World {
    pub fn new() -> Self {
        Self::of(seed())
    }

    pub fn of(root: Value) -> Self {
        let name = root["metadata"]["name"].as_str().unwrap().to_owned();
        Self {
            stored: Stored::of(root),
            server: Server { name, ..Server::default() },
            down: BTreeMap::new(),
            pods_linger: false,
            exec_trouble: None,
        }
    }

    /// A world in which the seed's resource is Ready; made once a process.
    pub fn ready() -> Self {
        static READY: std::sync::LazyLock<World> = std::sync::LazyLock::new(|| {
            let mut world = World::new();
            world.bring_up();
            world.writes.clear();
            world
        });
        READY.clone()
    }

    pub fn bring_up(&mut self) {
        for _ in 0..40 {
            self.pass();
            self.roll_out();
            if self.phase() == "Ready" && self.quiet() {
                return;
            }
        }
        panic!("never Ready: {}", self.root["status"]);
    }

    /// Passes until nothing is written any more.
    pub fn settle(&mut self) {
        for _ in 0..40 {
            let before = self.writes.len();
            self.pass();
            if self.writes.len() == before {
                return;
            }
        }
        panic!("does not settle: {:?}", self.writes);
    }

    /// The same, with the StatefulSet controller at work.
    pub fn settle_rolling(&mut self) {
        for _ in 0..40 {
            let before = self.writes.len();
            self.pass();
            self.roll_out();
            if self.writes.len() == before && self.quiet() {
                return;
            }
        }
        panic!("does not settle: {:?}", self.writes);
    }

    fn quiet(&mut self) -> bool {
        let plan = self.plan(&[]);
        plan.steps.is_empty() && plan.status.is_none()
    }

    pub fn names(&self) -> Names {
        let text = |key: &str| self.root["metadata"][key].as_str().unwrap().to_owned();
        Names::new(text("namespace"), text("name"))
    }

    /// The same, if the object exists.
    pub fn meddle_if(
        &mut self,
        id: impl FnOnce(&Self) -> ObjectId,
        change: impl FnOnce(&mut Value),
    ) {
        let id = id(self);
        if self.objects.contains_key(&id) {
            self.meddle(&id, change);
        }
    }

    /// Plans, answering questions, and lints every plan on the way.
    pub fn plan(&mut self, troubles: &[StepTrouble]) -> Plan {
        play::plan(self, troubles)
    }

    /// One pass: plan, carry out, write the status.
    pub fn pass(&mut self) -> Plan {
        play::pass(self)
    }

    pub fn secret(&self, id: &ObjectId, key: &str) -> String {
        decode(&self.objects[id]["data"][key])
    }

    /// Writes a password as a person would.
    pub fn write_password(&mut self, password: &str) {
        let id = self.names().credentials_secret();
        let encoded = STANDARD.encode(password);
        self.meddle(&id, |secret| secret["data"][secrets::PASSWORD_KEY] = json!(encoded));
    }

    pub fn delete_root(&mut self, policy: &str) {
        self.root["spec"]["deletionPolicy"] = json!(policy);
        self.root["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    }
}

/// Text out of base64.
pub fn decode(value: &Value) -> String {
    String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap()
}
