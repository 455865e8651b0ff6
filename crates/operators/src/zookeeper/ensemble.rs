//! What the servers say: the configuration of the ensemble, the size record, each server's mode.
//!
//! Asks ready pods by their own names, never through a Service that anybody's pod may join. Must not
//! decide what follows.

use std::collections::{BTreeMap, BTreeSet};

use phased::fact::{
    Answer, Node, Question, Reply, WordOutcome, WordRequest, ZooKeeperCall, ZooKeeperOutcome,
    ZooKeeperRequest,
};

use super::names::{Names, RECORD_PARENT};

/// Bound on connecting and on each call, in seconds.
const TIMEOUT_SECONDS: u32 = 5;
/// Node with the configuration of the ensemble.
const CONFIG_NODE: &str = "/zookeeper/config";

/// How the servers are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Names of the cluster.
    pub names: Names,
    /// DNS domain of the Kubernetes cluster.
    pub domain: String,
    /// Port for clients.
    pub port: u16,
}

impl Address {
    /// Asks a server for the record, the node above it, and the ensemble's configuration.
    pub fn records(&self, ordinal: u32) -> Question {
        let paths = [RECORD_PARENT.to_owned(), self.names.record(), CONFIG_NODE.to_owned()];
        let calls = paths.map(|path| ZooKeeperCall::Read { path }).to_vec();
        Question::ZooKeeper(self.session(ordinal, calls))
    }

    /// A session with a server.
    pub fn session(&self, ordinal: u32, calls: Vec<ZooKeeperCall>) -> ZooKeeperRequest {
        ZooKeeperRequest {
            host: self.names.pod_host(ordinal, &self.domain),
            port: self.port,
            calls,
            timeout_seconds: TIMEOUT_SECONDS,
        }
    }

    /// Asks a server by a four-letter word.
    pub fn word(&self, ordinal: u32, word: &str) -> Question {
        Question::Word(WordRequest {
            host: self.names.pod_host(ordinal, &self.domain),
            port: self.port,
            word: word.to_owned(),
            timeout_seconds: TIMEOUT_SECONDS,
        })
    }
}

/// What a session told.
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// Whether the node above the record exists.
    pub has_parent: bool,
    /// The record.
    pub record: Option<Node>,
    /// The ensemble's configuration.
    pub membership: Membership,
}

/// Reads the answer to [`Address::records`].
///
/// # Errors
/// Why nothing was told, in words.
pub fn records(answer: &Answer) -> Result<Records, String> {
    match answer {
        Ok(Reply::ZooKeeper(ZooKeeperOutcome::Done(nodes))) => {
            let [parent, record, config] = nodes.as_slice() else {
                return Err("an answer to another question".to_owned());
            };
            let text = config.as_ref().map_or("", |node| node.data.as_str());
            Ok(Records {
                has_parent: parent.is_some(),
                record: record.clone(),
                membership: membership(text),
            })
        }
        Ok(Reply::ZooKeeper(ZooKeeperOutcome::Refused { code, .. })) => {
            Err(format!("the server refuses with error {code}"))
        }
        Ok(Reply::ZooKeeper(ZooKeeperOutcome::Unreachable { message })) => Err(message.clone()),
        Ok(_) => Err("an answer to another question".to_owned()),
        Err(trouble) => Err(trouble.message.clone()),
    }
}

/// Who belongs to the ensemble, by its own configuration. Members are told by ordinal, which is one
/// below the id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// Members with a vote.
    pub voters: BTreeSet<u32>,
    /// Members without one.
    pub observers: BTreeSet<u32>,
    /// Version of the configuration.
    pub version: i64,
}

impl Membership {
    /// Everybody who is listed.
    pub fn all(&self) -> impl Iterator<Item = u32> {
        self.voters.union(&self.observers).copied()
    }

    /// Whether these servers are a majority of the voters.
    pub fn is_quorum(&self, serving: &BTreeSet<u32>) -> bool {
        self.voters.intersection(serving).count() > self.voters.len() / 2
    }
}

/// Reads lines such as `server.1=host:2888:3888:participant;0.0.0.0:2181` and `version=100000003`.
fn membership(text: &str) -> Membership {
    let mut found = Membership::default();
    for line in text.lines() {
        let Some((key, value)) = line.trim().split_once('=') else { continue };
        if key == "version" {
            found.version = i64::from_str_radix(value, 16).unwrap_or_default();
        }
        let Some(id) = key.strip_prefix("server.").and_then(|id| id.parse::<u32>().ok()) else {
            continue;
        };
        let Some(ordinal) = id.checked_sub(1) else { continue };
        let address = value.split(';').next().unwrap_or_default();
        if address.split(':').any(|part| part == "observer") {
            found.observers.insert(ordinal);
        } else {
            found.voters.insert(ordinal);
        }
    }
    found
}

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It leads.
    Leader,
    /// It follows.
    Follower,
    /// It follows without a vote.
    Observer,
    /// It is the only one, and knows of no ensemble.
    Standalone,
}

/// Reads the answer to `srvr`: `None` when the server serves nobody now.
///
/// # Errors
/// Why nothing was told, in words.
pub fn mode(answer: &Answer) -> Result<Option<Mode>, String> {
    let text = said(answer)?;
    let word = text.lines().find_map(|line| line.strip_prefix("Mode:")).map(str::trim);
    Ok(match word {
        Some("leader") => Some(Mode::Leader),
        Some("follower") => Some(Mode::Follower),
        Some("observer") => Some(Mode::Observer),
        Some("standalone") => Some(Mode::Standalone),
        _ => None,
    })
}

/// Reads the answer to `conf`: settings by name.
///
/// # Errors
/// Why nothing was told, in words.
pub fn settings(answer: &Answer) -> Result<BTreeMap<String, String>, String> {
    let text = said(answer)?;
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    Ok(pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect())
}

fn said(answer: &Answer) -> Result<&str, String> {
    match answer {
        Ok(Reply::Word(WordOutcome::Said(text))) => Ok(text),
        Ok(Reply::Word(WordOutcome::Unreachable { message })) => Err(message.clone()),
        Ok(_) => Err("an answer to another question".to_owned()),
        Err(trouble) => Err(trouble.message.clone()),
    }
}
