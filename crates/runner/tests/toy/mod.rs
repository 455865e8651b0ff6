//! A toy kind with one ConfigMap child, and a bench around it: the runner's behaviour is tested on
//! the smallest controller that has every part.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod other;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use phased::child::{Desired, INSTANCE_LABEL, MANAGED_BY, MANAGED_BY_LABEL, Owner, Standing};
use phased::fact::Reach;
use phased::ladder::LadderDoc;
use phased::plan::EventNote;
use phased::{
    Controller, KindRef, Live, ObjectId, Observed, Plan, Question, Settings, StatusWrite, Trigger,
    Trouble, Wake, Want, Watch,
};
use runner::clock::Clock;
use runner::external::dial::{Dialer, Stream};
use runner::random::SeededRandom;
use runner::{Config, Environment, Limits, Runner};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sim::faults::{Effect, Match, Often, Rule};
use sim::service::Handle;
use sim::world::World;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const TOY: KindRef =
    KindRef { group: "example.com", version: "v1", kind: "Toy", plural: "toys", namespaced: true };
pub(crate) const CONFIG_MAP: KindRef =
    KindRef { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true };

const CRD: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "toys.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"kind": "Toy", "plural": "toys", "singular": "toy"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object",
                "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Toy {
    spec: ToySpec,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct ToySpec {
    text: String,
    #[serde(default)]
    panics: bool,
    /// Asks somebody who never answers, for this many seconds.
    #[serde(default)]
    asks: u32,
}

/// Wants one ConfigMap with the text; Ready once it is there.
pub(crate) enum ToyController {}

impl Controller for ToyController {
    type Resource = Toy;
    const NAME: &'static str = "toy";
    const KIND: KindRef = TOY;

    fn ladder() -> LadderDoc {
        LadderDoc {
            kind: "Toy",
            rungs: Vec::new(),
            aside: Vec::new(),
            reasons: Vec::new(),
            conditions: Vec::new(),
            historical: Vec::new(),
        }
    }

    fn watches() -> Vec<Watch> {
        vec![Watch {
            kind: CONFIG_MAP,
            selector: Some(format!("{MANAGED_BY_LABEL}={MANAGED_BY}")),
            trigger: Trigger::Label(INSTANCE_LABEL),
        }]
    }

    fn wants(root: &Live) -> Vec<Want> {
        vec![Want::Named(child_of(root))]
    }

    fn plan(observed: &Observed<Toy>) -> Plan {
        assert!(!observed.resource.spec.panics, "asked to panic");
        let root = &observed.root;
        if let Some(asking) = asking(observed) {
            return asking;
        }
        let id = child_of(root);
        let owner = Owner {
            name: name_of(root),
            uid: root.uid().to_owned(),
            manager: "steadfast/toy".to_owned(),
        };
        let desired =
            Desired { intent: intent(root, &observed.resource.spec.text), id: id.clone() };
        let standing = desired.stand(observed.object(&id), &owner);
        let mut plan = Plan::idle();
        let (state, detail) = match standing {
            Standing::Current => ("Ready", String::new()),
            Standing::Missing(step) | Standing::Outdated { step, .. } => {
                plan.steps.push(step);
                ("Working", String::new())
            }
            Standing::Foreign { owner } => ("Blocked", owner),
            Standing::Terminating => ("Waiting", String::new()),
        };
        let trouble = observed.troubles.first();
        let (state, detail) = match trouble {
            Some(t) => ("Troubled", format!("{} {}: {}", t.verb, t.id, t.trouble.message)),
            None => (state, detail),
        };
        plan.status = status(root, state, &detail);
        if state == "Ready" && plan.status.is_some() {
            plan.events.push(EventNote {
                warning: false,
                reason: "ToyReady",
                action: "Settle",
                message: "the toy is ready".to_owned(),
            });
        }
        plan
    }

    fn unreadable(root: &Live, error: &str, _: &Settings, _: Timestamp) -> Plan {
        Plan { status: status(root, "Unreadable", error), ..Plan::idle() }
    }

    fn troubled(root: &Live, trouble: &Trouble, now: Timestamp) -> Plan {
        let status = status(root, "Troubled", &trouble.reason);
        Plan { status, wake: Wake::after(now, 60), ..Plan::idle() }
    }
}

/// A plan that waits for somebody who does not answer, if the toy asks one.
fn asking(observed: &Observed<Toy>) -> Option<Plan> {
    let timeout_seconds = observed.resource.spec.asks;
    let silent = Reach::Tcp { host: SILENT.to_owned(), port: 1, timeout_seconds };
    let question = Question::Reach(silent);
    if timeout_seconds == 0 {
        return None;
    }
    if observed.facts.contains_key(&question) {
        let status = status(&observed.root, "Unanswered", "");
        return Some(Plan { status, wake: Wake::after(observed.now, 60), ..Plan::idle() });
    }
    Some(Plan { asks: vec![question], ..Plan::idle() })
}

/// A host that takes connections and says nothing.
const SILENT: &str = "silent";

fn name_of(root: &Live) -> String {
    root.metadata.name.clone().unwrap_or_default()
}

fn child_of(root: &Live) -> ObjectId {
    ObjectId::new(CONFIG_MAP, root.metadata.namespace.clone().unwrap_or_default(), name_of(root))
}

fn intent(root: &Live, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name_of(root), "namespace": root.metadata.namespace,
            "labels": {MANAGED_BY_LABEL: MANAGED_BY, INSTANCE_LABEL: name_of(root)},
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Toy",
                "name": name_of(root), "uid": root.uid(), "controller": true}],
        },
        "data": {"text": text},
    })
}

fn status(root: &Live, state: &str, detail: &str) -> Option<StatusWrite> {
    let wanted = json!({"state": state, "detail": detail});
    if root.value.get("status") == Some(&wanted) {
        return None;
    }
    Some(StatusWrite {
        status: wanted,
        uid: root.uid().to_owned(),
        resource_version: root.resource_version().to_owned(),
    })
}

/// User name of the operator.
pub(crate) const OPERATOR: &str = "toy-operator";

/// A simulated world that serves toys.
pub(crate) struct Bench {
    pub(crate) world: World,
    driver: Option<JoinHandle<()>>,
}

/// A running runner.
pub(crate) struct Operator {
    pub(crate) handle: Handle,
    pub(crate) metrics: runner::metrics::Metrics,
    pub(crate) health: runner::health::Health,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

impl Operator {
    /// The sum of a metric over its labels.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.metrics.text();
        let of_name =
            |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        text.lines()
            .filter(of_name)
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}

struct WorldClock(World);

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.0.cluster.with(|core| core.now())
    }
}

struct Nowhere;

impl Dialer for Nowhere {
    fn dial<'a>(&'a self, host: &'a str, _: u16) -> BoxFuture<'a, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            match host {
                SILENT => std::future::pending().await,
                _ => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        })
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        let bench = Self::without_definition();
        bench.define();
        bench
    }

    pub(crate) fn without_definition() -> Self {
        let world = World::new(7);
        let driver = Some(world.spawn());
        Self { world, driver }
    }

    /// Without built-in controllers, which look at every object: nothing collects what is orphaned.
    pub(crate) fn of_api_only() -> Self {
        let bench = Self { world: World::new(7), driver: None };
        bench.define();
        bench
    }

    /// Installs the definition of the toy.
    pub(crate) fn define(&self) {
        self.world.apply(CRD).expect("the definition is accepted");
    }

    pub(crate) fn operator(&self, limits: Limits) -> Operator {
        self.operator_of(limits, |runner| runner.with::<ToyController>())
    }

    pub(crate) fn operator_of(
        &self,
        limits: Limits,
        controllers: impl FnOnce(Runner) -> Runner,
    ) -> Operator {
        let handle = self.world.cluster.client(OPERATOR);
        let environment = Environment {
            client: kube::Client::new(handle.service(), "default"),
            clock: Arc::new(WorldClock(self.world.clone())),
            random: Arc::new(SeededRandom::new(7)),
            dialer: Arc::new(Nowhere),
        };
        let config = Config { limits, ..Config::default() };
        let runner = controllers(Runner::new(environment, config));
        let (metrics, health) = (runner.metrics(), runner.health());
        let stop = CancellationToken::new();
        let task = tokio::spawn(runner.run(stop.clone()));
        Operator { handle, metrics, health, stop, task }
    }

    pub(crate) fn toy(&self, name: &str, spec: Value) {
        let toy = json!({"apiVersion": "example.com/v1", "kind": "Toy",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        self.world.apply(&toy.to_string()).expect("the toy is accepted");
    }

    pub(crate) fn state(&self, name: &str) -> String {
        let toy = self.world.get("Toy", "default", name).unwrap_or(Value::Null);
        toy["status"]["state"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn detail(&self, name: &str) -> String {
        let toy = self.world.get("Toy", "default", name).unwrap_or(Value::Null);
        toy["status"]["detail"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        let child = self.world.get("ConfigMap", "default", name).unwrap_or(Value::Null);
        child["data"]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits, in virtual time, until the toy is in this state.
    pub(crate) async fn reaches(&self, name: &str, state: &str, longest: Duration) -> bool {
        let state = state.to_owned();
        let name = name.to_owned();
        self.world
            .wait_until(longest, move |store| {
                store
                    .list("example.com", "toys", Some("default"))
                    .any(|(k, toy)| k.name == name && toy["status"]["state"] == state.as_str())
            })
            .await
    }

    /// How many of these requests the operator has sent.
    pub(crate) fn requests(&self, verb: &str, plural: &str) -> usize {
        self.world.cluster.with(|core| {
            let sent = core.faults.log().iter().filter(|entry| {
                core.faults.client_name(entry.client) == OPERATOR
                    && entry.verb == verb
                    && entry.path.split('?').next().unwrap_or_default().contains(plural)
            });
            sent.count()
        })
    }

    /// Adds a rule for requests of the operator.
    pub(crate) fn fault(&self, when: Match, often: Often, effect: Effect) -> usize {
        let rule = Rule::new(when.by(OPERATOR), often, effect);
        self.world.cluster.with(|core| core.faults.add(rule))
    }

    pub(crate) fn writes(&self) -> usize {
        self.world.cluster.with(|core| core.faults.write_log().count())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(driver) = &self.driver {
            driver.abort();
        }
    }
}

/// Waits, in virtual time, until `holds`; answers whether it did.
pub(crate) async fn wait(bench: &Bench, longest: Duration, holds: impl Fn() -> bool) -> bool {
    let began = tokio::time::Instant::now();
    while began.elapsed() < longest {
        if holds() {
            return true;
        }
        bench.world.run_for(Duration::from_millis(100)).await;
    }
    holds()
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
