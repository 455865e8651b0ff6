//! The size of the set, and the record of it inside ZooKeeper.
//!
//! The set keeps its size until the record was read with the wanted number in the same pass; it
//! shrinks one member at a time, and only while those who stay are a quorum
//! (docs/design/0004-zookeeper.md). Must not write anything itself.

use std::collections::BTreeSet;

use phased::Question;
use phased::fact::{Node, ZooKeeperCall};
use phased::ladder::Finding;
use phased::step::{Action, Request};

use super::ensemble::{Address, Records};
use super::hearing::{Hearing, Servers};
use super::names::RECORD_PARENT;
use super::reason;

/// Gate of every action: a server granted a session, which none does without a quorum.
pub const GATE: &str = "QuorumServes";

/// How many servers the set is to have now, and what that waits for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizing {
    /// Servers in the set as it is written now.
    pub count: u32,
    /// Questions without an answer yet.
    pub asks: Vec<Question>,
    /// What the wanted size waits for.
    pub waits: Option<Finding>,
    /// What is done about it outside Kubernetes.
    pub actions: Vec<Action>,
}

/// What sizing rests on.
pub struct Ground<'a> {
    /// Servers wanted.
    pub wanted: u32,
    /// Servers in the live set; `None` when there is no set.
    pub live: Option<u32>,
    /// Whether a record was ever confirmed.
    pub was_recorded: bool,
    /// The servers.
    pub servers: &'a Servers<'a>,
}

/// Decides.
pub fn decide(ground: &Ground<'_>) -> Sizing {
    let (wanted, servers) = (ground.wanted, ground.servers);
    let Some(live) = ground.live.filter(|live| *live != wanted) else {
        return Sizing { count: wanted, ..Sizing::default() };
    };
    // Nobody is there yet who could be registered or removed.
    let alone = servers.pods.keys().all(|ordinal| *ordinal == 0);
    if !ground.was_recorded && alone && servers.ready.is_empty() {
        return Sizing { count: wanted, ..Sizing::default() };
    }
    let keep = |finding: Finding| Sizing { count: live, waits: Some(finding), ..Sizing::default() };
    let records = match servers.records() {
        Hearing::Asks(asks) => return Sizing { count: live, asks, ..Sizing::default() },
        Hearing::Silent(why) => {
            let message = format!(
                "spec.replicas: the set keeps {live} servers, and {wanted} are wanted, until the size is \
                 recorded: {why}"
            );
            return keep(Finding::new(&reason::SIZE_NOT_RECORDED, message));
        }
        Hearing::Told((_, records)) => records,
    };
    if let Some(action) = record(servers, &records, wanted) {
        let message = format!("spec.replicas: the size {wanted} is being recorded");
        let waits = Some(Finding::new(&reason::SIZE_NOT_RECORDED, message));
        return Sizing { count: live, waits, actions: vec![action], ..Sizing::default() };
    }
    if wanted > live {
        return Sizing { count: wanted, ..Sizing::default() };
    }
    shrink(live, servers, &records)
}

/// One member less, if the one before has left and those who stay are a quorum.
fn shrink(live: u32, servers: &Servers<'_>, records: &Records) -> Sizing {
    let keep = |waits: Finding| Sizing { count: live, waits: Some(waits), ..Sizing::default() };
    if let Some(left) = servers.pods.keys().find(|ordinal| **ordinal >= live) {
        let message = format!("spec.replicas: {} is leaving", servers.pod_name(*left));
        return keep(Finding::new(&reason::MEMBER_LEAVING, message));
    }
    if let Some(action) = removal(servers, records, live) {
        let message = "spec.replicas: a member that left is still listed and is being removed";
        return Sizing {
            actions: vec![action],
            ..keep(Finding::new(&reason::MEMBER_LEAVING, message))
        };
    }
    let serving = match servers.serving() {
        Hearing::Asks(asks) => return Sizing { count: live, asks, ..Sizing::default() },
        Hearing::Silent(_) => BTreeSet::new(),
        Hearing::Told(serving) => serving,
    };
    let stay = live - 1;
    let able = serving.iter().filter(|ordinal| **ordinal < stay).count();
    // ceil((stay + 1) / 2) of those who stay are a majority.
    if able > (stay as usize) / 2 {
        return Sizing { count: stay, ..Sizing::default() };
    }
    let message = format!(
        "spec.replicas: no member is taken away, since only {able} of the {stay} that would stay serve"
    );
    keep(Finding::new(&reason::QUORUM_AT_RISK, message))
}

/// What makes the record say `size`; `None` when it does.
pub fn record(servers: &Servers<'_>, records: &Records, size: u32) -> Option<Action> {
    let (path, data) = (servers.address.names.record(), text(size));
    let (calls, why) = match &records.record {
        Some(Node { data: stored, .. }) if *stored == data => return None,
        Some(Node { data: stored, version }) => {
            let why = format!("the record says {stored:?}");
            (vec![ZooKeeperCall::Write { path, data, version: *version }], why)
        }
        None => {
            let parent =
                ZooKeeperCall::Create { path: RECORD_PARENT.to_owned(), data: String::new() };
            let own = ZooKeeperCall::Create { path, data };
            let missing = if records.has_parent { vec![own] } else { vec![parent, own] };
            (missing, "there is no record".to_owned())
        }
    };
    Some(action(servers, "record-size", calls, why))
}

/// Removes one listed member whose ordinal is beyond the set; `None` when there is none.
pub fn removal(servers: &Servers<'_>, records: &Records, count: u32) -> Option<Action> {
    let gone = |ordinal: &u32| *ordinal >= count && !servers.pods.contains_key(ordinal);
    let left = records.membership.all().filter(gone).max()?;
    let call = ZooKeeperCall::Reconfigure {
        joining: String::new(),
        leaving: (left + 1).to_string(),
        from: records.membership.version,
    };
    let why = format!("{} is gone and still listed", servers.pod_name(left));
    Some(action(servers, "remove-member", vec![call], why))
}

fn action(
    servers: &Servers<'_>,
    name: &'static str,
    calls: Vec<ZooKeeperCall>,
    why: String,
) -> Action {
    let address: &Address = servers.address;
    let asked = servers.spokesman().unwrap_or_default();
    Action { name, gate: GATE, request: Request::ZooKeeper(address.session(asked, calls)), why }
}

/// What the record says, as the scripts of the image read it.
pub fn text(size: u32) -> String {
    format!("CLUSTER_SIZE={size}")
}
