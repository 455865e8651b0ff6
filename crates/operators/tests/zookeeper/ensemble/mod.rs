//! A small world around the ZookeeperCluster's `plan`: objects as they are stored, servers of a few
//! facts, and the one [`World::pass`] through which every test calls the controller, with the lint
//! on every plan.

#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(unreachable_pub, reason = "a module of tests is nobody's interface")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

pub mod cluster;
pub mod servers;
#[path = "../../stored/mod.rs"]
pub mod stored;

use std::ops::{Deref, DerefMut};

use operators::zookeeper::names::Names;
use operators::zookeeper::{KIND, ZookeeperController};
use phased::fact::{Question, Reply};
use phased::lint::{self, LintContext};
use phased::step::{Finalizer, Propagation, Request, Step};
use phased::{Answer, Controller, Live, ObjectId, Plan, StepTrouble};
use serde_json::{Value, json};

use servers::Servers;
use stored::Stored;
use stored::play::{self, Play};

/// Everything around one ZookeeperCluster.
#[derive(Clone)]
pub struct World {
    pub stored: Stored,
    pub servers: Servers,
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

/// Three servers, with nothing else said.
pub fn three() -> Value {
    json!({
        "apiVersion": "zookeeper.pravega.io/v1beta1",
        "kind": "ZookeeperCluster",
        "metadata": {"name": "zk", "namespace": "default"},
        "spec": {"replicas": 3},
    })
}

impl Play for World {
    type Of = ZookeeperController;
    const CONDITIONS: &'static [&'static str] =
        &["PodsReady", "Upgrading", "Error", "Ready", "Progressing", "Degraded"];

    fn shows(_: &ObjectId, live: &Live) -> bool {
        live.label("app.kubernetes.io/managed-by") == Some("steadfast")
            || live.label("kind") == Some("ZookeeperMember")
            || live.label("uid").is_some()
    }

    fn lint(&self, plan: &Plan) {
        let mut context = LintContext::new(ZookeeperController::ladder());
        context.stored_status = self.root.get("status").cloned();
        context.allow_data_deletes = self.root["spec"]["persistence"]["reclaimPolicy"] == "Delete";
        let violations = lint::check(plan, &context);
        assert!(violations.is_empty(), "{violations:#?}\n{plan:#?}");
    }

    fn answer(&mut self, question: &Question) -> Answer {
        let ready = self.ready_pods();
        match question {
            Question::Word(request) => Ok(Reply::Word(self.servers.word(&ready, request))),
            Question::ZooKeeper(request) => {
                assert!(request.only_reads());
                Ok(Reply::ZooKeeper(self.servers.clone().session(&ready, request)))
            }
            other => panic!("{other:?}"),
        }
    }

    fn carry_out(&mut self, step: &Step) -> Result<bool, Box<StepTrouble>> {
        match step {
            Step::Apply(apply) => {
                self.refuse(&apply.id, "patch")?;
                self.apply(apply);
            }
            Step::Delete(delete) => {
                self.refuse(&delete.id, "delete")?;
                assert_eq!(delete.propagation, Propagation::Background);
                self.delete(delete);
            }
            Step::Finalizer(finalizer) => {
                self.put_finalizer(finalizer);
                assert!(!self.gone || matches!(finalizer, Finalizer::Remove(_)));
                return Ok(true);
            }
            Step::Act(action) => {
                let Request::ZooKeeper(request) = &action.request else { panic!("{action:?}") };
                let ready = self.ready_pods();
                self.writes.push(format!("act {}", action.name));
                if let Some(trouble) = self.servers.act(&ready, request) {
                    let names = self.names();
                    let id = ObjectId::new(KIND, names.namespace, names.name);
                    let verb = action.name.to_owned();
                    return Err(Box::new(StepTrouble { id, verb, trouble }));
                }
            }
            other => panic!("{other:?}"),
        }
        Ok(false)
    }
}

impl World {
    pub fn of(root: Value) -> Self {
        Self { stored: Stored::of(root), servers: Servers::default() }
    }

    /// Three servers, Ready; made once a process.
    pub fn ready() -> Self {
        static READY: std::sync::LazyLock<World> = std::sync::LazyLock::new(|| {
            let mut world = World::of(three());
            world.settle();
            assert_eq!(world.phase(), "Ready", "{}", world.root["status"]);
            world.writes.clear();
            world
        });
        READY.clone()
    }

    pub fn names(&self) -> Names {
        let text = |key: &str| self.root["metadata"][key].as_str().unwrap().to_owned();
        Names { namespace: text("namespace"), name: text("name") }
    }

    pub fn set(&self) -> &Value {
        &self.objects[&self.names().stateful_set()]
    }

    /// Passes, with the cluster's own controllers at work between them, until nothing moves.
    pub fn settle(&mut self) {
        for _ in 0..200 {
            let before = (self.writes.len(), self.stored.counter);
            self.pass();
            self.tick();
            self.stored.advance(1);
            if before == (self.writes.len(), self.stored.counter) {
                return;
            }
        }
        panic!("does not settle: {:?}\n{}", self.writes, self.root["status"]);
    }

    /// The same for so many seconds, looking every ten of them.
    pub fn wait(&mut self, seconds: i64) {
        for _ in 0..seconds / 10 {
            self.pass();
            self.tick();
            self.stored.advance(10);
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

    pub fn delete_root(&mut self) {
        self.root["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    }
}
