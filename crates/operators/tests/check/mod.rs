//! A small world around `plan`: objects in a map, a server that answers SQL from a few facts, and
//! the one [`World::pass`] through which every test calls the controller, with the lint on every
//! plan.
//!
//! It is no simulator: it carries steps out literally, and everything that a cluster does by itself
//! (rolling out, provisioning, failing) a test says in so many words.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(unreachable_pub, reason = "a module of tests is nobody's interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

pub mod server;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use operators::database::api::Database;
use operators::database::names::{self, Names};
use operators::database::{DatabaseController, KIND, secrets};
use phased::fact::{Answer, Question, Reach, Reply, SeenEvent, Trouble};
use phased::lint::{self, Hidden, LintContext};
use phased::step::{Apply, Expect, Finalizer, Generate, Step, TextPiece};
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
        Self {
            root,
            objects: BTreeMap::new(),
            server: Server::default(),
            down: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            events: Vec::new(),
            refuses: BTreeMap::new(),
            settings: Settings::default(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            counter: 1,
            writes: Vec::new(),
            gone: false,
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
            .filter(|(id, live)| wanted(id, live))
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
        context.allow_data_deletes = self.root["spec"]["deletionPolicy"] == "Delete"
            && self.root["metadata"].get("deletionTimestamp").is_some();
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

    fn carry_out(&mut self, step: &Step) -> Result<bool, Box<StepTrouble>> {
        match step {
            Step::Apply(apply) => self.refuse(&apply.id, "patch").map(|()| self.apply(apply))?,
            Step::CreateOnce(create) => {
                self.refuse(&create.id, "create")?;
                assert!(!self.objects.contains_key(&create.id), "{} exists", create.id);
                let mut object = create.template.clone();
                object["data"] = json!({});
                for value in &create.generate {
                    let (key, text) = self.generate(value, &object);
                    object["data"][key] = json!(STANDARD.encode(text));
                }
                self.store(&create.id, object);
                self.writes.push(format!("create {}", create.id));
            }
            Step::Derive(derive) => {
                self.refuse(&derive.id, "patch")?;
                let mut object = self.objects[&derive.id].clone();
                assert_eq!(object["metadata"]["uid"], derive.uid.as_str());
                merge(&mut object, &derive.intent);
                for (key, pieces) in &derive.keys {
                    let text = resolve(pieces, &object);
                    object["data"][key] = json!(STANDARD.encode(text));
                }
                self.store(&derive.id, object);
                self.writes.push(format!("derive {}", derive.id));
            }
            Step::Delete(delete) => {
                self.refuse(&delete.id, "delete")?;
                let live = self.live(&delete.id).unwrap();
                assert_eq!(live.uid(), delete.uid);
                self.objects.remove(&delete.id);
                self.writes.push(format!("delete {}", delete.id));
            }
            Step::Finalizer(finalizer) => {
                self.put_finalizer(finalizer);
                return Ok(true);
            }
            Step::Act(action) => {
                self.writes.push(format!("act {}", action.name));
                if let Err(trouble) = self.server.change(&self.objects, &action.request) {
                    let id = ObjectId::new(KIND, "default", "test-db");
                    let verb = action.name.to_owned();
                    return Err(Box::new(StepTrouble { id, verb, trouble }));
                }
            }
        }
        Ok(false)
    }

    fn refuse(&self, id: &ObjectId, verb: &str) -> Result<(), Box<StepTrouble>> {
        match self.refuses.get(id) {
            Some(trouble) => Err(Box::new(StepTrouble {
                id: id.clone(),
                verb: verb.to_owned(),
                trouble: trouble.clone(),
            })),
            None => Ok(()),
        }
    }

    fn apply(&mut self, apply: &Apply) {
        let before = self.objects.get(&apply.id).cloned();
        match (&apply.expect, &before) {
            (Expect::Absent, live) => assert!(live.is_none(), "{} exists", apply.id),
            (Expect::Uid(uid), live) => {
                assert_eq!(live.as_ref().unwrap()["metadata"]["uid"], uid.as_str());
            }
        }
        let mut object = before.clone().unwrap_or_else(|| json!({}));
        if let (Some(owners), Some(new)) = (
            object["metadata"]["ownerReferences"].as_array().cloned(),
            apply.intent["metadata"]["ownerReferences"].as_array(),
        ) && owners != *new
        {
            object["metadata"]["ownerReferences"] = json!([]);
        }
        merge(&mut object, &apply.intent);
        self.store(&apply.id, object);
        self.writes.push(format!("apply {}", apply.id));
    }

    /// Stores an object as the API server would: uid, version, generation.
    pub fn store(&mut self, id: &ObjectId, mut object: Value) {
        let before = self.objects.get(id);
        if before == Some(&object) {
            return;
        }
        let spec_changed = before.is_none_or(|b| b["spec"] != object["spec"]);
        let generation = before.map_or(0, |b| b["metadata"]["generation"].as_i64().unwrap_or(0));
        let version = self.next();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{version}"));
        }
        object["metadata"]["name"] = json!(id.name);
        object["metadata"]["namespace"] = json!(id.namespace);
        object["metadata"]["resourceVersion"] = json!(version);
        object["metadata"]["generation"] = json!(generation + i64::from(spec_changed));
        self.objects.insert(id.clone(), object);
    }

    fn put_finalizer(&mut self, finalizer: &Finalizer) {
        let mut list: Vec<String> =
            serde_json::from_value(self.root["metadata"]["finalizers"].clone()).unwrap_or_default();
        match finalizer {
            Finalizer::Add(name) => list.push((*name).to_owned()),
            Finalizer::Remove(name) => list.retain(|f| f != name),
        }
        let deleted = self.root["metadata"].get("deletionTimestamp").is_some();
        self.gone = deleted && list.is_empty();
        self.root["metadata"]["finalizers"] = json!(list);
        let version = self.next();
        self.root["metadata"]["resourceVersion"] = json!(version);
        self.writes.push("finalizer".to_owned());
    }

    fn generate(&mut self, value: &Generate, object: &Value) -> (String, String) {
        match value {
            Generate::Password { key, length } => {
                assert!(*length >= 24);
                let number = self.next();
                (key.clone(), format!("made-{number:0>width$}", width = length - 5))
            }
            Generate::Text { key, pieces } => (key.clone(), resolve(pieces, object)),
        }
    }

    /// What the StatefulSet controller and the kubelet do when nothing is wrong.
    pub fn roll_out(&mut self) {
        let id = self.names().stateful_set();
        let Some(set) = self.objects.get(&id).cloned() else { return };
        if set["metadata"].get("deletionTimestamp").is_some() {
            return;
        }
        let revision = phased::digest::of(&set["spec"]["template"]);
        self.provision(&set);
        let pod_id = self.names().primary_pod();
        let old = self.objects.get(&pod_id).cloned();
        let current = old.as_ref().is_some_and(|p| {
            p["metadata"]["labels"]["controller-revision-hash"] == revision.as_str()
                && p["status"]["conditions"][0]["status"] == "True"
        });
        if !current {
            self.objects.remove(&pod_id);
            self.store(&pod_id, pod(&set, &revision, true));
            let config = self.objects.get(&self.names().config_map()).cloned();
            self.server.start(config.as_ref());
        }
        self.set_status(&id, &revision, true);
    }

    /// Makes the claim and a pod in the given state, without a server.
    pub fn stall(&mut self, status: Value) {
        let id = self.names().stateful_set();
        let set = self.objects[&id].clone();
        let revision = phased::digest::of(&set["spec"]["template"]);
        self.provision(&set);
        let mut pod = pod(&set, &revision, false);
        merge(&mut pod["status"], &status);
        self.objects.remove(&self.names().primary_pod());
        self.store(&self.names().primary_pod(), pod);
        self.server.up = false;
        self.set_status(&id, &revision, false);
    }

    fn provision(&mut self, set: &Value) {
        let id = self.names().data_claim();
        if !self.objects.contains_key(&id) {
            let mut claim = set["spec"]["volumeClaimTemplates"][0].clone();
            claim["status"] = json!({"phase": "Bound"});
            self.store(&id, claim);
        }
    }

    pub fn set_status(&mut self, id: &ObjectId, revision: &str, ready: bool) {
        let count = i64::from(ready);
        self.meddle(id, |set| {
            set["status"] = json!({
                "observedGeneration": set["metadata"]["generation"],
                "replicas": 1, "readyReplicas": count, "updatedReplicas": 1,
                "currentRevision": revision, "updateRevision": revision,
            });
        });
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

fn pod(set: &Value, revision: &str, ready: bool) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
    merge(&mut pod, &set["spec"]["template"]);
    pod["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
    let word = if ready { "True" } else { "False" };
    pod["status"] = json!({"conditions": [{"type": "Ready", "status": word}]});
    pod
}

/// Text out of base64.
pub fn decode(value: &Value) -> String {
    String::from_utf8(STANDARD.decode(value.as_str().unwrap()).unwrap()).unwrap()
}

fn resolve(pieces: &[TextPiece], object: &Value) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const RESERVED: &AsciiSet =
        &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    let text = |piece: &TextPiece| match piece {
        TextPiece::Plain(text) => text.clone(),
        TextPiece::Generated(key) => {
            utf8_percent_encode(&decode(&object["data"][key]), RESERVED).to_string()
        }
    };
    pieces.iter().map(text).collect()
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}
