//! One pod on its node: volumes, sandbox, init containers in order, containers, and the end.
//!
//! Must not choose nodes; that is the scheduler's.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::container::{Container, Context, State};
use super::inputs::{self, Content};
use crate::builtin::door::Door;
use crate::builtin::{Model, after, earliest, field};

/// A pod as its kubelet holds it.
pub(super) struct Run {
    pub(super) seen: Timestamp,
    pub(super) host: String,
    pub(super) address: Option<String>,
    pub(super) init: Vec<Container>,
    pub(super) main: Vec<Container>,
    volumes: Option<BTreeMap<String, Content>>,
    sandbox_at: Option<Timestamp>,
    mount: Option<Mount>,
    stop_at: Option<Timestamp>,
    pub(super) stopped: bool,
}

/// A failing mount: what was said, and when it is tried again.
struct Mount {
    message: String,
    wait: i64,
    retry: Timestamp,
}

const MOUNT_FIRST_MILLIS: i64 = 500;
const MOUNT_LONGEST_MILLIS: i64 = 122_000;

impl Run {
    pub(super) fn new(pod: &Value, host: &str, now: Timestamp) -> Run {
        let containers = |pointer: &str, init: bool| {
            field::list(pod, pointer).iter().map(|spec| Container::new(spec, init)).collect()
        };
        Run {
            seen: now,
            host: host.to_owned(),
            address: None,
            init: containers("/spec/initContainers", true),
            main: containers("/spec/containers", false),
            volumes: None,
            sandbox_at: None,
            mount: None,
            stop_at: None,
            stopped: false,
        }
    }

    pub(super) fn initialized(&self) -> bool {
        self.init.iter().all(Container::initialized)
    }

    pub(super) fn incomplete(&self) -> Vec<&str> {
        self.init.iter().filter(|one| !one.initialized()).map(Container::name).collect()
    }

    /// Advances everything that may; returns when something wants to advance again.
    pub(super) fn advance(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        pod: &Value,
    ) -> Option<Timestamp> {
        let now = door.now();
        if field::deleting(pod) {
            return self.end(door, model, pod, now);
        }
        if let Some(wake) = self.prepare(door, model, pod, now) {
            return Some(wake);
        }
        let (Some(volumes), Some(address)) = (self.volumes.clone(), self.address.clone()) else {
            return None;
        };
        let mut around = Context { door, model, pod, volumes: &volumes, address: &address, now };
        let mut wake = None;
        for container in &mut self.init {
            if matches!(container.state, State::Done) && container.initialized() {
                continue;
            }
            wake = earliest(wake, container.advance(&mut around));
            if !container.initialized() {
                return wake;
            }
        }
        for container in &mut self.main {
            wake = earliest(wake, container.advance(&mut around));
        }
        wake
    }

    /// Volumes, then the sandbox with its address; `Some` while either is waited for.
    fn prepare(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        pod: &Value,
        now: Timestamp,
    ) -> Option<Timestamp> {
        match inputs::volumes(door, pod) {
            Ok(volumes) => {
                self.mount = None;
                // Files of changed Secrets and ConfigMaps are seen by the next start.
                self.volumes = Some(volumes);
            }
            Err(message) if self.volumes.is_none() => {
                return Some(self.mount_failed(door, pod, message, now));
            }
            Err(_) => {}
        }
        if self.address.is_some() {
            return None;
        }
        let at = *self.sandbox_at.get_or_insert_with(|| {
            let millis = model.draw(model.speeds.container_start.clone());
            after(now, millis)
        });
        if at > now {
            return Some(at);
        }
        self.address = Some(match field::flag(pod, "/spec/hostNetwork") {
            true => self.host.clone(),
            false => model.pod_address(),
        });
        None
    }

    fn mount_failed(
        &mut self,
        door: &mut Door,
        pod: &Value,
        message: String,
        now: Timestamp,
    ) -> Timestamp {
        let known = self.mount.as_ref().filter(|mount| mount.message == message);
        if let Some(mount) = known.filter(|mount| mount.retry > now) {
            return mount.retry;
        }
        let wait = known.map_or(MOUNT_FIRST_MILLIS, |mount| mount.wait * 2);
        let wait = wait.min(MOUNT_LONGEST_MILLIS);
        door.event(pod, "Warning", "FailedMount", &message);
        let retry = after(now, wait);
        self.mount = Some(Mount { message, wait, retry });
        retry
    }

    /// The end of a pod: containers get their grace, then the kubelet is done.
    fn end(
        &mut self,
        door: &mut Door,
        model: &mut Model,
        pod: &Value,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if self.stopped {
            return None;
        }
        let alive = self.init.iter().chain(&self.main).any(Container::running);
        if self.stop_at.is_none() && alive {
            for container in self.main.iter().filter(|one| one.running()) {
                let text = format!("Stopping container {}", container.name());
                door.event(pod, "Normal", "Killing", &text);
            }
        }
        let at = *self.stop_at.get_or_insert_with(|| {
            let grace = field::number(pod, "/metadata/deletionGracePeriodSeconds", 30) * 1000;
            let millis = model.draw(model.speeds.stop.clone()).min(grace);
            if alive { after(now, millis) } else { now }
        });
        if at > now {
            return Some(at);
        }
        let volumes = self.volumes.clone().unwrap_or_default();
        let address = self.address.clone().unwrap_or_default();
        let mut around = Context { door, model, pod, volumes: &volumes, address: &address, now };
        for container in self.main.iter_mut().chain(&mut self.init) {
            if container.running() {
                container.stop(&mut around);
            } else {
                container.ready = false;
            }
        }
        self.stopped = true;
        None
    }

    /// Ends the programs of a pod that vanished from the store without a goodbye.
    pub(super) fn abandon(&mut self, model: &mut Model) {
        let random = model.number();
        let Model { volumes, network, .. } = model;
        let mut around = super::program::Surroundings { volumes, network, random };
        for container in self.main.iter_mut().chain(&mut self.init) {
            if let State::Running { program, .. } = &mut container.state {
                program.stop(&mut around);
            }
        }
    }
}
