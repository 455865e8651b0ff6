//! The scripts of the image family: start, readiness and stop, with the changes of membership that
//! they make.
//!
//! Must not know pods; what a container was given comes in [`Script`].

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::ensemble::Disk;
use super::ground::held;
use super::members::Config;
use super::server::Server;
use crate::external::network::{Reach, Unreached};

/// How long the start script and the server's own start take, each, in milliseconds.
const START_MILLIS: u64 = 400;
/// How often, and how many times, the helper asks for a session: three minutes in all.
const SESSION_TRIES: u32 = 180;
const SESSION_PAUSE: Duration = Duration::from_secs(1);
/// Failures of the readiness script in a row that count; the kubelet's own default.
const FAILURES: u32 = 3;

/// What `env.sh` says.
pub(super) struct Environment {
    pub(super) domain: String,
    pub(super) client_port: u16,
    quorum_port: u16,
    leader_port: u16,
    client_host: String,
    cluster_name: String,
}

impl Environment {
    pub(super) fn read(variables: &BTreeMap<String, String>) -> Result<Environment, String> {
        let text = |name: &str| {
            let value = variables.get(name).filter(|value| !value.is_empty()).cloned();
            value.ok_or_else(|| format!("{name}: unbound variable"))
        };
        let port = |name: &str| text(name)?.parse::<u16>().map_err(|_| format!("{name}: no port"));
        Ok(Environment {
            domain: text("DOMAIN")?,
            client_port: port("CLIENT_PORT")?,
            quorum_port: port("QUORUM_PORT")?,
            leader_port: port("LEADER_PORT")?,
            client_host: text("CLIENT_HOST")?,
            cluster_name: text("CLUSTER_NAME")?,
        })
    }
}

/// A server's scripts, with what they were given.
pub(super) struct Script {
    pub(super) server: Arc<Server>,
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) environment: Environment,
    pub(super) id: u32,
    pub(super) namespace: String,
    pub(super) reach: Reach,
    pub(super) initial_delay_seconds: u64,
    pub(super) period_seconds: u64,
}

impl Script {
    /// Starts the server, then runs the readiness script again and again, and looks who leads whenever
    /// a way is cut or mended.
    pub(super) async fn run(self: Arc<Self>) {
        let started = self.start().await;
        if let Err(message) = started {
            self.server.end(&message);
            return;
        }
        tokio::select! {
            biased;
            () = self.watch_ways() => {}
            () = self.probe() => {}
        }
    }

    async fn watch_ways(&self) {
        loop {
            self.reach.links().changed().await;
            self.server.ground.look();
        }
    }

    async fn probe(&self) {
        tokio::time::sleep(Duration::from_secs(self.initial_delay_seconds)).await;
        let mut failures = 0;
        while !self.server.is_over() {
            failures = if self.is_ready().await { 0 } else { failures + 1 };
            if failures == 0 {
                self.server.set_ready(true);
            } else if failures >= FAILURES {
                self.server.set_ready(false);
            }
            tokio::time::sleep(Duration::from_secs(self.period_seconds.max(1))).await;
        }
    }

    async fn start(&self) -> Result<(), String> {
        tokio::time::sleep(Duration::from_millis(START_MILLIS)).await;
        let known = {
            let disk = held(&self.disk);
            disk.id == self.id && disk.config.is_some()
        };
        let active = self.is_ensemble_active();
        if !known {
            let alone = Config::default().changed(&self.entry("participant"), "").ok();
            let mut disk = held(&self.disk);
            disk.id = self.id;
            disk.config = alone.filter(|_| self.id == 1);
        }
        if active && !known {
            let config = self.add("observer").await?;
            held(&self.disk).config = Some(config);
        }
        tokio::time::sleep(Duration::from_millis(START_MILLIS)).await;
        match held(&self.disk).config.as_ref() {
            None => return Err("there is no /data/zoo.cfg.dynamic".to_owned()),
            Some(config) if !config.members.contains_key(&self.id) => {
                return Err(format!("My id {} not in the peer list", self.id));
            }
            Some(_) => {}
        }
        self.server.begin(self.disk.clone(), self.settings.clone());
        Ok(())
    }

    /// Whether the name of the headless Service resolves: some pod is ready.
    fn is_ensemble_active(&self) -> bool {
        self.reach.resolves(&self.environment.domain, self.environment.client_port)
    }

    fn entry(&self, role: &str) -> String {
        let Environment { quorum_port, leader_port, client_port, .. } = &self.environment;
        let host = &self.server.host;
        format!("server.{}={host}:{quorum_port}:{leader_port}:{role};{client_port}", self.id)
    }

    /// The server behind the client Service; this one where there is no such Service.
    fn partner(&self) -> Option<String> {
        let Environment { client_host, client_port, .. } = &self.environment;
        let host = format!("{client_host}.{}.svc", self.namespace);
        match self.reach.find::<Server>(&self.server.address, &host, *client_port) {
            Ok((_, server)) => server.mode().map(|_| server.host.clone()),
            Err(Unreached::Unknown) => self.server.mode().map(|_| self.server.host.clone()),
            Err(Unreached::Refused(_) | Unreached::Lost(_)) => None,
        }
    }

    async fn reconfigure(&self, joining: &str, leaving: &str) -> Result<Config, String> {
        for _ in 0..SESSION_TRIES {
            let partner = self.partner();
            let ground = &self.server.ground;
            let done = partner.and_then(|host| ground.reconfigure(&host, (joining, leaving), -1));
            match done {
                Some(Ok(config)) => return Ok(config),
                Some(Err(error)) => return Err(format!("KeeperErrorCode {error} for reconfig")),
                None => tokio::time::sleep(SESSION_PAUSE).await,
            }
        }
        Err("no session within three minutes".to_owned())
    }

    async fn add(&self, role: &str) -> Result<Config, String> {
        self.reconfigure(&self.entry(role), "").await
    }

    /// The readiness script. An observer is made a participant by it, and what comes of that is not
    /// looked at.
    async fn is_ready(&self) -> bool {
        if !self.server.is_up() || self.server.condition().silent {
            return false;
        }
        if !self.is_ensemble_active() {
            return true;
        }
        let entry = held(&self.disk).config.as_ref().and_then(|c| c.members.get(&self.id).cloned());
        match entry {
            None => false,
            Some(entry) if entry.votes => true,
            Some(_) => {
                let _ = self.reconfigure("", &self.id.to_string()).await;
                tokio::time::sleep(SESSION_PAUSE).await;
                let _ = self.add("participant").await;
                true
            }
        }
    }

    /// The stop hook: a member that the record has no place for leaves the ensemble. Connections of
    /// clients are not waited for.
    pub(super) fn stop(&self) {
        if !self.server.is_up() || self.server.condition().hook_killed {
            return;
        }
        let ground = &self.server.ground;
        let Some(partner) = ground.any(&self.environment.domain) else { return };
        let path = format!("/zookeeper-operator/{}", self.environment.cluster_name);
        let record = ground.disk(&partner).and_then(|disk| {
            let node = disk.tree.node(&path)?.data.clone();
            String::from_utf8(node).ok()?.rsplit_once('=')?.1.trim().parse::<u32>().ok()
        });
        if record.is_some_and(|size| size < self.id) {
            let _ = ground.reconfigure(&partner, ("", &self.id.to_string()), -1);
        }
    }
}
