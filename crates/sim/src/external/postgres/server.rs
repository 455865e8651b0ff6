//! A running PostgreSQL server of the model: settings, rules, conditions that tests set, sessions.
//!
//! Must not speak the protocol; `session` does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::conf::{self, Rule};
use super::data::Data;
use super::replication::{Following, Sender};
use super::settings;

/// A server's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

/// Latest minor versions that the model knows of.
const MINORS: [(u32, u32); 5] = [(14, 20), (15, 15), (16, 11), (17, 7), (18, 1)];

impl Version {
    /// The version that an image's tag names: `postgres:17`, `postgres:17.2-bookworm`.
    pub fn of_image(image: &str) -> Version {
        let name = image.rsplit('/').next().unwrap_or("");
        let tag = name.split('@').next().unwrap_or("").split_once(':').map_or("", |parts| parts.1);
        let mut numbers = tag.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
        let major = numbers.next().and_then(Result::ok).unwrap_or(17);
        let latest = MINORS.iter().find(|entry| entry.0 == major).map_or(0, |entry| entry.1);
        let said = tag.starts_with(&format!("{major}."));
        let minor = numbers.next().and_then(Result::ok).filter(|_| said).unwrap_or(latest);
        Version { major, minor }
    }

    /// `17.7`.
    pub fn short(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    /// What `SHOW server_version` says in the official image.
    pub fn shown(self) -> String {
        format!("{} (Debian {}-1.pgdg13+1)", self.short(), self.short())
    }

    pub(super) fn long(self) -> String {
        format!(
            "PostgreSQL {} on x86_64-pc-linux-gnu, compiled by gcc (Debian 14.2.0-19) 14.2.0, 64-bit",
            self.shown()
        )
    }
}

/// What a test does to a server.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Every transaction is read-only unless it says otherwise.
    pub read_only: bool,
    /// Nothing can be written to the disk.
    pub disk_full: bool,
    /// Connections are accepted and never answered.
    pub silent: bool,
    /// The system is starting up and takes no connections.
    pub starting: bool,
    /// Every statement takes this long.
    pub delay: Duration,
    /// Every base backup takes this much longer.
    pub copying: Duration,
    /// What is received is replayed this much later.
    pub replaying: Duration,
    /// Names of roles, databases and tables that somebody else holds a lock on.
    pub locked: BTreeSet<String>,
    /// The C library's collation version, where it has changed.
    pub collation_version: Option<String>,
}

/// An open session, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) pid: i32,
    pub(super) database: String,
    pub(super) user: String,
    pub(super) application: String,
    pub(super) address: String,
}

/// A running server.
pub struct Server {
    /// Version.
    pub version: Version,
    pub(super) data: Arc<Mutex<Data>>,
    pub(super) started: Timestamp,
    pub(super) changed: Notify,
    base: Instant,
    settings: Mutex<BTreeMap<String, String>>,
    pending: Mutex<BTreeSet<String>>,
    rules: Mutex<Vec<Rule>>,
    conditions: Mutex<Conditions>,
    pub(super) senders: Mutex<BTreeMap<i32, Sender>>,
    pub(super) following: Mutex<Following>,
    sessions: Mutex<BTreeMap<i32, Seen>>,
    random: Mutex<fastrand::Rng>,
    stopped: Mutex<bool>,
    crashed: Mutex<Option<String>>,
    log: Mutex<String>,
    full: Mutex<bool>,
    pub(super) waker: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    /// From when on it takes connections.
    pub(super) ready_at: Timestamp,
    /// Where `pg_reload_conf` finds the files: the paths and their present text.
    pub(super) files: Mutex<BTreeMap<String, String>>,
}

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panicking holder has failed its test already; the data are whole between statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of log that are kept.
const LOG_KEPT: usize = 32 << 10;

/// What a server starts with.
pub(super) struct Start {
    pub(super) version: Version,
    pub(super) data: Arc<Mutex<Data>>,
    pub(super) now: Timestamp,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) rules: Vec<Rule>,
    pub(super) files: BTreeMap<String, String>,
    pub(super) random: u64,
    pub(super) ready_at: Timestamp,
    /// Password files that the server's user may read, and must not be read by others.
    pub(super) passwords: BTreeMap<String, String>,
}

impl Server {
    pub(super) fn new(start: Start) -> Server {
        Server {
            version: start.version,
            data: start.data,
            started: start.now,
            changed: Notify::new(),
            base: Instant::now(),
            settings: Mutex::new(start.settings),
            pending: Mutex::default(),
            rules: Mutex::new(start.rules),
            conditions: Mutex::default(),
            senders: Mutex::default(),
            following: Mutex::new(Following::new(start.passwords)),
            sessions: Mutex::default(),
            random: Mutex::new(fastrand::Rng::with_seed(start.random)),
            stopped: Mutex::new(false),
            crashed: Mutex::default(),
            log: Mutex::default(),
            full: Mutex::default(),
            waker: Mutex::default(),
            ready_at: start.ready_at,
            files: Mutex::new(start.files),
        }
    }

    /// Changes what a test does to the server; waiting statements look again.
    pub fn conditions<R>(&self, change: impl FnOnce(&mut Conditions) -> R) -> R {
        let answer = change(&mut held(&self.conditions));
        self.changed.notify_waiters();
        answer
    }

    pub(super) fn condition(&self) -> Conditions {
        held(&self.conditions).clone()
    }

    /// Whether nothing more fits onto its volume.
    pub(super) fn volume_full(&self) -> bool {
        *held(&self.full)
    }

    /// The volume has become full, or is no longer.
    pub(super) fn set_volume_full(&self, full: bool) {
        *held(&self.full) = full;
        self.conditions(|condition| condition.disk_full = full);
    }

    /// Whether it is a standby that serves nobody.
    pub(super) fn closed(&self) -> bool {
        self.standby() && self.setting("hot_standby").is_some_and(|value| value == "off")
    }

    /// The data, for tests that look or break things.
    pub fn identifier(&self) -> u64 {
        self.data().identifier
    }

    pub(super) fn data(&self) -> MutexGuard<'_, Data> {
        held(&self.data)
    }

    pub(super) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.base.elapsed()).unwrap_or_default();
        self.started.saturating_add(passed).unwrap_or(self.started)
    }

    /// Whether it follows a primary.
    pub(super) fn standby(&self) -> bool {
        held(&self.following).standby
    }

    pub(super) fn sessions(&self) -> Vec<Seen> {
        held(&self.sessions).values().cloned().collect()
    }

    pub(super) fn enter(&self, seen: Seen) {
        held(&self.sessions).insert(seen.pid, seen);
    }

    pub(super) fn leave(&self, pid: i32) {
        held(&self.sessions).remove(&pid);
        self.changed.notify_waiters();
    }

    pub(super) fn random(&self) -> u64 {
        held(&self.random).u64(..)
    }

    pub(super) fn collation_version(&self) -> String {
        let changed = held(&self.conditions).collation_version.clone();
        changed.unwrap_or_else(|| super::COLLATION_VERSION.to_owned())
    }

    /// A setting of the server, as kept.
    pub(super) fn setting(&self, name: &str) -> Option<String> {
        held(&self.settings).get(name).cloned()
    }

    /// A number among the settings, by its boot value where nobody set it.
    pub(super) fn number(&self, name: &str) -> i64 {
        let boot = || settings::find(name, self.version.major).map(|one| one.boot.to_owned());
        let kept = self.setting(name).or_else(boot);
        kept.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// A line of the server's log.
    pub(super) fn say(&self, level: &str, text: &str) {
        let at = format!("{:.3}", self.now()).replace('T', " ");
        let mut log = held(&self.log);
        log.push_str(&format!("{} UTC [1] {level}:  {text}\n", at.trim_end_matches('Z')));
        // What is repeated every few seconds must not grow for ever.
        if log.len() > LOG_KEPT {
            let cut = log.len() - LOG_KEPT / 2;
            let line = log.get(cut..).and_then(|tail| tail.find('\n')).map_or(0, |at| cut + at + 1);
            log.drain(..line);
        }
    }

    /// What it has said since it started.
    pub fn log(&self) -> String {
        held(&self.log).clone()
    }

    pub(super) fn pending_restart(&self, name: &str) -> bool {
        held(&self.pending).contains(name)
    }

    pub(super) fn rule(&self, user: &str, database: &str, address: &str) -> Option<Rule> {
        held(&self.rules).iter().find(|rule| rule.fits(user, database, address)).cloned()
    }

    pub(super) fn replication_rule(&self, user: &str, address: &str) -> Option<Rule> {
        held(&self.rules).iter().find(|rule| rule.lets_stream(user, address)).cloned()
    }

    /// Takes in changed files, as `pg_reload_conf` does; settings that need a restart wait for it.
    pub(super) fn reload(&self) {
        let (path, text, rules_path, rules_text) = {
            let files = held(&self.files);
            let settings = held(&self.settings);
            let path = settings.get("config_file").cloned().unwrap_or_default();
            let rules = settings.get("hba_file").cloned().unwrap_or_default();
            let text = files.get(&path).cloned();
            let rules_text = files.get(&rules).cloned();
            (path, text, rules, rules_text)
        };
        if let Some(text) = text
            && let Ok(entries) =
                conf::parse_with(&path, &text, self.version.major, &held(&self.files))
        {
            let automatic = self.data().automatic.clone();
            self.take(entries.into_iter().chain(automatic));
        }
        if let Some(text) = rules_text
            && let Ok(rules) = conf::host_rules(&rules_path, &text)
        {
            *held(&self.rules) = rules;
        }
    }

    fn take(&self, entries: impl Iterator<Item = (String, String)>) {
        let mut settings = held(&self.settings);
        for (name, value) in entries {
            let context =
                settings::find(&name, self.version.major).map_or("user", |one| one.context);
            if matches!(context, "postmaster" | "internal") {
                if settings.get(&name) != Some(&value) {
                    held(&self.pending).insert(name);
                }
            } else {
                settings.insert(name, value);
            }
        }
    }

    /// Mounted files have changed; `pg_reload_conf` reads them.
    pub(super) fn see(&self, mounted: &BTreeMap<String, String>) {
        held(&self.files).extend(mounted.iter().map(|(path, text)| (path.clone(), text.clone())));
    }

    /// Ends the server as a crash does, with these last words.
    pub fn crash(&self, message: &str) {
        *held(&self.crashed) = Some(format!("{message}\n").trim_start_matches('\n').to_owned());
        self.stop();
    }

    /// Ends by itself, with this exit code and these last words after its log.
    pub(super) fn end(&self, words: &str) {
        self.crash(words);
        let waker = held(&self.waker).clone();
        if let Some(waker) = waker {
            waker();
        }
    }

    pub(super) fn crashed(&self) -> Option<String> {
        held(&self.crashed).clone()
    }

    /// Ends every session.
    pub(super) fn stop(&self) {
        *held(&self.stopped) = true;
        self.changed.notify_waiters();
    }

    pub(super) fn stopped(&self) -> bool {
        *held(&self.stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_tags() {
        let cases = [
            ("postgres:14", 14, 20),
            ("postgres:17.2", 17, 2),
            ("ghcr.io/x/postgres:16.3-alpine", 16, 3),
            ("postgres", 17, 7),
            ("postgres:latest", 17, 7),
            ("localhost:5000/postgres:15@sha256:00", 15, 15),
        ];
        for (image, major, minor) in cases {
            assert_eq!(Version::of_image(image), Version { major, minor }, "{image}");
        }
    }
}
