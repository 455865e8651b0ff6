//! Applies for real what was foreseen, and compares.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use foresight::child::Fate;
use foresight::forecast::Forecast;
use serde_json::{Value, json};
use sim::world::World;
use steadfast::embedded::SimClock;
use steadfast::link::Link;
use steadfast::manifest::Document;
use steadfast::plan::{self, Manner};

use crate::drawn;
use crate::picture::{KINDS, Objects, Picture, differences, foretold};
use crate::support::history::History;
use crate::support::kubectl;
use crate::support::{Bench, LONG, NAME, Operator, Subject, TEST_DB, ensemble, replicas};

/// What must not change any more for a world to be settled.
const SETTLED: [&str; 9] = [
    "databases",
    "zookeeperclusters",
    "statefulsets",
    "services",
    "poddisruptionbudgets",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "pods",
];
/// A pod is ready a moment before its server serves, or it is not: whether this phase of an ensemble shows
/// is left out of the comparison.
const PASSING: &str = "Forming";
/// How long nothing must change before a world counts as settled.
const QUIET: Duration = Duration::from_secs(20);
/// Name of the client that plans, in the server's log.
const PLANNER: &str = "planner";

/// A world with a settled resource, and a person who edits it.
pub(crate) struct Trial {
    bench: Bench,
    _operator: Operator,
    link: Link,
    person: kube::Client,
    chance: Rng,
    pub(crate) manifest: Value,
    history: History,
    activity: Arc<Mutex<Activity>>,
}

/// The exercise's Database.
fn exercise() -> Value {
    let mut manifest: Value = serde_saphyr::from_str(TEST_DB).expect("an example is YAML");
    manifest["metadata"]["namespace"] = json!("default");
    manifest
}

/// What was seen of pods, and how much happened.
#[derive(Default)]
struct Activity {
    changes: usize,
    gone: Vec<String>,
}

/// How an edit came out.
pub(crate) struct Verdict {
    /// Which kind of forecast it was.
    pub(crate) shape: String,
    /// How it differs from the truth, if it does.
    pub(crate) miss: Option<String>,
}

impl Trial {
    pub(crate) async fn begin(seed: u64) -> Self {
        let bench = Bench::new(seed);
        bench.apply(
            &json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "apps", "namespace": "default"}})
            .to_string(),
        );
        let operator = bench.operator();
        // What others depend on.
        bench.apply(&TEST_DB.replace("name: test-db", "name: other"));
        bench.settle("other").await;
        Self::around(bench, operator, seed, exercise()).settled().await
    }

    /// The same with a ZookeeperCluster of three.
    pub(crate) async fn begin_cluster(seed: u64) -> Self {
        let bench = Bench::of(ensemble::ZOOKEEPER, seed);
        let operator = bench.operator();
        let manifest = serde_json::from_str(&ensemble::manifest(3)).expect("JSON");
        Self::around(bench, operator, seed, manifest).settled().await
    }

    async fn settled(self) -> Self {
        self.apply(&self.manifest).await.expect("the manifest is accepted");
        self.bench.settle(self.bench.subject.name).await;
        self.settle().await;
        self
    }

    fn around(bench: Bench, operator: Operator, seed: u64, manifest: Value) -> Self {
        let client =
            |name| kube::Client::new(bench.world.cluster.client(name).service(), "default");
        let mut link = Link::to(client(PLANNER), "default");
        link.clock = Arc::new(SimClock(bench.world.clone()));
        let Subject { plural, name, .. } = bench.subject;
        Self {
            link,
            person: client("person"),
            chance: Rng::with_seed(seed),
            manifest,
            history: History::of_kind(&bench.world, plural, name),
            activity: follow(&bench.world, name),
            _operator: operator,
            bench,
        }
    }

    /// A Database that does not exist yet: foreseen, then made. How it differs, if it does.
    pub(crate) async fn first_install(seed: u64) -> Option<String> {
        let bench = Bench::new(seed);
        let operator = bench.operator();
        let trial = Self::around(bench, operator, seed, exercise());
        let forecast = trial.foresee(&trial.manifest).await;
        let phases = forecast.phases.iter().map(|one| one.phase.clone()).collect::<Vec<_>>();
        let made: BTreeSet<String> = forecast
            .children
            .iter()
            .filter(|child| child.fate == Fate::Create)
            .map(|child| child.name.clone())
            .collect();
        trial.apply(&trial.manifest).await.expect("the manifest is accepted");
        trial.bench.settle(NAME).await;
        trial.settle().await;
        let there: BTreeSet<String> = trial
            .objects()
            .into_keys()
            .filter(|name| !name.starts_with("PersistentVolumeClaim"))
            .collect();
        let truth = (trial.history.phases(), there);
        let told = (phases, made);
        (truth != told).then(|| format!("told {told:?}\n  true {truth:?}"))
    }

    /// From one server to three, to two, to one, each foreseen and made: how it differs, if it does, and
    /// what each says of actions and volumes. At the end the slots that are left.
    pub(crate) async fn scale(&mut self) -> (Vec<(Option<String>, String)>, String) {
        let mut told = Vec::new();
        for replicas in [3, 2, 1] {
            let mut after = self.manifest.clone();
            after["spec"]["replicas"] = json!(replicas);
            let forecast = self.foresee(&after).await;
            let acts = forecast.outside.iter().map(|act| format!("{}: {}", act.name, act.why));
            let volumes = forecast
                .storage
                .iter()
                .map(|one| format!("{}: {}", one.what, one.claims.join(",")));
            let said: Vec<String> = acts.chain(volumes).collect();
            let (verdict, ..) = self.edit(&after, &format!("replicas = {replicas}")).await;
            told.push((verdict.miss, said.join("\n")));
            self.manifest = after;
        }
        (told, replicas::ask(&self.bench, 0, replicas::SLOTS).await)
    }

    /// Draws an edit, foresees it, makes it, compares, and takes it back if it was refused.
    pub(crate) async fn draw(&mut self, number: usize) -> Verdict {
        let (after, words) = drawn::edit(&self.manifest, number, &mut self.chance);
        let (verdict, applied, refused) = self.edit(&after, &format!("#{number} {words}")).await;
        if applied && refused {
            self.restore().await;
        } else if applied {
            self.manifest = after;
        }
        verdict
    }

    /// Foresees an edit, makes it, and compares. Whether the server took it, and whether it, or the
    /// operator, refused it.
    pub(crate) async fn edit(&mut self, after: &Value, words: &str) -> (Verdict, bool, bool) {
        let forecast = self.foresee(after).await;
        let mut told = foretold(&forecast);
        let (shape, applied, mut truth) = self.make(after, &forecast).await;
        for picture in [&mut told, &mut truth] {
            picture.phases.retain(|phase| phase != PASSING);
        }
        let refused = told.refused || truth.refused;
        let miss = (told != truth).then(|| format!("{words}\n  told {told:?}\n  true {truth:?}"));
        (Verdict { shape, miss }, applied, refused)
    }

    /// Makes the edit for real, and waits until all is quiet.
    async fn make(&mut self, after: &Value, forecast: &Forecast) -> (String, bool, Picture) {
        let before = self.objects();
        self.activity.lock().expect("no rule panics").gone.clear();
        let seen = self.history.all().len();
        let shape = format!("{:?}", forecast.outcome);
        if self.apply(after).await.is_err() {
            let truth = Picture { refused: true, ..Picture::default() };
            return (format!("{shape} by the server"), false, truth);
        }
        self.settle().await;
        let all = self.history.all();
        let mut phases: Vec<String> =
            all[seen.saturating_sub(1)..].iter().map(|s| s.phase.clone()).collect();
        phases.dedup();
        let name = self.bench.subject.name;
        let ready = self.bench.condition(name, "Ready")["status"] == "True";
        let truth = Picture {
            refused: !ready,
            children: differences(&before, &self.objects()),
            pods: self.activity.lock().expect("no rule panics").gone.clone(),
            phases: phases.into_iter().skip(1).collect(),
        };
        let restarts = if truth.pods.is_empty() { "" } else { " with a restart" };
        (format!("{shape}{restarts}"), true, truth)
    }

    async fn restore(&mut self) {
        let manifest = self.manifest.clone();
        self.apply(&manifest).await.expect("what was accepted is accepted again");
        self.bench.settle(self.bench.subject.name).await;
        self.settle().await;
    }

    async fn foresee(&self, manifest: &Value) -> Forecast {
        let document = Document { value: manifest.clone(), source: "drawn".to_owned() };
        let manner = Manner::new(false, false, None);
        let foreseen = plan::document(&self.link, document, &manner, &self.bench.settings).await;
        foreseen.expect("a forecast is made")
    }

    /// `kubectl apply`, client-side.
    async fn apply(&self, manifest: &Value) -> kube::Result<()> {
        kubectl::apply(&self.person, manifest).await
    }

    /// Waits until nothing but Events has changed for a while.
    async fn settle(&self) {
        let changes = || self.activity.lock().expect("no rule panics").changes;
        let (mut known, mut quiet) = (changes(), Duration::ZERO);
        let began = tokio::time::Instant::now();
        while quiet < QUIET && began.elapsed() < LONG * 3 {
            tokio::time::sleep(Duration::from_secs(1)).await; // virtual time
            let now = changes();
            quiet = if now == known { quiet + Duration::from_secs(1) } else { Duration::ZERO };
            known = now;
        }
    }

    /// Children by name.
    fn objects(&self) -> Objects {
        let mut found = Objects::new();
        for kind in KINDS {
            for object in self.bench.world.list(kind, "default") {
                let label = |key: &str| {
                    object["metadata"]["labels"][key].as_str() == Some(self.bench.subject.name)
                };
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                if label("app.kubernetes.io/instance") || label("app") {
                    found.insert(
                        format!("{kind}/default/{name}"),
                        (kind.to_owned(), object.clone()),
                    );
                }
            }
        }
        found
    }
}

/// Keeps count of changes, and of pods that go.
fn follow(world: &World, name: &'static str) -> Arc<Mutex<Activity>> {
    let activity = Arc::new(Mutex::new(Activity::default()));
    let seen = activity.clone();
    world.check("activity", move |moment| {
        let key = &moment.change.key;
        let mut seen = seen.lock().expect("no rule panics");
        if SETTLED.contains(&key.plural.as_str()) {
            seen.changes += 1;
        }
        let ours = key.plural == "pods" && key.name.starts_with(name);
        if ours && moment.change.after.is_none() {
            seen.gone.push(key.name.clone());
        }
        Ok(())
    });
    activity
}

/// Plans of every kind against a watched server: how many writes, those without a dry run, and the
/// cluster before and after.
pub(crate) async fn writes_of_a_plan() -> (usize, Vec<String>, String, String) {
    let trial = Trial::begin(7).await;
    let state = |trial: &Trial| {
        let all: Vec<Value> = ["Database", "StatefulSet", "Secret", "ConfigMap", "Service", "Pod"]
            .iter()
            .flat_map(|kind| trial.bench.world.list(kind, ""))
            .collect();
        json!(all).to_string()
    };
    let before = state(&trial);
    let mut edited = trial.manifest.clone();
    edited["spec"]["image"] = json!("postgres:14.19");
    let mut new = trial.manifest.clone();
    new["metadata"]["name"] = json!("another");
    let mut refused = trial.manifest.clone();
    refused["spec"]["databaseName"] = json!("renamed");
    for server_side in [false, true] {
        let manner = Manner::new(server_side, true, None);
        for manifest in [&edited, &new, &refused] {
            let document = Document { value: manifest.clone(), source: "test".to_owned() };
            let planned =
                plan::document(&trial.link, document, &manner, &trial.bench.settings).await;
            assert!(planned.is_ok(), "{planned:?}");
        }
    }
    let after = state(&trial);
    let (writes, plain) = trial.bench.world.cluster.with(|core| {
        let log = core.faults.log().iter();
        let ours = log.filter(|e| e.is_write() && core.faults.client_name(e.client) == PLANNER);
        let paths: Vec<String> = ours.map(|e| format!("{} {}", e.verb, e.path)).collect();
        let plain = paths.iter().filter(|path| !path.contains("dryRun=All")).cloned().collect();
        (paths.len(), plain)
    });
    (writes, plain, before, after)
}
