//! Volumes of members that left: with `reclaimPolicy: Delete` they go, and in every case nobody grows
//! onto one.
//!
//! A volume that once held a member has the member's configuration on it, without the member, and the
//! scripts of the image then neither register it again nor start it (fault catalogue ZK-04, R6; reference
//! number 71). Must not judge members that are still there.

use std::collections::BTreeMap;

use phased::ladder::Finding;
use phased::step::Delete;
use phased::{Live, ObjectId};

use super::ensemble::Records;
use super::reason;

/// Why such a claim is deleted.
const WHY: &str = "persistence.reclaimPolicy is Delete, and its member has left";

/// Claims of this cluster whose ordinals have no pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leavers {
    /// By ordinal.
    pub claims: BTreeMap<u32, (ObjectId, Live)>,
    /// Whether volumes go with their members.
    pub reclaims: bool,
}

/// What stands in the way of growth.
#[derive(Clone, Debug, PartialEq)]
pub enum InTheWay {
    /// A claim that goes, by this step if it is not going already.
    Going(Finding, Option<Delete>),
    /// A claim that is kept; a person must decide.
    Kept(Finding),
}

impl Leavers {
    /// Claims that are to be deleted now: beyond the set, of members that nobody lists.
    pub fn deletes(&self, count: u32, records: &Records) -> Vec<Delete> {
        let listed = |ordinal: u32| records.membership.all().any(|member| member == ordinal);
        let beyond =
            self.claims.range(count..).filter(|(ordinal, _)| self.reclaims && !listed(**ordinal));
        beyond.filter_map(|(_, (id, live))| delete(id, live)).collect()
    }

    /// The lowest ordinal that cannot be filled, and why.
    pub fn obstacle(&self, from: u32, wanted: u32) -> Option<(u32, InTheWay)> {
        let (ordinal, (id, live)) = self.claims.range(from..wanted).next()?;
        if self.reclaims || live.deletion_time().is_some() {
            let message = format!("spec.replicas: {id} of a member that left must be gone first");
            let finding = Finding::new(&reason::MEMBER_LEAVING, message);
            let step = if self.reclaims { delete(id, live) } else { None };
            return Some((*ordinal, InTheWay::Going(finding, step)));
        }
        let message = format!(
            "spec.replicas: {id} holds the state of a member that left, with which a server does not \
             join again; the other members have its data: delete the claim, or set \
             spec.persistence.reclaimPolicy: Delete"
        );
        Some((*ordinal, InTheWay::Kept(Finding::new(&reason::FORMER_VOLUME, message))))
    }
}

fn delete(id: &ObjectId, live: &Live) -> Option<Delete> {
    live.deletion_time().is_none().then(|| Delete::of(id.clone(), live, WHY))
}
