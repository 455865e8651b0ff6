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

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use operators::database::api::Database;
use operators::database::names::{self, Names};
use operators::database::{DatabaseController, secrets};
use phased::fact::{Answer, Question, Reach, Reply, SeenEvent, Trouble};
use phased::lint::{self, Hidden, LintContext};
use phased::{Controller, Live, ObjectId, Observed, Plan, Settings, StepTrouble, Want};
use serde_json::{Value, json};

use server::Server;

/// Everything around one Database.
#[derive(Clone)]
pub struct World {
    pub root: Value,
    pub objects: BTreeMap<ObjectId, Value>,
    pub server: Server,
    pub down: BTreeMap<Reach, Trouble>,
    pub unreadable: BTreeMap<ObjectId, Trouble>,
    pub events: Vec<SeenEvent>,
    pub refuses: BTreeMap<ObjectId, Trouble>,
    pub settings: Settings,
    pub now: Timestamp,
    pub counter: u64,
    pub writes: Vec<String>,
    pub gone: bool,
    /// Pods of a deleted set stay until the test removes them.
    pub pods_linger: bool,
    /// What the watches do not show although it exists.
    pub unseen: std::collections::BTreeSet<ObjectId>,
    /// The pass ends before or after the write of this number, once.
    pub crash_at: Option<(usize, bool)>,
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

impl World {
    pub fn new() -> Self {
        Self::of(seed())
    }

    pub fn of(mut root: Value) -> Self {
        root["metadata"]["uid"] = json!("uid-root");
        root["metadata"]["resourceVersion"] = json!("1");
        root["metadata"]["generation"] = json!(1);
        root["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z");
        let name = root["metadata"]["name"].as_str().unwrap().to_owned();
        Self {
            root,
            objects: BTreeMap::new(),
            server: Server { name, ..Server::default() },
            down: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            events: Vec::new(),
            refuses: BTreeMap::new(),
            settings: Settings::default(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            counter: 1,
            writes: Vec::new(),
            gone: false,
            pods_linger: false,
            unseen: std::collections::BTreeSet::new(),
            crash_at: None,
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

    pub fn phase(&self) -> &str {
        self.root["status"]["phase"].as_str().unwrap_or("")
    }

    pub fn condition(&self, kind: &str) -> (String, String, String) {
        let all = self.root["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|c| c["type"] == kind).unwrap_or(Value::Null);
        let text = |key: &str| one[key].as_str().unwrap_or("").to_owned();
        (text("status"), text("reason"), text("message"))
    }

    /// `phase/Ready's status/Ready's reason`.
    pub fn story(&self) -> String {
        let (status, reason, _) = self.condition("Ready");
        format!("{}/{status}/{reason}", self.phase())
    }

    pub fn live(&self, id: &ObjectId) -> Option<Live> {
        self.objects.get(id).map(|v| Live::new(v.clone()).unwrap())
    }

    /// Changes the spec, as an admitted edit.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let before = self.root["spec"].clone();
        change(&mut self.root);
        let version = self.next();
        self.root["metadata"]["resourceVersion"] = json!(version);
        if self.root["spec"] != before {
            let generation = self.root["metadata"]["generation"].as_i64().unwrap() + 1;
            self.root["metadata"]["generation"] = json!(generation);
        }
    }

    /// Changes an object behind the operator's back.
    pub fn meddle(&mut self, id: &ObjectId, change: impl FnOnce(&mut Value)) {
        let mut object = self.objects[id].clone();
        change(&mut object);
        self.store(id, object);
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

    pub fn advance(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub fn next(&mut self) -> String {
        self.counter += 1;
        self.counter.to_string()
    }

    /// What the controller sees.
    pub fn observe(&self, facts: phased::Facts, troubles: &[StepTrouble]) -> Observed<Database> {
        let root = Live::new(self.root.clone()).unwrap();
        let wants = DatabaseController::wants(&root);
        let wanted = |id: &ObjectId, live: &Live| {
            live.label("app.kubernetes.io/managed-by") == Some("steadfast")
                && wants.iter().any(|want| match want {
                    Want::Named(named) => named == id,
                    Want::Labelled { kind, namespace, labels } => {
                        *kind == id.kind
                            && *namespace == id.namespace
                            && labels.iter().all(|(k, v)| live.label(k) == Some(v))
                    }
                })
        };
        let objects = self
            .objects
            .keys()
            .filter_map(|id| self.live(id).map(|live| (id.clone(), live)))
            .filter(|(id, live)| wanted(id, live) && !self.unseen.contains(id))
            .collect();
        Observed {
            resource: serde_json::from_value(self.root.clone()).unwrap(),
            root,
            objects,
            facts,
            troubles: troubles.to_vec(),
            now: self.now,
            settings: self.settings.clone(),
        }
    }

    /// Plans, answering questions, and lints every plan on the way.
    pub fn plan(&mut self, troubles: &[StepTrouble]) -> Plan {
        let mut facts = phased::Facts::new();
        for round in 0..=Plan::ROUNDS {
            let observed = self.observe(facts.clone(), troubles);
            let plan = DatabaseController::plan(&observed);
            assert_eq!(plan, DatabaseController::plan(&observed), "a plan is a function");
            self.lint(&plan);
            if plan.asks.is_empty() {
                return plan;
            }
            assert!(round < Plan::ROUNDS, "asks for ever: {:?}", plan.asks);
            for question in plan.asks {
                assert!(!facts.contains_key(&question), "asked twice: {question:?}");
                let answer = self.answer(&question);
                facts.insert(question, answer);
            }
        }
        unreachable!()
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
            Question::Object(id) => match self.unreadable.get(id) {
                Some(trouble) => Err(trouble.clone()),
                None => Ok(Reply::Object(self.live(id))),
            },
            Question::Events { about, .. } => Ok(Reply::Events(
                self.events.iter().filter(|e| about.contains(&e.about)).cloned().collect(),
            )),
            Question::Reach(reach) => match self.down.get(reach) {
                Some(trouble) => Err(trouble.clone()),
                None => Ok(Reply::Reached),
            },
            Question::Sql(request) => Ok(Reply::Sql(self.server.session(&self.objects, request))),
        }
    }

    /// One pass: plan, carry out, write the status.
    pub fn pass(&mut self) -> Plan {
        let plan = self.plan(&[]);
        let mut root_changed = false;
        for step in &plan.steps {
            if self.crashes(true) {
                return plan;
            }
            let done = self.carry_out(step);
            if self.crashes(false) {
                return plan;
            }
            match done {
                Ok(changed) => root_changed |= changed,
                Err(trouble) => {
                    let plan = self.plan(&[*trouble]);
                    self.report(&plan, false);
                    return plan;
                }
            }
        }
        if plan.status.is_none() || !self.crashes(true) {
            self.report(&plan, root_changed);
            self.crashes(false);
        }
        plan
    }

    /// Whether the operator ends now: before the write that would be next, or after the last.
    fn crashes(&mut self, before: bool) -> bool {
        let Some((at, wanted)) = self.crash_at else { return false };
        let reached = if before { self.writes.len() == at } else { self.writes.len() == at + 1 };
        let crash = wanted == before && reached;
        if crash {
            self.crash_at = None;
            // What was planned and not done must be planned again.
            self.writes.push("crash".to_owned());
        }
        crash
    }

    fn report(&mut self, plan: &Plan, root_changed: bool) {
        let Some(write) = &plan.status else { return };
        if !root_changed {
            assert_eq!(write.resource_version, self.root["metadata"]["resourceVersion"]);
        }
        let others: Vec<Value> = self.root["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|c| {
                !["Ready", "Progressing", "Degraded"].contains(&c["type"].as_str().unwrap())
            })
            .cloned()
            .collect();
        self.root["status"] = write.status.clone();
        if let Some(all) = self.root["status"]["conditions"].as_array_mut() {
            all.extend(others);
        }
        let version = self.next();
        self.root["metadata"]["resourceVersion"] = json!(version);
        self.writes.push(format!("status {}", self.phase()));
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

/// Lays one object over another, as an apply does with the fields in use here.
pub fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
