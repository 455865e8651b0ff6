//! Who of the servers leads whom, and what an ensemble agrees upon.
//!
//! Elections take no messages: who is up, and which ways are cut, decides. Must not lock the ground
//! that it is part of.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::ground::held;
use super::members::Config;
use super::tree::{Change, Tree};
use super::{BAD_VERSION, NEW_CONFIG_NO_QUORUM, NO_AUTH, RECONFIG_DISABLED};
use crate::external::network::Links;

/// How long an election takes, in milliseconds.
const ELECTION_MILLIS: i64 = 300;
/// How long a server takes to sync with its leader, in milliseconds.
const SYNC_MILLIS: i64 = 200;

/// What a server keeps on its volume.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    /// `myid`.
    pub(super) id: u32,
    /// The dynamic configuration; none before the first start was through.
    pub(super) config: Option<Config>,
    pub(super) tree: Tree,
    /// Last transaction: the epoch above, a count below.
    pub(super) transaction: i64,
}

/// A server that runs.
pub(super) struct Member {
    pub(super) address: String,
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) follows: Option<Follows>,
}

/// Whose word a server takes, its own if it leads, and from when on it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Follows {
    leader: String,
    since: Timestamp,
}

/// What a server is to its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Leader,
    Follower,
    Observer,
}

/// Servers by host name.
#[derive(Default)]
pub(super) struct State {
    pub(super) members: BTreeMap<String, Member>,
    pub(super) links: Option<Arc<Links>>,
    pub(super) began: Option<(Timestamp, Instant)>,
}

impl State {
    pub(super) fn now(&self) -> Timestamp {
        let Some((at, since)) = self.began else { return Timestamp::UNIX_EPOCH };
        let passed = SignedDuration::try_from(since.elapsed()).unwrap_or_default();
        at.saturating_add(passed).unwrap_or(at)
    }

    fn after(&self, millis: i64) -> Timestamp {
        let now = self.now();
        now.saturating_add(SignedDuration::from_millis(millis)).unwrap_or(now)
    }

    fn meet(&self, one: &str, other: &str) -> bool {
        if one == other {
            return true;
        }
        let (Some(one), Some(other)) = (self.members.get(one), self.members.get(other)) else {
            return false;
        };
        self.links.as_ref().is_none_or(|links| links.passes(&one.address, &other.address))
    }

    fn leader_of(&self, host: &str) -> Option<&str> {
        Some(self.members.get(host)?.follows.as_ref()?.leader.as_str())
    }

    fn config(&self, host: &str) -> Option<Config> {
        held(&self.members.get(host)?.disk).config.clone()
    }

    pub(super) fn mode(&self, host: &str) -> Option<Mode> {
        let member = self.members.get(host)?;
        let follows = member.follows.as_ref().filter(|follows| follows.since <= self.now())?;
        if follows.leader == host {
            return Some(Mode::Leader);
        }
        let disk = held(&member.disk);
        let entry = disk.config.as_ref().and_then(|config| config.members.get(&disk.id));
        Some(if entry.is_some_and(|entry| entry.votes) { Mode::Follower } else { Mode::Observer })
    }

    /// Whoever follows this leader, the leader included.
    fn followers<'a>(&'a self, leader: &'a str) -> impl Iterator<Item = &'a String> {
        self.members.keys().filter(move |host| self.leader_of(host) == Some(leader))
    }

    /// Voters of a configuration among these hosts.
    fn voters<'a>(config: &Config, hosts: impl Iterator<Item = &'a String>) -> usize {
        let votes = |host: &str| config.members.values().any(|one| one.votes && one.host == host);
        hosts.filter(|host| votes(host)).count()
    }

    /// Who has lost whom, who finds whom, who is elected.
    pub(super) fn settle(&mut self) {
        self.part();
        while self.join() || self.elect() {}
    }

    fn part(&mut self) {
        let lost = |state: &Self, host: &String| {
            let leader = state.leader_of(host);
            leader.is_some_and(|leader| {
                state.leader_of(leader) != Some(leader) || !state.meet(host, leader)
            })
        };
        let parted: Vec<String> =
            self.members.keys().filter(|host| lost(self, host)).cloned().collect();
        self.release(&parted);
        let leaders: Vec<String> = self
            .members
            .keys()
            .filter(|h| self.leader_of(h) == Some(h.as_str()))
            .cloned()
            .collect();
        for leader in leaders {
            let config = self.config(&leader).unwrap_or_default();
            let votes = config.members.values().any(|one| one.votes && one.host == leader);
            let count = Self::voters(&config, self.followers(&leader));
            if !votes || !config.is_majority(count) {
                let all: Vec<String> = self.followers(&leader).cloned().collect();
                self.release(&all);
            }
        }
    }

    fn release(&mut self, hosts: &[String]) {
        for host in hosts {
            if let Some(member) = self.members.get_mut(host) {
                member.follows = None;
            }
        }
    }

    /// One server finds a leader that lists it; true if there was one.
    fn join(&mut self) -> bool {
        let looking = self.members.iter().filter(|(_, member)| member.follows.is_none());
        let found = looking.map(|(host, _)| host).find_map(|host| {
            let peers = self.config(host)?;
            let leader = peers.members.values().map(|entry| &entry.host).find(|peer| {
                let lists =
                    || self.config(peer)?.members.values().find(|e| e.host == *host).cloned();
                self.leader_of(peer) == Some(peer.as_str())
                    && self.meet(host, peer)
                    && lists().is_some()
            });
            Some((host.clone(), leader?.clone()))
        });
        let Some((host, leader)) = found else { return false };
        let since = self.members[&leader].follows.as_ref().map(|follows| follows.since);
        let since = since.unwrap_or_default().max(self.after(SYNC_MILLIS));
        self.follow(&host, &leader, since);
        true
    }

    /// Takes over what the leader has.
    fn follow(&mut self, host: &str, leader: &str, since: Timestamp) {
        let state = self.members.get(leader).map(|member| held(&member.disk).clone());
        if let (Some(state), Some(member)) = (state, self.members.get_mut(host)) {
            let mut disk = held(&member.disk);
            let id = disk.id;
            *disk = Disk { id, ..state };
            drop(disk);
            member.follows = Some(Follows { leader: leader.to_owned(), since });
        }
    }

    /// The most advanced of a majority of voters that look and meet begins a new epoch.
    fn elect(&mut self) -> bool {
        let mut looking: Vec<(i64, u32, String)> = Vec::new();
        for (host, member) in self.members.iter().filter(|(_, m)| m.follows.is_none()) {
            let disk = held(&member.disk);
            looking.push((disk.transaction, disk.id, host.clone()));
        }
        looking.sort();
        let best = looking.iter().rev().map(|(_, _, host)| host).find(|host| {
            let config = self.config(host).unwrap_or_default();
            let votes = config.members.values().any(|one| one.votes && one.host == **host);
            let near = looking.iter().map(|(_, _, o)| o).filter(|o| self.meet(host, o));
            votes && config.is_majority(Self::voters(&config, near))
        });
        let Some(leader) = best.cloned() else { return false };
        let since = self.after(ELECTION_MILLIS);
        if let Some(member) = self.members.get_mut(&leader) {
            let mut disk = held(&member.disk);
            let first = ((disk.transaction >> 32) + 1) << 32;
            disk.transaction = first;
            // The configuration that a first start wrote has no version yet.
            if let Some(config) = disk.config.as_mut().filter(|config| config.version == 0) {
                config.version = first;
            }
            drop(disk);
            member.follows = Some(Follows { leader: leader.clone(), since });
        }
        true
    }

    /// Everybody who takes the word of a server's leader.
    fn ensemble(&self, host: &str) -> Vec<Arc<Mutex<Disk>>> {
        let Some(leader) = self.leader_of(host) else { return Vec::new() };
        self.followers(leader).filter_map(|one| Some(self.members.get(one)?.disk.clone())).collect()
    }

    pub(super) fn change(&mut self, host: &str, change: &Change) -> Result<i64, i32> {
        let disks = self.ensemble(host);
        let next = disks.iter().map(|disk| held(disk).transaction).max().unwrap_or_default() + 1;
        // Their trees are the same, so that what one refuses all do.
        for disk in disks {
            let mut disk = held(&disk);
            disk.tree.apply(change, next)?;
            disk.transaction = next;
        }
        Ok(next)
    }

    pub(super) fn reconfigure(
        &mut self,
        host: &str,
        (joining, leaving): (&str, &str),
        from: i64,
    ) -> Result<Config, i32> {
        let setting = |name: &str| self.members[host].settings.get(name).map(String::as_str);
        if setting("reconfigEnabled") != Some("true") {
            return Err(RECONFIG_DISABLED);
        }
        if setting("skipACL") != Some("yes") {
            return Err(NO_AUTH);
        }
        let leader = self.leader_of(host).unwrap_or_default().to_owned();
        let before = self.config(&leader).unwrap_or_default();
        if from != -1 && from != before.version {
            return Err(BAD_VERSION);
        }
        let mut config = before.changed(joining, leaving)?;
        let synced = self.followers(&leader).filter(|one| self.mode(one).is_some());
        if !config.is_majority(Self::voters(&config, synced)) {
            return Err(NEW_CONFIG_NO_QUORUM);
        }
        let disks = self.ensemble(host);
        let next = disks.iter().map(|disk| held(disk).transaction).max().unwrap_or_default() + 1;
        config.version = next;
        for disk in disks {
            let mut disk = held(&disk);
            disk.config = Some(config.clone());
            disk.transaction = next;
        }
        Ok(config)
    }
}
