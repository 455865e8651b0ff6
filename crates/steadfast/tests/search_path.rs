//! What an application plants in its database does not run with the operator's statements: a real
//! PostgreSQL under the embedded cluster (fault catalogue PG-15).
//!
//! Each planted function draws from a sequence, which no rollback takes back.

mod console;

use std::sync::Arc;
use std::time::{Duration, Instant};

use localnode::LocalNode;
use operators::database::{DatabaseController, sql};
use phased::Settings;
use runner::clock::SystemClock;
use runner::external::dial::{Dialer, EndpointSlices};
use runner::metrics::Metrics;
use runner::random::SystemRandom;
use runner::{Config, Environment, Runner};
use serde_json::{Value, json};
use sim::builtin::Switch;
use sim::clock::Clock;
use sim::world::World;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config as Login, NoTls, SimpleQueryMessage};
use tokio_util::sync::CancellationToken;

const TEST_DB: &str = include_str!("../../../examples/test-db.yaml");

/// Like names that the operator's statements use, in a schema that comes before `pg_catalog`.
const PLANTED: &str = "
CREATE SCHEMA evil;
CREATE SEQUENCE evil.witness;
CREATE FUNCTION evil.same(name, name) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN PERFORM nextval('evil.witness'); RETURN true; END $$;
CREATE FUNCTION evil.same(name, text) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN PERFORM nextval('evil.witness'); RETURN true; END $$;
CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = name, FUNCTION = evil.same);
CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = text, FUNCTION = evil.same);
CREATE FUNCTION evil.current_setting(text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM nextval('evil.witness'); RETURN 'planted'; END $$;
CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM nextval('evil.witness'); RETURN 'planted'; END $$;
CREATE FUNCTION evil.current_database() RETURNS name LANGUAGE plpgsql AS
    $$ BEGIN PERFORM nextval('evil.witness'); RETURN 'planted'; END $$;
CREATE FUNCTION evil.pg_get_userbyid(oid) RETURNS name LANGUAGE plpgsql AS
    $$ BEGIN PERFORM nextval('evil.witness'); RETURN 'planted'; END $$;
CREATE VIEW evil.pg_database AS SELECT nextval('evil.witness') AS oid, 'mydb'::name AS datname;
CREATE VIEW evil.pg_roles AS SELECT nextval('evil.witness') AS oid, 'admin'::name AS rolname;
CREATE DOMAIN evil.text AS pg_catalog.text CHECK (nextval('evil.witness') > 0);
CREATE TABLE public.steadfast_probe (value text DEFAULT nextval('evil.witness')::text);
CREATE TABLE evil.steadfast_probe (value text DEFAULT nextval('evil.witness')::text);
ALTER ROLE admin SET search_path = evil, public, pg_catalog, pg_temp;
ALTER DATABASE mydb SET search_path = evil, public, pg_catalog, pg_temp;
ALTER ROLE admin IN DATABASE mydb SET search_path = evil, public, pg_catalog, pg_temp;
ALTER ROLE admin SET standard_conforming_strings = off;
ALTER DATABASE mydb SET standard_conforming_strings = off;
";

/// The embedded cluster with real pods, and an operator that verifies all the time.
struct Bench {
    world: World,
    node: LocalNode,
    dialer: EndpointSlices,
    metrics: Metrics,
    stop: CancellationToken,
    tasks: [JoinHandle<()>; 2],
}

async fn bench() -> Bench {
    let world = World::with_clock(15, Clock::starting_at(jiff::Timestamp::now()));
    for crd in steadfast::manifests::crds().expect("serialisable") {
        world.apply(&crd.to_string()).expect("accepted");
    }
    world.model(|model| model.kubelet = Switch::External);
    world.delete("Node", "", "node-1").expect("the model's node goes");
    let driver = world.spawn();
    let client = |name: &str| kube::Client::new(world.cluster.client(name).service(), "default");
    let options = localnode::Options { schedule: false, ..localnode::Options::default() };
    let node = LocalNode::start(client("node"), options).await.expect("the node starts");
    let dialer = EndpointSlices::new(client("operator"));
    let environment = Environment {
        client: client("operator"),
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        dialer: Arc::new(dialer.clone()),
    };
    let settings = Settings { verify_every_seconds: 1, ..Settings::default() };
    let runner = Runner::new(environment, Config { settings, ..Config::default() });
    let runner = runner.with::<DatabaseController>();
    let (metrics, stop) = (runner.metrics(), CancellationToken::new());
    let operator = tokio::spawn(runner.run(stop.clone()));
    Bench { world, node, dialer, metrics, stop, tasks: [operator, driver] }
}

impl Bench {
    fn database(&self) -> Value {
        self.world.get("Database", "default", "test-db").unwrap_or_default()
    }

    fn is_ready(&self) -> bool {
        let database = self.database();
        database["status"]["phase"] == "Ready" && database["status"]["ready"] == true
    }

    /// Passes that settled so far: each verifies, as soon as the Database is Ready.
    fn settled(&self) -> f64 {
        let text = self.metrics.text();
        let line = text.lines().find(|l| l.contains("passes_total") && l.contains("settled"));
        line.and_then(|l| l.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let began = Instant::now();
        while !holds() {
            assert!(began.elapsed() < console::PATIENCE, "{what}: {:#}", self.database()["status"]);
            tokio::time::sleep(Duration::from_millis(100)).await; // poll: the stored state
        }
    }

    /// Waits until the Database was verified three times more, and is Ready.
    async fn verified(&self, when: &str) {
        let before = self.settled();
        self.until(when, || self.settled() >= before + 3.0 && self.is_ready()).await;
    }

    async fn login(&self) -> Client {
        let secret = self.world.get("Secret", "default", "test-db-credentials").expect("made");
        let password = decoded(&secret["data"]["password"]);
        let host = "test-db.default.svc.cluster.local";
        let stream = self.dialer.dial(host, 5432).await.expect("the server listens");
        let mut login = Login::new();
        login.user("admin").password(password).dbname("mydb");
        let (client, connection) = login.connect_raw(stream, NoTls).await.expect("let in");
        tokio::spawn(connection);
        client
    }

    async fn strike(self) {
        self.stop.cancel();
        let [operator, driver] = self.tasks;
        operator.await.expect("the operator does not panic");
        self.node.stop().await;
        driver.abort();
    }
}

fn decoded(value: &Value) -> Vec<u8> {
    use base64::Engine;
    let text = value.as_str().expect("a value");
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
}

async fn ask(client: &Client, statement: &str) -> String {
    let answer = client.simple_query(statement).await.expect("the statement runs");
    let first = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    });
    first.unwrap_or_default()
}

/// Whether any planted code has run.
async fn has_run(client: &Client) -> bool {
    ask(client, "SELECT is_called FROM evil.witness").await == "t"
}

#[tokio::test(flavor = "multi_thread")]
async fn pg_15_what_is_planted_in_the_search_path_never_runs() {
    if console::require(false).is_none() {
        return;
    }
    let bench = bench().await;
    bench.world.apply(TEST_DB).expect("accepted");
    bench.until("it comes up", || bench.is_ready()).await;
    let owner = bench.login().await;
    owner.batch_execute(PLANTED).await.expect("the owner plants it");
    assert!(!has_run(&owner).await, "nothing has run yet");

    bench.verified("planted").await;
    assert!(!has_run(&owner).await, "verification ran planted code");
    // Statements that change something: the password of the role is set anew.
    let edited = bench.world.edit("Secret", "default", "test-db-credentials", |secret| {
        secret["data"]["password"] = json!("YW5vdGhlci1wYXNzd29yZA==");
    });
    edited.expect("edited");
    bench.verified("another password").await;
    // It is in force, and the path of an application is as planted.
    let victim = bench.login().await;
    assert!(ask(&victim, "SHOW search_path").await.starts_with("evil"), "the path is planted");
    assert!(!has_run(&victim).await, "setting a password ran planted code");

    // Without a fixed path the same statement runs it: this test can fail.
    ask(&victim, &sql::database_owner("mydb")).await;
    assert!(has_run(&victim).await, "the planted operator is reached by a planted path");
    bench.strike().await;
}
