//! A bench: a simulated world, an operator in it, and what tests ask of them.
//!
//! Everything runs under virtual time on one thread, so a test is as fast as its decisions.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::sync::Arc;
use std::time::Duration;

use operators::database::DatabaseController;
use phased::Settings;
use runner::random::SeededRandom;
use runner::{Config, Runner};
use serde_json::Value;
use sim::service::Handle;
use sim::world::World;
use steadfast::embedded;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The exercise's manifest.
pub(crate) const TEST_DB: &str = include_str!("../../../../examples/test-db.yaml");

/// A world with the CRDs installed.
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) settings: Settings,
    seed: u64,
    driver: JoinHandle<()>,
    generation: std::cell::Cell<u64>,
}

/// A running operator.
pub(crate) struct Operator {
    pub(crate) handle: Handle,
    pub(crate) stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Operator {
    /// Ends it as a crash does: no further request succeeds, tasks are dropped.
    pub(crate) fn kill(self) {
        self.handle.crash();
        self.task.abort();
    }

    /// Whether its runner has ended by itself.
    pub(crate) fn ended(&self) -> bool {
        self.task.is_finished()
    }
}

impl Bench {
    /// A world from a seed; must be called within a paused runtime.
    pub(crate) fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let driver = world.spawn();
        for crd in steadfast::manifests::crds().expect("the definitions are serialisable") {
            world.apply(&crd.to_string()).expect("the definitions are accepted");
        }
        Self {
            world,
            settings: Settings::default(),
            seed,
            driver,
            generation: std::cell::Cell::new(0),
        }
    }

    /// Starts an operator with a fresh connection and memory.
    pub(crate) fn operator(&self) -> Operator {
        self.operator_named("system:serviceaccount:steadfast:steadfast")
    }

    /// The same under another user name.
    pub(crate) fn operator_named(&self, user: &str) -> Operator {
        let handle = self.world.cluster.client(user);
        let client = kube::Client::new(handle.service(), "default");
        self.generation.set(self.generation.get() + 1);
        let random = Arc::new(SeededRandom::new(self.seed ^ (self.generation.get() << 32)));
        let environment = embedded::environment(&self.world, client, random);
        let config = Config { settings: self.settings.clone(), ..Config::default() };
        let runner = Runner::new(environment, config).with::<DatabaseController>();
        let stop = CancellationToken::new();
        let task = tokio::spawn(runner.run(stop.clone()));
        Operator { handle, stop, task }
    }

    /// The Database, as stored.
    pub(crate) fn database(&self, name: &str) -> Option<Value> {
        self.world.get("Database", "default", name)
    }

    /// Its phase, empty when there is none.
    pub(crate) fn phase(&self, name: &str) -> String {
        self.database(name)
            .and_then(|d| d["status"]["phase"].as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    /// A condition of it.
    pub(crate) fn condition(&self, name: &str, kind: &str) -> Value {
        let database = self.database(name).unwrap_or(Value::Null);
        condition(&database, kind)
    }

    /// Waits, in virtual time, until the Database is Ready for its present generation.
    pub(crate) async fn ready(&self, name: &str, longest: Duration) -> bool {
        let name = name.to_owned();
        self.until(longest, move |world| {
            world.get("Database", "default", &name).is_some_and(|d| is_ready(&d))
        })
        .await
    }

    /// Waits until `holds`.
    pub(crate) async fn until(&self, longest: Duration, holds: impl Fn(&World) -> bool) -> bool {
        let began = tokio::time::Instant::now();
        while began.elapsed() < longest {
            if holds(&self.world) {
                return true;
            }
            // virtual time
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        holds(&self.world)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Whether a Database is Ready, for its present generation.
pub(crate) fn is_ready(database: &Value) -> bool {
    let generation = &database["metadata"]["generation"];
    let ready = condition(database, "Ready");
    database["status"]["phase"] == "Ready"
        && ready["status"] == "True"
        && &ready["observedGeneration"] == generation
}

/// A condition of an object.
pub(crate) fn condition(object: &Value, kind: &str) -> Value {
    object["status"]["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|c| c["type"] == kind).cloned())
        .unwrap_or(Value::Null)
}

/// Runs a test under virtual time on one thread.
pub(crate) fn simulate<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O can always be built")
        .block_on(test());
}
