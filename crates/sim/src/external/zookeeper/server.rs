//! A ZooKeeper server of the model, as sessions and tests hold it.
//!
//! Must not speak the protocol; `session` does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::ensemble::{Disk, Mode};
use super::ground::{Ground, held};
use super::tree::Change;

/// What a test does to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Connections are accepted and never answered.
    pub silent: bool,
    /// The stop hook is killed before it does anything.
    pub hook_killed: bool,
    /// Clients of this server may change nothing.
    pub refuses_changes: bool,
}

/// How far a server's process is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Life {
    /// The start script runs.
    Starting,
    /// The process is up.
    Up,
    /// It ended by itself, with these last words.
    Ended(String),
    /// It was stopped.
    Stopped,
}

/// A server.
pub struct Server {
    pub(super) ground: Arc<Ground>,
    pub(super) host: String,
    pub(super) address: String,
    /// Version that it tells.
    pub(super) version: &'static str,
    pub(super) changed: Notify,
    conditions: Mutex<Conditions>,
    life: Mutex<Life>,
    /// Whether its readiness script has succeeded.
    ready: Mutex<bool>,
    waker: Arc<dyn Fn() + Send + Sync>,
}

/// Who a server is.
pub(super) struct Identity {
    pub(super) host: String,
    pub(super) address: String,
    pub(super) version: &'static str,
}

impl Server {
    pub(super) fn new(
        ground: Arc<Ground>,
        identity: Identity,
        waker: Arc<dyn Fn() + Send + Sync>,
    ) -> Server {
        Server {
            ground,
            host: identity.host,
            address: identity.address,
            version: identity.version,
            changed: Notify::new(),
            conditions: Mutex::default(),
            life: Mutex::new(Life::Starting),
            ready: Mutex::new(false),
            waker,
        }
    }

    /// Changes what a test does to the server.
    pub fn conditions<R>(&self, change: impl FnOnce(&mut Conditions) -> R) -> R {
        let answer = change(&mut held(&self.conditions));
        self.changed.notify_waiters();
        answer
    }

    pub(super) fn condition(&self) -> Conditions {
        held(&self.conditions).clone()
    }

    /// `leader`, `follower` or `observer`; none when it serves nobody.
    pub fn mode(&self) -> Option<&'static str> {
        let mode = self.ground.mode(&self.host).filter(|_| self.is_up())?;
        Some(match mode {
            Mode::Leader => "leader",
            Mode::Follower => "follower",
            Mode::Observer => "observer",
        })
    }

    /// Data and version of a node, as this server holds it.
    pub fn node(&self, path: &str) -> Option<(String, i32)> {
        let disk = self.ground.disk(&self.host)?;
        let node = disk.tree.node(path)?;
        Some((String::from_utf8_lossy(&node.data).into_owned(), node.version))
    }

    /// Makes a node as a client of this server does.
    ///
    /// # Errors
    /// ZooKeeper's error; none of a server that serves nobody.
    pub fn create(&self, path: &str, data: &str) -> Result<(), Option<i32>> {
        self.client(&Change::Create { path: path.to_owned(), data: data.as_bytes().to_vec() })
    }

    /// Writes a node as a client of this server does, whatever its version.
    ///
    /// # Errors
    /// As [`Server::create`].
    pub fn write(&self, path: &str, data: &str) -> Result<(), Option<i32>> {
        let data = data.as_bytes().to_vec();
        self.client(&Change::Write { path: path.to_owned(), data, version: -1 })
    }

    fn client(&self, change: &Change) -> Result<(), Option<i32>> {
        match self.ground.change(&self.host, change).filter(|_| self.is_up()) {
            None => Err(None),
            Some(done) => done.map(|_| ()).map_err(Some),
        }
    }

    /// Changes the ensemble as a client of this server does, whatever the configuration's version:
    /// members that join, with commas, and ids of those that leave.
    ///
    /// # Errors
    /// As [`Server::create`].
    pub fn reconfigure(&self, joining: &str, leaving: &str) -> Result<(), Option<i32>> {
        let done = self.ground.reconfigure(&self.host, (joining, leaving), -1);
        done.ok_or(None)?.map(|_| ()).map_err(Some)
    }

    /// The configuration of the ensemble, as this server has it.
    pub fn members(&self) -> String {
        let config = self.ground.disk(&self.host).and_then(|disk| disk.config);
        config.map(|config| config.text()).unwrap_or_default()
    }

    /// Settings that it runs with.
    pub fn settings(&self) -> BTreeMap<String, String> {
        self.ground.settings(&self.host)
    }

    /// Ends the server as a crash does, with these last words.
    pub fn crash(&self, message: &str) {
        self.end(message);
    }

    pub(super) fn is_up(&self) -> bool {
        *held(&self.life) == Life::Up
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(*held(&self.life), Life::Ended(_) | Life::Stopped)
    }

    /// Last words, where it ended by itself.
    pub(super) fn last_words(&self) -> Option<String> {
        match &*held(&self.life) {
            Life::Ended(words) => Some(words.clone()),
            Life::Starting | Life::Up | Life::Stopped => None,
        }
    }

    /// The process is up, with this on its volume.
    pub(super) fn begin(&self, disk: Arc<Mutex<Disk>>, settings: BTreeMap<String, String>) {
        *held(&self.life) = Life::Up;
        self.ground.enter(&self.host, &self.address, disk, settings);
        self.tell();
    }

    pub(super) fn end(&self, words: &str) {
        if !self.is_over() {
            *held(&self.life) = Life::Ended(words.to_owned());
            self.ground.leave(&self.host, &self.address);
            self.tell();
        }
    }

    pub(super) fn stop(&self) {
        *held(&self.life) = Life::Stopped;
        self.ground.leave(&self.host, &self.address);
        self.changed.notify_waiters();
    }

    pub(super) fn is_ready(&self) -> bool {
        *held(&self.ready) && self.is_up() && !self.condition().silent
    }

    pub(super) fn set_ready(&self, ready: bool) {
        let before = std::mem::replace(&mut *held(&self.ready), ready);
        if before != ready {
            self.tell();
        }
    }

    /// Lets sessions and the kubelet look again.
    fn tell(&self) {
        self.changed.notify_waiters();
        (self.waker)();
    }

    /// Returns when the process is over.
    pub(super) async fn over(&self) {
        loop {
            let next = self.changed.notified();
            if self.is_over() {
                return;
            }
            next.await;
        }
    }

    /// Returns when it answers.
    pub(super) async fn speaks(&self) {
        loop {
            let next = self.changed.notified();
            if !self.condition().silent {
                return;
            }
            next.await;
        }
    }
}
