//! Counts for operators: by controller, verb, kind and outcome, never by resource name, so that
//! the number of series is bounded.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::sync::{Arc, Mutex, PoisonError};

type Labels = Vec<(&'static str, String)>;

/// All metrics of the process.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    passes: Family<Labels, Counter>,
    pass_seconds: Family<Labels, Counter<f64, AtomicU64>>,
    writes: Family<Labels, Counter>,
    watch_errors: Family<Labels, Counter>,
    lists: Family<Labels, Counter>,
    panics: Family<Labels, Counter>,
    events_dropped: Counter,
    queue_depth: Family<Labels, Gauge>,
    unsettled: Family<Labels, Gauge>,
    known_objects: Gauge,
    transitions: Family<Labels, Counter>,
    unreadable: Family<Labels, Counter>,
    not_kept: Family<Labels, Counter>,
    broken_rules: Family<Labels, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// An empty set.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Arc::default(),
            passes: Family::default(),
            pass_seconds: Family::default(),
            writes: Family::default(),
            watch_errors: Family::default(),
            lists: Family::default(),
            panics: Family::default(),
            events_dropped: Counter::default(),
            queue_depth: Family::default(),
            unsettled: Family::default(),
            known_objects: Gauge::default(),
            transitions: Family::default(),
            unreadable: Family::default(),
            not_kept: Family::default(),
            broken_rules: Family::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let r = registry.sub_registry_with_prefix("steadfast");
        r.register("passes", "Passes by controller and outcome", self.passes.clone());
        r.register("pass_seconds", "Time spent in passes", self.pass_seconds.clone());
        r.register("writes", "Writes by verb, kind and outcome", self.writes.clone());
        r.register("watch_errors", "Failed watches by kind", self.watch_errors.clone());
        r.register("lists", "Complete lists by kind", self.lists.clone());
        r.register("panics", "Panics caught in a pass", self.panics.clone());
        r.register("events_dropped", "Events not published", self.events_dropped.clone());
        r.register("queue_depth", "Resources waiting for a pass", self.queue_depth.clone());
        r.register(
            "unsettled",
            "Resources whose last pass wrote, looked again or failed",
            self.unsettled.clone(),
        );
        r.register("known_objects", "Objects held in memory", self.known_objects.clone());
        r.register("transitions", "Moves by controller and phase", self.transitions.clone());
        r.register("unreadable", "Resources that do not parse", self.unreadable.clone());
        r.register("not_kept", "Writes of which a field was not kept", self.not_kept.clone());
        r.register(
            "broken_rules",
            "Plans that break a rule (debug builds)",
            self.broken_rules.clone(),
        );
    }

    /// A pass ended.
    pub fn passed(&self, controller: &'static str, outcome: &str, seconds: f64) {
        let labels = vec![("controller", controller.to_owned()), ("outcome", outcome.to_owned())];
        self.passes.get_or_create(&labels).inc();
        self.pass_seconds
            .get_or_create(&vec![("controller", controller.to_owned())])
            .inc_by(seconds);
    }

    /// A write was sent.
    pub fn wrote(&self, verb: &str, kind: &str, outcome: &str) {
        let labels = vec![
            ("verb", verb.to_owned()),
            ("kind", kind.to_owned()),
            ("outcome", outcome.to_owned()),
        ];
        self.writes.get_or_create(&labels).inc();
    }

    /// A watch or its list failed.
    pub fn watch_failed(&self, kind: &str) {
        self.watch_errors.get_or_create(&vec![("kind", kind.to_owned())]).inc();
    }

    /// A list was complete.
    pub fn listed(&self, kind: &str) {
        self.lists.get_or_create(&vec![("kind", kind.to_owned())]).inc();
    }

    /// A pass panicked.
    pub fn panicked(&self, controller: &'static str) {
        self.panics.get_or_create(&vec![("controller", controller.to_owned())]).inc();
    }

    /// An Event could not be published.
    pub fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    /// Resources that wait, and those whose last pass did not settle.
    pub fn queue(&self, controller: &'static str, depth: usize, unsettled: usize) {
        let labels = vec![("controller", controller.to_owned())];
        self.queue_depth.get_or_create(&labels).set(count(depth));
        self.unsettled.get_or_create(&labels).set(count(unsettled));
    }

    /// Objects held in memory.
    pub fn knows(&self, objects: usize) {
        self.known_objects.set(count(objects));
    }

    /// A resource moved to a phase.
    pub fn moved(&self, controller: &'static str, to: &str) {
        let labels = vec![("controller", controller.to_owned()), ("to", to.to_owned())];
        self.transitions.get_or_create(&labels).inc();
    }

    /// A resource did not parse.
    pub fn unreadable(&self, controller: &'static str) {
        self.unreadable.get_or_create(&vec![("controller", controller.to_owned())]).inc();
    }

    /// The server did not keep a field as we sent it.
    pub fn not_kept(&self, kind: &str) {
        self.not_kept.get_or_create(&vec![("kind", kind.to_owned())]).inc();
    }

    /// A plan broke a rule of the lint.
    pub fn plan_broke_a_rule(&self, controller: &'static str) {
        self.broken_rules.get_or_create(&vec![("controller", controller.to_owned())]).inc();
    }

    /// The OpenMetrics text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        match encode(&mut text, &registry) {
            Ok(()) => text,
            Err(error) => format!("# metrics cannot be shown: {error}\n"),
        }
    }
}

fn count(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}
