//! ZooKeeper servers of a few facts: who votes, which nodes there are, with what settings each runs.

use std::collections::{BTreeMap, BTreeSet};

use phased::fact::{
    BAD_VERSION, Fate, NO_NODE, NODE_EXISTS, Node, Trouble, WordOutcome, WordRequest,
    ZooKeeperCall, ZooKeeperOutcome, ZooKeeperRequest,
};

/// The ensemble's facts.
#[derive(Clone, Debug)]
pub struct Servers {
    /// Ordinals that vote.
    pub voters: BTreeSet<u32>,
    /// Version of the configuration.
    pub version: i64,
    /// Nodes with their data and versions.
    pub nodes: BTreeMap<String, (String, i32)>,
    /// Settings that each server runs with.
    pub running: BTreeMap<u32, BTreeMap<String, String>>,
    /// Nobody reaches any server.
    pub cut_off: bool,
    /// Servers whose pods are ready and that serve nobody.
    pub mute: BTreeSet<u32>,
    /// Every write is refused with this error.
    pub refuses: Option<i32>,
}

impl Default for Servers {
    fn default() -> Self {
        Self {
            voters: BTreeSet::new(),
            version: 0x1_0000_0000,
            nodes: BTreeMap::new(),
            running: BTreeMap::new(),
            cut_off: false,
            mute: BTreeSet::new(),
            refuses: None,
        }
    }
}

fn ordinal(host: &str) -> u32 {
    host.split('.').next().unwrap().rsplit_once('-').unwrap().1.parse().unwrap()
}

impl Servers {
    /// Voters that serve, if they are a quorum.
    pub fn serving(&self, ready: &BTreeSet<u32>) -> BTreeSet<u32> {
        let up: BTreeSet<u32> = self
            .voters
            .iter()
            .filter(|v| ready.contains(v) && !self.mute.contains(v))
            .copied()
            .collect();
        if up.len() > self.voters.len() / 2 { up } else { BTreeSet::new() }
    }

    pub fn word(&self, ready: &BTreeSet<u32>, request: &WordRequest) -> WordOutcome {
        let asked = ordinal(&request.host);
        if self.cut_off || !ready.contains(&asked) {
            return WordOutcome::Unreachable { message: "connection refused".to_owned() };
        }
        let serving = self.serving(ready);
        WordOutcome::Said(match request.word.as_str() {
            "srvr" if !serving.contains(&asked) => {
                "This ZooKeeper instance is not currently serving requests\n".to_owned()
            }
            "srvr" => {
                let mode = if serving.first() == Some(&asked) { "leader" } else { "follower" };
                format!("Zookeeper version: 3.9.3\nMode: {mode}\nNode count: 5\n")
            }
            "conf" => {
                let settings = self.running.get(&asked).cloned().unwrap_or_default();
                settings.iter().fold(String::new(), |text, (k, v)| format!("{text}{k}={v}\n"))
            }
            other => panic!("{other}"),
        })
    }

    pub fn session(
        &mut self,
        ready: &BTreeSet<u32>,
        request: &ZooKeeperRequest,
    ) -> ZooKeeperOutcome {
        if self.cut_off || !self.serving(ready).contains(&ordinal(&request.host)) {
            return ZooKeeperOutcome::Unreachable { message: "no session".to_owned() };
        }
        let mut nodes = Vec::new();
        for (place, call) in request.calls.iter().enumerate() {
            match self.call(call) {
                Ok(node) => nodes.push(node),
                Err(code) => return ZooKeeperOutcome::Refused { code, call: place },
            }
        }
        ZooKeeperOutcome::Done(nodes)
    }

    fn call(&mut self, call: &ZooKeeperCall) -> Result<Option<Node>, i32> {
        let reads = matches!(call, ZooKeeperCall::Read { .. });
        if let Some(code) = self.refuses.filter(|_| !reads) {
            return Err(code);
        }
        match call {
            ZooKeeperCall::Read { path } if path == "/zookeeper/config" => {
                let line = |v: &u32| {
                    let id = v + 1;
                    format!("server.{id}=zk-{v}.zk-headless:2888:3888:participant;0.0.0.0:2181\n")
                };
                let members: String = self.voters.iter().map(line).collect();
                let data = format!("{members}version={:x}", self.version);
                Ok(Some(Node { data, version: 0 }))
            }
            ZooKeeperCall::Read { path } => Ok(self
                .nodes
                .get(path)
                .map(|(data, version)| Node { data: data.clone(), version: *version })),
            ZooKeeperCall::Create { path, data } => {
                let parent = path.rsplit_once('/').unwrap().0;
                if !parent.is_empty() && !self.nodes.contains_key(parent) {
                    return Err(NO_NODE);
                }
                if self.nodes.contains_key(path) {
                    return Err(NODE_EXISTS);
                }
                self.nodes.insert(path.clone(), (data.clone(), 0));
                Ok(None)
            }
            ZooKeeperCall::Write { path, data, version } => {
                let node = self.nodes.get_mut(path).ok_or(NO_NODE)?;
                if node.1 != *version {
                    return Err(BAD_VERSION);
                }
                *node = (data.clone(), version + 1);
                Ok(Some(Node { data: data.clone(), version: version + 1 }))
            }
            ZooKeeperCall::Reconfigure { joining, leaving, from } => {
                if *from != self.version {
                    return Err(BAD_VERSION);
                }
                if let Ok(id) = leaving.parse::<u32>() {
                    self.voters.remove(&(id - 1));
                }
                // Its own probe gives it the vote that it joins without.
                if let Some((id, _)) =
                    joining.strip_prefix("server.").and_then(|j| j.split_once('='))
                {
                    self.voters.insert(id.parse::<u32>().unwrap() - 1);
                }
                self.version += 1;
                Ok(Some(Node { data: String::new(), version: 0 }))
            }
        }
    }

    pub fn act(&mut self, ready: &BTreeSet<u32>, request: &ZooKeeperRequest) -> Option<Trouble> {
        let message = match self.session(ready, request) {
            ZooKeeperOutcome::Done(_) => return None,
            ZooKeeperOutcome::Refused { code, .. } => format!("refused with {code}"),
            ZooKeeperOutcome::Unreachable { message } => message,
        };
        let reason = "KeeperException".to_owned();
        Some(Trouble { fate: Fate::WorldMayHeal, reason, message })
    }

    /// What the record says.
    pub fn record(&self) -> Option<&str> {
        self.nodes.get("/zookeeper-operator/zk").map(|(data, _)| data.as_str())
    }
}
