//! What the servers of one snapshot say, as far as they were asked.
//!
//! Must not decide what follows.

use std::collections::{BTreeMap, BTreeSet};

use phased::{Facts, Live, Question};

use super::ensemble::{self, Address, Mode, Records};
use crate::parts::members;

/// What became of a question to the servers.
#[derive(Clone, Debug, PartialEq)]
pub enum Hearing<T> {
    /// Questions without an answer yet.
    Asks(Vec<Question>),
    /// Nobody tells; why, in words. Unknown is not "no".
    Silent(String),
    /// The answer.
    Told(T),
}

/// The servers of a snapshot.
pub struct Servers<'a> {
    /// How they are reached.
    pub address: &'a Address,
    /// Answers so far.
    pub facts: &'a Facts,
    /// Pods by ordinal.
    pub pods: BTreeMap<u32, &'a Live>,
    /// Ordinals of the pods that are ready and stay.
    pub ready: BTreeSet<u32>,
}

impl<'a> Servers<'a> {
    /// Reads a snapshot.
    pub fn new(
        address: &'a Address,
        facts: &'a Facts,
        pods: impl Iterator<Item = (u32, &'a Live)>,
    ) -> Self {
        let pods: BTreeMap<u32, &Live> = pods.collect();
        let stays = |pod: &Live| members::is_ready_live(pod) && pod.deletion_time().is_none();
        let ready = pods.iter().filter(|(_, pod)| stays(pod)).map(|(ordinal, _)| *ordinal);
        Self { address, facts, ready: ready.collect(), pods }
    }

    /// Name of the pod of an ordinal.
    pub fn pod_name(&self, ordinal: u32) -> String {
        members::pod_name(&self.address.names.name, ordinal)
    }

    /// The server that told the records, or else the lowest that is ready.
    pub fn spokesman(&self) -> Option<u32> {
        match self.records() {
            Hearing::Told((ordinal, _)) => Some(ordinal),
            Hearing::Asks(_) | Hearing::Silent(_) => self.ready.first().copied(),
        }
    }

    /// Size record and membership, and who told them. The two lowest ready servers are asked, one
    /// after the other: each tells the truth of the whole ensemble or grants no session at all.
    pub fn records(&self) -> Hearing<(u32, Records)> {
        let mut why = "no server is ready".to_owned();
        for ordinal in self.ready.iter().take(2) {
            let question = self.address.records(*ordinal);
            match self.facts.get(&question).map(ensemble::records) {
                None => return Hearing::Asks(vec![question]),
                Some(Ok(records)) => return Hearing::Told((*ordinal, records)),
                Some(Err(message)) => why = message,
            }
        }
        Hearing::Silent(why)
    }

    /// Each ready server's mode; `None` of one that serves nobody, or does not tell.
    pub fn modes(&self) -> Hearing<BTreeMap<u32, Option<Mode>>> {
        self.each("srvr", |answer| ensemble::mode(answer).ok().flatten())
    }

    /// Servers that belong to a quorum by their own word.
    pub fn serving(&self) -> Hearing<BTreeSet<u32>> {
        match self.modes() {
            Hearing::Asks(asks) => Hearing::Asks(asks),
            Hearing::Silent(why) => Hearing::Silent(why),
            Hearing::Told(modes) => {
                let votes = |mode: &Option<Mode>| {
                    matches!(mode, Some(Mode::Leader | Mode::Follower | Mode::Standalone))
                };
                let serving = modes.iter().filter(|(_, mode)| votes(mode));
                Hearing::Told(serving.map(|(ordinal, _)| *ordinal).collect())
            }
        }
    }

    /// The settings that each ready server runs with; those that do not tell are left out.
    pub fn settings(&self) -> Hearing<BTreeMap<u32, BTreeMap<String, String>>> {
        match self.each("conf", |answer| ensemble::settings(answer).ok()) {
            Hearing::Asks(asks) => Hearing::Asks(asks),
            Hearing::Silent(why) => Hearing::Silent(why),
            Hearing::Told(all) => Hearing::Told(
                all.into_iter().filter_map(|(ordinal, told)| Some((ordinal, told?))).collect(),
            ),
        }
    }

    /// Asks every ready server the same.
    fn each<T>(&self, word: &str, read: fn(&phased::Answer) -> T) -> Hearing<BTreeMap<u32, T>> {
        let mut asks = Vec::new();
        let mut told = BTreeMap::new();
        for ordinal in &self.ready {
            let question = self.address.word(*ordinal, word);
            match self.facts.get(&question) {
                None => asks.push(question),
                Some(answer) => {
                    told.insert(*ordinal, read(answer));
                }
            }
        }
        if asks.is_empty() { Hearing::Told(told) } else { Hearing::Asks(asks) }
    }
}
