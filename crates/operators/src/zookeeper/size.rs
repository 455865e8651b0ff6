//! The size of the set, and the record of it inside ZooKeeper.
//!
//! The set keeps its size until the record was read with the wanted number in the same pass; it
//! shrinks one member at a time, each removed from the ensemble before its pod goes, and only while
//! those who stay are a quorum (docs/design/0004-zookeeper.md). Must not write anything itself.

use std::collections::BTreeSet;

use phased::Question;
use phased::fact::{Node, ZooKeeperCall};
use phased::ladder::Finding;
use phased::step::{Action, Delete, Request};

use super::ensemble::{Address, Records};
use super::hearing::{Hearing, Servers};
use super::leavers::{InTheWay, Leavers};
use super::names::RECORD_PARENT;
use super::reason;

/// Gate of every action: a server granted a session, which none does without a quorum.
pub const GATE: &str = "QuorumServes";

/// Writes the record.
const RECORD: &str = "record-size";
/// Removes a member.
const REMOVE: &str = "remove-member";
/// Lists a member again.
const ADD: &str = "add-member";
/// Every action of this controller.
pub const ACTIONS: [&str; 3] = [RECORD, REMOVE, ADD];

/// How many servers the set is to have now, and what that waits for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizing {
    /// Servers in the set as it is written now.
    pub count: u32,
    /// Questions without an answer yet.
    pub asks: Vec<Question>,
    /// What the wanted size waits for.
    pub waits: Option<Finding>,
    /// What a person must do for the wanted size.
    pub blocked: Option<Finding>,
    /// What is done about it outside Kubernetes.
    pub actions: Vec<Action>,
    /// Claims of members that left, which growth waits for.
    pub deletes: Vec<Delete>,
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
    /// Claims of members that left.
    pub leavers: &'a Leavers,
    /// Ordinals whose servers have run for long, ready or not.
    pub lasting: &'a BTreeSet<u32>,
    /// Ports for followers, for elections and for clients.
    pub ports: [u16; 3],
}

/// Decides.
pub fn decide(ground: &Ground<'_>) -> Sizing {
    let (wanted, servers) = (ground.wanted, ground.servers);
    let live = match ground.live {
        None => return Sizing { count: wanted, ..Sizing::default() },
        Some(live) if live == wanted => return mend(ground),
        Some(live) => live,
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
        return grow(live, ground);
    }
    shrink(live, servers, &records)
}

/// The size is right. A server that has run for long and is not ready may be no member any more: its
/// own probe fails then, for good.
fn mend(ground: &Ground<'_>) -> Sizing {
    let kept = Sizing { count: ground.wanted, ..Sizing::default() };
    let servers = ground.servers;
    if ground.lasting.is_subset(&servers.ready) {
        return kept;
    }
    match servers.records() {
        Hearing::Asks(asks) => Sizing { asks, ..kept },
        Hearing::Silent(_) => kept,
        Hearing::Told((_, records)) => {
            let Some(action) = addition(ground, &records) else { return kept };
            let waits = Finding::new(&reason::MEMBER_REJOINING, action.why.clone());
            Sizing { waits: Some(waits), actions: vec![action], ..kept }
        }
    }
}

/// As many members more as there are, up to the first volume of a member that left.
fn grow(live: u32, ground: &Ground<'_>) -> Sizing {
    match ground.leavers.obstacle(live, ground.wanted) {
        None => Sizing { count: ground.wanted, ..Sizing::default() },
        Some((count, InTheWay::Going(waits, step))) => Sizing {
            count,
            waits: Some(waits),
            deletes: step.into_iter().collect(),
            ..Sizing::default()
        },
        Some((count, InTheWay::Kept(finding))) => {
            Sizing { count, blocked: Some(finding), ..Sizing::default() }
        }
    }
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
        // A stop hook that is killed would leave a voter behind that nobody can outvote.
        return match departure(servers, records, stay) {
            None => Sizing { count: stay, ..Sizing::default() },
            Some(action) => {
                let who = servers.pod_name(stay);
                let message = format!("spec.replicas: {who} is being removed from the ensemble");
                let leaving = Finding::new(&reason::MEMBER_LEAVING, message);
                Sizing { actions: vec![action], ..keep(leaving) }
            }
        };
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
    Some(action(servers, RECORD, calls, why))
}

/// Removes one listed member whose ordinal is beyond the set; `None` when there is none.
pub fn removal(servers: &Servers<'_>, records: &Records, count: u32) -> Option<Action> {
    let gone = |ordinal: &u32| *ordinal >= count && !servers.pods.contains_key(ordinal);
    let left = records.membership.all().filter(gone).max()?;
    let why = format!("{} is gone and still listed", servers.pod_name(left));
    Some(remove(servers, records, left, why))
}

/// Removes the member that leaves next; `None` when it is not listed any more.
fn departure(servers: &Servers<'_>, records: &Records, ordinal: u32) -> Option<Action> {
    records.membership.all().find(|member| *member == ordinal)?;
    let why = format!("{} is to leave", servers.pod_name(ordinal));
    Some(remove(servers, records, ordinal, why))
}

fn remove(servers: &Servers<'_>, records: &Records, ordinal: u32, why: String) -> Action {
    let call = ZooKeeperCall::Reconfigure {
        joining: String::new(),
        leaving: (ordinal + 1).to_string(),
        from: records.membership.version,
    };
    action(servers, REMOVE, vec![call], why)
}

/// Lists a member again whose server runs and that nobody lists: without a vote, which the image's own
/// probe gives it.
pub fn addition(ground: &Ground<'_>, records: &Records) -> Option<Action> {
    let servers = ground.servers;
    let listed = |ordinal: u32| records.membership.all().any(|member| member == ordinal);
    let mut running = servers.ready.union(ground.lasting);
    let missing = *running.find(|n| **n < ground.wanted && !listed(**n))?;
    let host = servers.address.names.pod_host(missing, &servers.address.domain);
    let [quorum, election, client] = ground.ports;
    let call = ZooKeeperCall::Reconfigure {
        joining: format!("server.{}={host}:{quorum}:{election}:observer;{client}", missing + 1),
        leaving: String::new(),
        from: records.membership.version,
    };
    let why = format!("{} runs and is not listed", servers.pod_name(missing));
    Some(action(servers, ADD, vec![call], why))
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
