//! `runner`: thin I/O around pure controllers.
//!
//! Takes snapshots from watches, answers a plan's questions, carries its steps out, writes its
//! status, and comes back when the plan says so. Decides nothing about a resource; what it decides
//! is when to try again (`pace`, [`queue`], [`backoff`]). Generic over [`phased::Controller`]: it must not
//! name a controller.
//!
//! | To find | Look in |
//! |---|---|
//! | one pass | `pass` |
//! | each kind of write | `steps`, [`api`] |
//! | watches and what is known | [`watch`], [`trim`], [`patience`], [`store`] |
//! | SQL, TCP, HTTP | [`external`] |
//! | a snapshot by live reads, for commands that change nothing | [`view`] |
//! | errors and their fates | [`trouble`] |
//! | the loop of a controller | `drive` |
//! | Events, metrics, health | [`report`], [`metrics`], [`health`] |

pub mod api;
pub mod backoff;
pub mod clock;
mod drive;
pub mod external;
pub mod health;
pub mod metrics;
mod pace;
mod pass;
pub mod patience;
pub mod queue;
pub mod random;
pub mod report;
mod review;
mod slots;
mod status;
mod steps;
pub mod store;
pub mod trim;
pub mod trouble;
pub mod view;
pub mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use phased::{Controller, KindRef, Live, ObjectId, Settings};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use drive::Limits;
use drive::{Drive, Driven, drive};
use external::dial::Dialer;
use external::{Outside, World};
use health::Health;
use metrics::Metrics;
use pass::Means;
use report::Reporter;
use store::Store;
use trim::Ownership;
use watch::{KindWatch, Listener, Selection, WatchContext};

/// What a runner is given from outside: everything that could differ between two runs.
pub struct Environment {
    /// The cluster. No retry layer: a POST must not be repeated behind our back.
    pub client: kube::Client,
    /// The time.
    pub clock: Arc<dyn clock::Clock>,
    /// Passwords and jitter.
    pub random: Arc<dyn random::Random>,
    /// Connections to what the operator manages.
    pub dialer: Arc<dyn Dialer>,
}

/// How it runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// What plans depend on.
    pub settings: Settings,
    /// Namespaces to serve; empty for all.
    pub namespaces: Vec<String>,
    /// Limits of each controller's loop.
    pub limits: Limits,
    /// How long one call of the API may take.
    pub call_timeout: Duration,
    /// Name of this process in Events.
    pub instance: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            namespaces: Vec::new(),
            limits: Limits::default(),
            call_timeout: Duration::from_secs(30),
            instance: "steadfast".to_owned(),
        }
    }
}

/// Controllers and what they run with.
pub struct Runner {
    environment: Environment,
    config: Config,
    controllers: Vec<Arc<dyn Driven>>,
    metrics: Metrics,
    health: Health,
}

impl Runner {
    /// A runner without controllers.
    pub fn new(environment: Environment, config: Config) -> Self {
        let (metrics, health) = (Metrics::new(), Health::default());
        Self { environment, config, controllers: Vec::new(), metrics, health }
    }

    /// Adds a controller.
    #[must_use]
    pub fn with<C: Controller>(mut self) -> Self {
        self.controllers.push(Arc::new(Drive::<C>::new()));
        self
    }

    /// The metrics, to be served.
    pub fn metrics(&self) -> Metrics {
        self.metrics.clone()
    }

    /// The health, to be served.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Runs until `stop`: no new passes, running ones end, watches are dropped.
    pub async fn run(self, stop: CancellationToken) {
        let server = api::Server::new(self.environment.client.clone(), self.config.call_timeout);
        let store = Store::default();
        let (reporter, outbox) = Reporter::new(
            self.environment.clock.clone(),
            self.metrics.clone(),
            &self.config.instance,
        );
        let outside: Arc<dyn Outside> = Arc::new(World {
            server: server.clone(),
            dialer: self.environment.dialer.clone(),
            random: self.environment.random.clone(),
        });
        let means = Means {
            server: server.clone(),
            store,
            selections: Arc::new(self.selections()),
            outside,
            clock: self.environment.clock.clone(),
            random: self.environment.random.clone(),
            metrics: self.metrics.clone(),
            reporter,
            settings: self.config.settings.clone(),
        };
        let watches_stop = CancellationToken::new();
        let mut background = JoinSet::new();
        background.spawn(outbox.run(server, watches_stop.clone()));
        self.start_watches(&means, &watches_stop, &mut background);
        tokio::select! {
            biased;
            () = self.drive_all(&means, &stop) => {}
            () = self.mourn(&mut background) => {}
        }
        watches_stop.cancel();
        while background.join_next().await.is_some() {}
    }

    /// Waits for a background task that ends although it must not: a watch that is gone would leave
    /// us ready on a frozen view. The process is then to be replaced.
    async fn mourn(&self, background: &mut JoinSet<()>) {
        if let Some(ended) = background.join_next().await {
            tracing::error!(?ended, "a background task ended by itself");
            self.health.dead();
        }
        std::future::pending().await
    }

    fn start_watches(&self, means: &Means, stop: &CancellationToken, tasks: &mut JoinSet<()>) {
        let listener = Arc::new(Wakes { controllers: self.controllers.clone() });
        let context = WatchContext {
            server: means.server.clone(),
            store: means.store.clone(),
            listener,
            random: means.random.clone(),
            metrics: means.metrics.clone(),
            resync: self.config.limits.resync,
        };
        for watch in self.kind_watches() {
            tasks.spawn(watch.run(context.clone(), stop.clone()));
        }
    }

    fn roots(&self) -> Vec<KindRef> {
        self.controllers.iter().map(|c| c.kind()).collect()
    }

    /// What is watched of each kind, for all controllers together.
    fn selections(&self) -> BTreeMap<KindRef, Selection> {
        let mut kinds: BTreeMap<KindRef, Selection> =
            self.roots().into_iter().map(|kind| (kind, Selection::everything())).collect();
        for watch in self.controllers.iter().flat_map(|c| c.watches()) {
            kinds.entry(watch.kind).or_default().add(&watch);
        }
        kinds
    }

    /// One watch a kind and scope, shared by all controllers.
    fn kind_watches(&self) -> Vec<KindWatch> {
        let roots = self.roots();
        self.selections()
            .into_iter()
            .flat_map(|(kind, selection)| {
                let ownership = match kind.kind {
                    _ if roots.contains(&kind) => Ownership::Nothing,
                    // Of a pod we write labels only; its status has many managers.
                    "Pod" => Ownership::Labels,
                    _ => Ownership::Whole,
                };
                self.scopes().into_iter().map(move |scope| KindWatch {
                    kind,
                    scope,
                    selection: selection.clone(),
                    ownership,
                })
            })
            .collect()
    }

    fn scopes(&self) -> Vec<String> {
        if self.config.namespaces.is_empty() {
            vec![String::new()]
        } else {
            self.config.namespaces.clone()
        }
    }

    /// Each controller starts once its own kinds are listed: none waits for another's definition.
    async fn drive_all(&self, means: &Means, stop: &CancellationToken) {
        let mut loops = JoinSet::new();
        for controller in &self.controllers {
            let start = Start {
                health: self.health.clone(),
                controller: controller.clone(),
                scopes: self.scopes(),
            };
            self.health.waits(controller.name(), vec![controller.kind().kind]);
            loops.spawn(start.run(means.clone(), self.config.limits, stop.clone()));
        }
        while loops.join_next().await.is_some() {
            if !stop.is_cancelled() {
                // A loop that ends by itself is our fault: let the kubelet replace the process.
                self.health.dead();
            }
        }
    }
}

/// The start of one controller.
struct Start {
    health: Health,
    controller: Arc<dyn Driven>,
    scopes: Vec<String>,
}

impl Start {
    async fn run(self, means: Means, limits: Limits, stop: CancellationToken) {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = self.first_lists(&means.store) => {}
        }
        self.health.waits(self.controller.name(), Vec::new());
        drive(self.controller, means, limits, stop).await;
    }

    /// Waits until every kind that can be listed was. A kind that is refused holds nobody up for
    /// longer than [`LIST_PATIENCE`]: passes run, live reads confirm what they write, and what is
    /// forbidden shows in conditions (fault catalogue G-24). The controller's own kind is waited for
    /// as long as it takes, its definition included (G-63).
    async fn first_lists(&self, store: &Store) {
        let began = Instant::now();
        let root = self.controller.kind();
        let mut kinds: Vec<KindRef> =
            self.controller.watches().iter().map(|watch| watch.kind).collect();
        kinds.push(root);
        loop {
            kinds.retain(|kind| !self.scopes.iter().all(|scope| store.is_listed(*kind, scope)));
            let patient = began.elapsed() < LIST_PATIENCE;
            if kinds.is_empty() || (!patient && !kinds.contains(&root)) {
                return;
            }
            let missing = kinds.iter().map(|kind| kind.kind).collect();
            self.health.waits(self.controller.name(), missing);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// How long passes wait for the first list of a kind that keeps failing.
pub const LIST_PATIENCE: Duration = Duration::from_secs(15);

/// Wakes the resources that a changed object leads to.
struct Wakes {
    controllers: Vec<Arc<dyn Driven>>,
}

impl Listener for Wakes {
    fn changed(&self, id: &ObjectId, live: &Live) {
        for controller in &self.controllers {
            for owner in controller.owners_of(id, live) {
                controller.queue().wake(owner, Instant::now());
            }
        }
    }
}
