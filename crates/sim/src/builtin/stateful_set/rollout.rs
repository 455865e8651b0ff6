//! One sync of a StatefulSet: which pod is created, deleted or waited for next.
//!
//! Follows kube-controller-manager 1.36 with `MaxUnavailableStatefulSet` off (its default there):
//! scaling comes before updates, updates go from the highest ordinal down, and with
//! `OrderedReady` a pod that never gets ready blocks everything behind it (kubernetes issue 67250).

use jiff::Timestamp;
use serde_json::Value;

use super::pod::{self, Replica};
use super::revision::{self, Revisions};
use super::{claims, status};
use crate::Failure;
use crate::builtin::door::Door;
use crate::builtin::field;

/// What one sync works on.
pub(super) struct Sync<'a> {
    pub(super) set: &'a Value,
    pub(super) updated: Value,
    pub(super) revisions: &'a Revisions,
    pub(super) now: Timestamp,
    pub(super) replicas: Vec<Replica>,
    pub(super) condemned: Vec<Replica>,
}

/// Whether the sync may go on to the next step.
#[derive(PartialEq, Eq)]
enum Flow {
    Next,
    Stop,
}

impl<'a> Sync<'a> {
    pub(super) fn new(
        set: &'a Value,
        revisions: &'a Revisions,
        pods: Vec<Value>,
        now: Timestamp,
    ) -> Self {
        let updated = revision::apply(set, &revisions.update);
        let current = revision::apply(set, &revisions.current);
        let (start, count) = range(set);
        let mut replicas: Vec<Option<Replica>> = (0..count).map(|_| None).collect();
        let mut condemned = Vec::new();
        for pod in pods {
            let Some(ordinal) = pod::ordinal(set, &pod) else { continue };
            let index = usize::try_from(ordinal - start).unwrap_or(usize::MAX);
            match replicas.get_mut(index) {
                Some(place) => *place = Some(Replica { pod, exists: true }),
                None => condemned.push(Replica { pod, exists: true }),
            }
        }
        condemned.sort_by_key(|one| std::cmp::Reverse(claims::ordinal_of(set, &one.pod)));
        let replicas = replicas
            .into_iter()
            .zip(start..)
            .map(|(place, ordinal)| {
                place.unwrap_or_else(|| {
                    let old = current_wanted(set, ordinal, start);
                    let (source, name) = match old {
                        true => (&current, field::name(&revisions.current)),
                        false => (&updated, field::name(&revisions.update)),
                    };
                    Replica { pod: pod::wanted(source, name, ordinal), exists: false }
                })
            })
            .collect();
        Self { set, updated, revisions, now, replicas, condemned }
    }

    /// Does the work of one sync and returns the status to be written.
    pub(super) fn run(&mut self, door: &mut Door) -> (Value, Result<(), Failure>) {
        if field::deleting(self.set) {
            return (status::compute(self), Ok(()));
        }
        match self.establish(door) {
            Ok(Flow::Next) => {}
            Ok(Flow::Stop) => return (status::compute(self), Ok(())),
            Err(failure) => return (status::compute(self), Err(failure)),
        }
        let mut status = status::compute(self);
        if field::text(self.set, "/spec/updateStrategy/type") == "OnDelete" {
            return (status, Ok(()));
        }
        let result = self.update_one(door, &mut status);
        (status, result)
    }

    fn monotonic(&self) -> bool {
        field::text(self.set, "/spec/podManagementPolicy") != "Parallel"
    }

    fn min_ready_seconds(&self) -> i64 {
        field::number(self.set, "/spec/minReadySeconds", 0)
    }

    fn establish(&mut self, door: &mut Door) -> Result<Flow, Failure> {
        let monotonic = self.monotonic();
        for index in 0..self.replicas.len() {
            if self.process_replica(door, index)? == Flow::Stop && monotonic {
                return Ok(Flow::Stop);
            }
        }
        for index in 0..self.condemned.len() {
            let ordinal = claims::ordinal_of(self.set, &self.condemned[index].pod);
            claims::retain(door, &self.updated, ordinal, true)?;
        }
        let first = self.first_unavailable();
        for index in 0..self.condemned.len() {
            if self.process_condemned(door, index, &first)? == Flow::Stop && monotonic {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Next)
    }

    fn process_replica(&mut self, door: &mut Door, index: usize) -> Result<Flow, Failure> {
        let (monotonic, min_ready) = (self.monotonic(), self.min_ready_seconds());
        let ordinal = claims::ordinal_of(self.set, &self.replicas[index].pod);
        if self.replicas[index].failed() {
            if !self.replicas[index].terminating() {
                pod::delete(door, self.set, &self.replicas[index].pod)?;
            }
            return Ok(Flow::Stop);
        }
        if !self.replicas[index].exists {
            if claims::stale(door, self.set, &self.replicas[index].pod, ordinal) {
                return Ok(Flow::Stop);
            }
            let made = pod::create(door, self.set, &self.replicas[index].pod, ordinal)?;
            self.replicas[index] = Replica { pod: made, exists: true };
            if monotonic {
                return Ok(Flow::Stop);
            }
        }
        let replica = &self.replicas[index];
        if replica.pending() {
            claims::create_missing(door, self.set, &replica.pod, ordinal)?;
        }
        let waits =
            replica.terminating() || !replica.ready() || !replica.available(self.now, min_ready);
        if waits && monotonic {
            return Ok(Flow::Stop);
        }
        claims::retain(door, &self.updated, ordinal, false)?;
        if !pod::identity_matches(self.set, &self.replicas[index].pod) {
            pod::restore(door, &self.updated, &self.replicas[index].pod)?;
        }
        Ok(Flow::Next)
    }

    /// The lowest unavailable replica, else the lowest unavailable condemned pod, by name.
    fn first_unavailable(&self) -> Option<String> {
        let min_ready = self.min_ready_seconds();
        let mut order = self.replicas.iter().chain(self.condemned.iter().rev());
        let found = order.find(|one| one.unavailable(self.now, min_ready));
        found.map(|one| field::name(&one.pod).to_owned())
    }

    fn process_condemned(
        &self,
        door: &mut Door,
        index: usize,
        first: &Option<String>,
    ) -> Result<Flow, Failure> {
        let one = &self.condemned[index];
        if one.terminating() {
            return Ok(if self.monotonic() { Flow::Stop } else { Flow::Next });
        }
        let healthy = one.available(self.now, self.min_ready_seconds());
        let is_first = first.as_deref() == Some(field::name(&one.pod));
        if !healthy && self.monotonic() && !is_first {
            return Ok(Flow::Stop);
        }
        pod::delete(door, self.set, &one.pod)?;
        Ok(Flow::Stop)
    }

    fn update_one(&self, door: &mut Door, status: &mut Value) -> Result<(), Failure> {
        let partition = field::number(self.set, "/spec/updateStrategy/rollingUpdate/partition", 0);
        let lowest = usize::try_from(partition).unwrap_or(0);
        let wanted = field::name(&self.revisions.update);
        for replica in self.replicas.iter().skip(lowest).rev() {
            if replica.revision() != wanted && !replica.terminating() {
                pod::delete(door, self.set, &replica.pod)?;
                let current = field::number(status, "/currentReplicas", 0);
                status["currentReplicas"] = Value::from(current - 1);
                return Ok(());
            }
            if replica.unavailable(self.now, self.min_ready_seconds()) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// First ordinal and number of replicas.
pub(super) fn range(set: &Value) -> (i64, usize) {
    let start = field::number(set, "/spec/ordinals/start", 0);
    let count = field::number(set, "/spec/replicas", 1).max(0);
    (start, usize::try_from(count).unwrap_or(0))
}

/// Whether a missing pod is re-created from the current, not the update revision.
fn current_wanted(set: &Value, ordinal: i64, start: i64) -> bool {
    if field::text(set, "/spec/updateStrategy/type") == "OnDelete" {
        return false;
    }
    match set.pointer("/spec/updateStrategy/rollingUpdate") {
        None => ordinal < start + field::number(set, "/status/currentReplicas", 0),
        Some(_) => {
            let partition = "/spec/updateStrategy/rollingUpdate/partition";
            ordinal < start + field::number(set, partition, 0)
        }
    }
}
