//! A bench: a simulated world, operators in it, and what tests ask of them.
//!
//! Everything runs under virtual time on one thread, so a test is as fast as its decisions, and a
//! seed names its history. Must not know how the operator decides; it looks at the world.

#![allow(dead_code, reason = "each test binary uses its own part")]

// The harness sets the keys of this crate's hash maps; it is taken from another crate by its path.
use ahash as _;

#[allow(unreachable_pub, reason = "the file is shared with the tests of sim")]
#[path = "../../../sim/tests/support/determinism.rs"]
pub(crate) mod determinism;

pub(crate) mod crash;
pub(crate) mod ensemble;
pub(crate) mod history;
pub(crate) mod kubectl;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod portrait;
pub(crate) mod replay;
pub(crate) mod replicas;
pub(crate) mod rules;
pub(crate) mod session;
pub(crate) mod storm;
pub(crate) mod tap;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use phased::Settings;
use runner::metrics::Metrics;
use runner::random::SeededRandom;
use runner::{Config, Runner};
use serde_json::Value;
use sim::service::Handle;
use sim::world::World;
use steadfast::{controllers, embedded};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use tap::{Tap, TappingDialer};

/// The exercise's manifest.
pub(crate) const TEST_DB: &str = include_str!("../../../../examples/test-db.yaml");
/// A StatefulSet of somebody else that has the name of ours, and names its pod and claim as ours are.
pub(crate) const FOREIGN_SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: test-db, namespace: default}
spec:
  serviceName: test-db
  replicas: 1
  selector: {matchLabels: {app: theirs}}
  template:
    metadata: {labels: {app: theirs}}
    spec: {containers: [{name: main, image: 'nginx:1', volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";
/// The Database's name in it.
pub(crate) const NAME: &str = "test-db";
/// Longer than any bring-up, repair or rollout takes when nothing stands in its way.
pub(crate) const LONG: Duration = Duration::from_secs(180);
/// User name of the operator.
pub(crate) const OPERATOR: &str = "system:serviceaccount:steadfast:steadfast";

/// A world with the CRDs installed.
pub(crate) struct Bench {
    pub(crate) world: World,
    pub(crate) settings: Settings,
    /// Kind and name of the resource that the test is about.
    pub(crate) subject: Subject,
    seed: u64,
    driver: JoinHandle<()>,
    incarnation: Cell<u64>,
}

/// A kind, and the name of a resource of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Subject {
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) name: &'static str,
}

/// The exercise's Database.
pub(crate) const DATABASE: Subject = Subject { kind: "Database", plural: "databases", name: NAME };

/// A running operator.
pub(crate) struct Operator {
    pub(crate) handle: Handle,
    pub(crate) stop: CancellationToken,
    pub(crate) metrics: Metrics,
    /// Its sessions with servers, to count, cut or crash in.
    pub(crate) tap: Arc<Tap>,
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
    /// A world from a seed, for a Database; must be called within a paused runtime.
    pub(crate) fn new(seed: u64) -> Self {
        Self::of(DATABASE, seed)
    }

    /// A world from a seed, for any kind.
    pub(crate) fn of(subject: Subject, seed: u64) -> Self {
        let world = World::new(seed);
        let driver = world.spawn();
        for crd in steadfast::manifests::crds().expect("the definitions are serialisable") {
            world.apply(&crd.to_string()).expect("the definitions are accepted");
        }
        let settings = Settings::default();
        Self { world, settings, subject, seed, driver, incarnation: Cell::new(0) }
    }

    /// Takes every rule of the schema out of the stored definition, as an older release of it or a
    /// careless hand would: what is refused from here on, the operator refuses (PG-46).
    pub(crate) fn lax(&self) {
        for mut crd in steadfast::manifests::crds().expect("the definitions are serialisable") {
            loosen(&mut crd);
            self.apply(&crd.to_string());
        }
    }

    /// Starts an operator with a fresh connection and memory.
    pub(crate) fn operator(&self) -> Operator {
        let handle = self.world.cluster.client(OPERATOR);
        let client = kube::Client::new(handle.service(), "default");
        self.incarnation.set(self.incarnation.get() + 1);
        let random = Arc::new(SeededRandom::new(self.seed ^ (self.incarnation.get() << 32)));
        let mut environment = embedded::environment(&self.world, client, random);
        let dialer = TappingDialer::new(environment.dialer.clone(), handle.clone());
        let tap = dialer.tap.clone();
        environment.dialer = Arc::new(dialer);
        let config = Config { settings: self.settings.clone(), ..Config::default() };
        let runner = controllers::all(Runner::new(environment, config));
        let metrics = runner.metrics();
        let stop = CancellationToken::new();
        let task = tokio::spawn(runner.run(stop.clone()));
        Operator { handle, stop, metrics, tap, task }
    }

    /// A bench with an operator and the exercise's Database, Ready.
    pub(crate) async fn with_test_db(seed: u64) -> (Self, Operator) {
        let bench = Self::new(seed);
        let operator = bench.operator();
        bench.world.apply(TEST_DB).expect("the manifest is accepted");
        bench.settle(NAME).await;
        (bench, operator)
    }

    /// Applies manifests, which must be accepted.
    pub(crate) fn apply(&self, yaml: &str) {
        let applied = self.world.apply(yaml).map_err(|failure| failure.message);
        assert!(applied.is_ok(), "{applied:?}: {yaml}");
    }

    /// A Database, as stored.
    pub(crate) fn database(&self, name: &str) -> Option<Value> {
        self.world.get("Database", "default", name)
    }

    /// A resource of the test's kind, as stored.
    pub(crate) fn resource(&self, name: &str) -> Option<Value> {
        self.world.get(self.subject.kind, "default", name)
    }

    /// Its phase, empty when there is none.
    pub(crate) fn phase(&self, name: &str) -> String {
        self.resource(name).map(|d| text(&d, "/status/phase")).unwrap_or_default()
    }

    /// A condition of it.
    pub(crate) fn condition(&self, name: &str, kind: &str) -> Value {
        condition(&self.resource(name).unwrap_or(Value::Null), kind)
    }

    /// Status, reason and message of its condition `Ready` in one line.
    pub(crate) fn says(&self, name: &str) -> String {
        let ready = self.condition(name, "Ready");
        let member = |key| ready[key].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", member("status"), member("reason"), member("message"))
    }

    /// Waits, in virtual time, until the resource is Ready for its present generation.
    pub(crate) async fn ready(&self, name: &str, longest: Duration) -> bool {
        self.until(longest, |_| self.resource(name).is_some_and(|r| is_ready(&r))).await
    }

    /// Waits until the resource is Ready, or fails with all that is known.
    pub(crate) async fn settle(&self, name: &str) {
        let ready = self.ready(name, LONG).await;
        assert!(ready, "not Ready: {:#}", self.resource(name).unwrap_or_default()["status"]);
    }

    /// Waits until the condition `Ready` holds all these words, or fails. Answers after how long.
    pub(crate) async fn told(&self, name: &str, words: &[&str], longest: Duration) -> Duration {
        let began = tokio::time::Instant::now();
        let told = self.until(longest, |_| {
            let says = self.says(name);
            words.iter().all(|word| says.contains(word))
        });
        assert!(told.await, "wanted {words:?} within {longest:?}: {}", self.says(name));
        began.elapsed()
    }

    /// Waits until `holds`.
    pub(crate) async fn until(&self, longest: Duration, holds: impl Fn(&World) -> bool) -> bool {
        let began = tokio::time::Instant::now();
        while began.elapsed() < longest {
            if holds(&self.world) {
                return true;
            }
            // Virtual time.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        holds(&self.world)
    }

    /// Edits the test's resource as a user, which must be accepted.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Value)) {
        let Subject { kind, name, .. } = self.subject;
        let edited = self.world.edit(kind, "default", name, change);
        assert!(edited.is_ok(), "{:?}", edited.map_err(|failure| failure.message));
    }

    /// The uid of an object, empty when there is none.
    pub(crate) fn uid(&self, kind: &str, name: &str) -> String {
        self.world
            .get(kind, "default", name)
            .map(|object| text(&object, "/metadata/uid"))
            .unwrap_or_default()
    }

    /// Write requests of operators so far, Events and dry runs excluded: `VERB PATH`.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.world.cluster.with(|core| {
            let ours = core.faults.write_log().filter(|entry| {
                core.faults.client_name(entry.client) == OPERATOR && !entry.path.contains("/events")
            });
            let line = |entry: &sim::faults::Entry| {
                let path = entry.path.split('?').next().unwrap_or_default();
                format!("{} {}", entry.verb, path.rsplit("/default/").next().unwrap_or_default())
            };
            ours.map(line).collect()
        })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn loosen(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for key in ["x-kubernetes-validations", "maxLength", "minLength", "maximum", "minimum"]
            {
                members.remove(key);
            }
            members.values_mut().for_each(loosen);
        }
        Value::Array(items) => items.iter_mut().for_each(loosen),
        _ => {}
    }
}

/// Whether a resource is Ready, for its present generation.
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

/// The text at a pointer, empty when there is none.
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Runs a test under virtual time on one thread, with all chance drawn from one seed.
pub(crate) fn simulate<T, F>(test: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    determinism::run(1, test)
}
