//! A Database on a real API server, a person who edits it, and somebody who plans without a right to more
//! than a dry run needs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use foresight::forecast::Forecast;
use kube::api::ListParams;
use phased::Settings;
use serde_json::{Value, json};
use steadfast::link::Link;
use steadfast::manifest::Document;
use steadfast::plan::{self, Manner};
use tokio::task::JoinHandle;

use crate::kubectl;
use crate::picture::{Objects, Picture, differences, foretold};
use crate::real::{Bench, Operator, PATIENCE, condition, is_ready, printed_rules};
use crate::watching::{Activity, NAME, RESOURCES, follow};

/// Who plans.
const PLANNER: &str = "planner";
/// How long nothing must change before an edit that is carried out counts as settled.
const QUIET: Duration = Duration::from_secs(3);

pub(crate) struct Trial<'a> {
    bench: &'a Bench,
    operator: Operator,
    link: Link,
    pub(crate) manifest: Value,
    activity: Arc<Mutex<Activity>>,
    watches: Vec<JoinHandle<()>>,
}

impl<'a> Trial<'a> {
    /// A Database, Ready, and another that it may depend on.
    pub(crate) async fn begin(bench: &'a Bench) -> Self {
        let operator = bench.operator("steadfast", &printed_rules()).await;
        let planner = bench.grant(PLANNER, &rules_of_the_planner()).await;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "apps", "namespace": bench.namespace}});
        crate::real::apply(&bench.client, &account).await;
        let major = localnode::programs::find().expect("the bench has looked for it").major;
        let spec = json!({
            "image": format!("postgres:{major}"), "replicas": 1, "databaseName": "mydb",
            "username": "admin", "storage": {"size": "10Gi"},
        });
        bench.apply_database("other", spec.clone()).await;
        let manifest = json!({
            "apiVersion": "database.example.com/v1", "kind": "Database",
            "metadata": {"name": NAME, "namespace": bench.namespace}, "spec": spec,
        });
        let activity = Arc::new(Mutex::new(Activity {
            last: Instant::now(),
            gone: Vec::new(),
            phases: Vec::new(),
        }));
        let watches = follow(bench, &activity);
        let link = Link::to(planner, &bench.namespace);
        let trial = Self { bench, operator, link, manifest, activity, watches };
        trial.apply(&trial.manifest).await.expect("the manifest is accepted");
        for name in [NAME, "other"] {
            bench.must(name, "Ready", is_ready).await;
        }
        trial.settle().await;
        trial
    }

    /// A drawn manifest with the images of the PostgreSQL that is here, and neighbours of this namespace.
    pub(crate) fn at_home(&self, drawn: Value) -> Value {
        let major = localnode::programs::find().map_or(0, |programs| programs.major);
        let text = drawn
            .to_string()
            .replace("postgres:15", &format!("postgres:{}", major + 1))
            .replace("postgres:14", &format!("postgres:{major}"))
            .replace("other.default.svc", &format!("other.{}.svc", self.bench.namespace));
        serde_json::from_str(&text).expect("it was JSON")
    }

    /// Foresees an edit, makes it, and says how it differs, if it does. What was refused is taken back.
    pub(crate) async fn edit(&mut self, after: Value, words: &str) -> Option<String> {
        let forecast = self.foresee(&after).await;
        let told = foretold(&forecast);
        let before = self.objects().await;
        self.seen().gone.clear();
        let begun = self.seen().phases.len().saturating_sub(1);
        if self.apply(&after).await.is_err() {
            let truth = Picture { refused: true, ..Picture::default() };
            return difference(words, &told, &truth);
        }
        self.settle().await;
        let refused = !is_ready(&self.bench.database(NAME).await);
        let children = differences(&before, &self.objects().await);
        let (pods, phases) = self.since(begun);
        let truth = Picture { refused, children, pods, phases };
        if refused || told.refused {
            self.apply(&self.manifest).await.expect("what was accepted is accepted again");
            self.bench.must(NAME, "Ready again", is_ready).await;
            self.settle().await;
        } else {
            self.manifest = after;
        }
        difference(words, &told, &truth)
    }

    /// URIs of all writes that the planner has sent, dry runs among them.
    pub(crate) async fn writes_of_the_planner(&self) -> Vec<String> {
        let user = format!("system:serviceaccount:{}:{PLANNER}", self.bench.namespace);
        let log = self.bench.plane.audit_log().await.expect("the audit log is readable");
        let reads = ["get", "list", "watch"];
        let writes =
            log.into_iter().filter(|e| e.user == user && !reads.contains(&e.verb.as_str()));
        writes.map(|entry| entry.request_uri).collect()
    }

    pub(crate) async fn end(self) {
        self.watches.iter().for_each(JoinHandle::abort);
        self.operator.stop().await;
    }

    async fn foresee(&self, manifest: &Value) -> Forecast {
        let document = Document { value: manifest.clone(), source: "drawn".to_owned() };
        let manner = Manner::new(false, false, None);
        let began = Instant::now();
        loop {
            let looked =
                plan::document(&self.link, document.clone(), &manner, &Settings::default()).await;
            match looked {
                Ok(forecast) => return forecast,
                Err(mistake) => assert!(began.elapsed() < PATIENCE, "no forecast: {mistake}"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await; // poll: a server that is too busy
        }
    }

    /// As kubectl applies it. The error is the server's refusal: one that is too busy is asked again.
    async fn apply(&self, manifest: &Value) -> kube::Result<()> {
        let began = Instant::now();
        loop {
            match kubectl::apply(&self.bench.client, manifest).await {
                Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                    return Err(kube::Error::Api(status));
                }
                Err(error) => assert!(began.elapsed() < PATIENCE, "no answer: {error}"),
                Ok(()) => return Ok(()),
            }
            tokio::time::sleep(Duration::from_secs(1)).await; // poll: a server that is too busy
        }
    }

    /// Pods that went, and phases that came after this one.
    fn since(&self, begun: usize) -> (Vec<String>, Vec<String>) {
        let seen = self.seen();
        (seen.gone.clone(), seen.phases[begun..].iter().skip(1).cloned().collect())
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Activity> {
        self.activity.lock().expect("no watch panics")
    }

    /// Waits until the operator has looked at the generation and has nothing left to do, the set is rolled
    /// out, and nothing has changed for a while.
    async fn settle(&self) {
        let sets = self.bench.api("apps", "StatefulSet", "statefulsets");
        let began = Instant::now();
        self.seen().last = Instant::now();
        loop {
            let database = self.bench.database(NAME).await;
            let set = sets.get_opt(NAME).await.expect("readable").map(|set| set.data);
            let quiet = self.seen().last.elapsed() >= QUIET;
            if quiet && is_at_rest(&database) && set.is_some_and(|set| is_rolled_out(&set)) {
                return;
            }
            let patience = began.elapsed() < PATIENCE;
            assert!(patience, "{:#}\n{}", database["status"], self.bench.describe().await);
            tokio::time::sleep(Duration::from_millis(200)).await; // poll: the stored state
        }
    }

    /// Children by name.
    async fn objects(&self) -> Objects {
        let mut found = Objects::new();
        let ours = ListParams::default().labels(&format!("app.kubernetes.io/instance={NAME}"));
        for (group, kind, plural) in RESOURCES.into_iter().filter(|(_, kind, _)| *kind != "Pod") {
            for object in self.bench.api(group, kind, plural).list(&ours).await.expect("listable") {
                let name = object.metadata.name.clone().unwrap_or_default();
                let value = serde_json::to_value(object).expect("serialisable");
                let name = format!("{kind}/{}/{name}", self.bench.namespace);
                found.insert(name, (kind.to_owned(), value));
            }
        }
        found
    }
}

fn difference(words: &str, told: &Picture, truth: &Picture) -> Option<String> {
    (told != truth).then(|| format!("{words}\n  told {told:?}\n  true {truth:?}"))
}

/// Whether the operator has looked at this generation, and has done with it.
fn is_at_rest(database: &Value) -> bool {
    let progressing = condition(database, "Progressing");
    progressing["status"] == "False"
        && progressing["observedGeneration"] == database["metadata"]["generation"]
}

fn is_rolled_out(set: &Value) -> bool {
    let (spec, status) = (&set["spec"], &set["status"]);
    ["replicas", "readyReplicas", "updatedReplicas"]
        .iter()
        .all(|number| status[*number] == spec["replicas"])
        && status["currentRevision"] == status["updateRevision"]
}

/// What a plan may: read, and ask for dry runs of Databases.
fn rules_of_the_planner() -> Vec<Value> {
    vec![
        json!({"apiGroups": ["database.example.com"], "resources": ["databases"],
            "verbs": ["get", "list", "create", "patch"]}),
        json!({"apiGroups": ["", "apps", "policy", "storage.k8s.io"], "resources": ["*"],
            "verbs": ["get", "list"]}),
    ]
}
