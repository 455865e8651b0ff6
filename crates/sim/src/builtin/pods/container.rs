//! One container's life in the kubelet model: pull, configure, start, run, crash, back off.
//!
//! Must not write the pod's status; `report` describes what is held here.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::inputs::{self, Content};
use super::program::{Exit, Launch, Program, Surroundings};
use crate::builtin::door::Door;
use crate::builtin::{Model, after, earliest, field};

const CRASH_FIRST_SECONDS: i64 = 10;
const BACKOFF_LONGEST_SECONDS: i64 = 300;
const CRASH_FORGIVEN_SECONDS: i64 = 600;

/// A finished run.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) exit: Exit,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
    pub(super) id: String,
}

/// Where a container is.
pub(super) enum State {
    /// Its turn has not come.
    Waiting,
    /// The image is on its way.
    Pulling { began: Timestamp, until: Timestamp },
    /// The pull failed; shown as `ErrImagePull`, then as `ImagePullBackOff`.
    PullFailed { error: String, shown: Timestamp, retry: Timestamp, backing_off: bool },
    /// Something it needs is missing.
    Unconfigured { message: String, retry: Timestamp },
    /// The runtime is making it.
    Starting { until: Timestamp },
    /// It runs.
    Running { since: Timestamp, ready_at: Timestamp, program: Box<dyn Program> },
    /// Just ended; will be restarted.
    Died { until: Timestamp },
    /// Waits to be restarted.
    BackOff { until: Timestamp, seconds: i64 },
    /// Ended for good.
    Done,
}

/// A container of a pod on a node.
pub(super) struct Container {
    pub(super) spec: Value,
    pub(super) init: bool,
    pub(super) state: State,
    pub(super) restarts: i64,
    pub(super) last: Option<Ended>,
    pub(super) ready: bool,
    pub(super) id: String,
    crash_wait: i64,
    pull_wait: i64,
}

/// What a container needs from around it while it advances.
pub(super) struct Context<'a, 'b> {
    pub(super) door: &'a mut Door<'b>,
    pub(super) model: &'a mut Model,
    pub(super) pod: &'a Value,
    pub(super) volumes: &'a BTreeMap<String, Content>,
    pub(super) address: &'a str,
    pub(super) now: Timestamp,
}

impl Container {
    pub(super) fn new(spec: &Value, init: bool) -> Container {
        Container {
            spec: spec.clone(),
            init,
            state: State::Waiting,
            restarts: 0,
            last: None,
            ready: false,
            id: String::new(),
            crash_wait: 0,
            pull_wait: 0,
        }
    }

    pub(super) fn name(&self) -> &str {
        field::text(&self.spec, "/name")
    }

    fn image(&self) -> &str {
        field::text(&self.spec, "/image")
    }

    /// An init container that keeps running beside the others.
    pub(super) fn sidecar(&self) -> bool {
        self.init && field::text(&self.spec, "/restartPolicy") == "Always"
    }

    /// Whether the next container may start.
    pub(super) fn initialized(&self) -> bool {
        match &self.state {
            State::Done => self.last.as_ref().is_some_and(|ended| ended.exit.code == 0),
            State::Running { .. } => self.sidecar(),
            _ => false,
        }
    }

    pub(super) fn running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Moves as far as the present moment allows; returns when it wants to move again.
    pub(super) fn advance(&mut self, around: &mut Context) -> Option<Timestamp> {
        // Each turn is one visible move; a container can't loop without time passing.
        for _ in 0..16 {
            let now = around.now;
            match &self.state {
                State::Waiting => self.pull(around),
                State::Pulling { until, began } if *until <= now => {
                    let (began, until) = (*began, *until);
                    self.pulled(around, began, until);
                }
                State::PullFailed { retry, backing_off: true, .. } if *retry <= now => {
                    self.pull(around);
                }
                State::PullFailed { shown, backing_off: false, .. } if *shown <= now => {
                    self.back_off_pull(around);
                }
                State::Unconfigured { .. } => return self.reconfigure(around),
                State::Starting { until } if *until <= now => self.start(around),
                State::Running { .. } => {
                    if let Ok(wake) = self.watch(around) {
                        return wake;
                    }
                }
                State::Died { until } if *until <= now => self.restart(around),
                State::BackOff { until, .. } if *until <= now => self.pull(around),
                _ => return self.due(),
            }
        }
        self.due()
    }

    fn due(&self) -> Option<Timestamp> {
        match &self.state {
            State::Waiting | State::Done | State::Running { .. } => None,
            State::Pulling { until, .. }
            | State::Starting { until }
            | State::Died { until }
            | State::BackOff { until, .. } => Some(*until),
            State::PullFailed { shown, backing_off: false, .. } => Some(*shown),
            State::PullFailed { retry, .. } | State::Unconfigured { retry, .. } => Some(*retry),
        }
    }

    fn pull(&mut self, around: &mut Context) {
        let image = self.image().to_owned();
        let node = field::text(around.pod, "/spec/nodeName");
        let held = around.model.images.held(node, &image);
        let policy = field::text(&self.spec, "/imagePullPolicy");
        if held && policy != "Always" {
            let text = format!("Container image \"{image}\" already present on machine");
            self.tell(around, "Normal", "Pulled", &text);
            return self.begin_start(around);
        }
        self.tell(around, "Normal", "Pulling", &format!("Pulling image \"{image}\""));
        let millis = match around.model.images.rule_of(&image) {
            Some(super::images::ImageRule::Slow(millis)) => *millis,
            _ if held => 50,
            _ => around.model.draw(around.model.speeds.image_pull.clone()),
        };
        self.state = State::Pulling { began: around.now, until: after(around.now, millis) };
    }

    fn pulled(&mut self, around: &mut Context, began: Timestamp, until: Timestamp) {
        let image = self.image().to_owned();
        let Some(error) = around.model.images.error(&image) else {
            let node = field::text(around.pod, "/spec/nodeName").to_owned();
            around.model.images.hold(&node, &image);
            let took = until.duration_since(began).as_millis();
            let text = format!(
                "Successfully pulled image \"{image}\" in {took}ms ({took}ms including waiting). \
                 Image size: 100000000 bytes."
            );
            self.tell(around, "Normal", "Pulled", &text);
            return self.begin_start(around);
        };
        self.pull_wait = (self.pull_wait * 2).clamp(CRASH_FIRST_SECONDS, BACKOFF_LONGEST_SECONDS);
        self.tell(
            around,
            "Warning",
            "Failed",
            &format!("Failed to pull image \"{image}\": {error}"),
        );
        self.tell(around, "Warning", "Failed", "Error: ErrImagePull");
        self.state = State::PullFailed {
            error,
            shown: after(around.now, 1000),
            retry: after(around.now, self.pull_wait * 1000),
            backing_off: false,
        };
    }

    fn back_off_pull(&mut self, around: &mut Context) {
        let text = format!("Back-off pulling image \"{}\"", self.image());
        self.tell(around, "Normal", "BackOff", &text);
        self.tell(around, "Warning", "Failed", "Error: ImagePullBackOff");
        if let State::PullFailed { backing_off, .. } = &mut self.state {
            *backing_off = true;
        }
    }

    fn begin_start(&mut self, around: &mut Context) {
        let millis = around.model.draw(around.model.speeds.container_start.clone());
        self.state = State::Starting { until: after(around.now, millis) };
    }

    fn launch(&self, around: &Context) -> Result<Launch, String> {
        let environment = inputs::environment(around.door, around.pod, &self.spec, around.address)?;
        let (files, mounts) = inputs::mounts(&self.spec, around.volumes);
        let mut container = self.spec.clone();
        for part in ["command", "args"] {
            let Some(words) = container.get_mut(part).and_then(Value::as_array_mut) else {
                continue;
            };
            for word in words {
                *word = Value::from(inputs::expand(word.as_str().unwrap_or(""), &environment));
            }
        }
        Ok(Launch {
            pod: around.pod.clone(),
            container,
            init: self.init,
            environment,
            files,
            mounts,
            address: around.address.to_owned(),
            now: around.now,
        })
    }

    /// Looks whether what was missing is there now; the kubelet does so every ten seconds or so.
    fn reconfigure(&mut self, around: &mut Context) -> Option<Timestamp> {
        if self.launch(around).is_ok() {
            self.begin_start(around);
        } else if self.due().is_some_and(|at| at <= around.now) {
            self.refuse(around);
        }
        self.due()
    }

    fn refuse(&mut self, around: &mut Context) {
        if let Err(message) = self.launch(around) {
            self.tell(around, "Warning", "Failed", &format!("Error: {message}"));
            let retry = after(around.now, 12_000);
            self.state = State::Unconfigured { message, retry };
        }
    }

    fn start(&mut self, around: &mut Context) {
        let Ok(launch) = self.launch(around) else { return self.refuse(around) };
        self.id =
            format!("containerd://{:016x}{:016x}", around.model.number(), around.model.number());
        self.tell(around, "Normal", "Created", "Container created");
        self.tell(around, "Normal", "Started", "Container started");
        if self.last.is_some() {
            self.restarts += 1;
        }
        let delay = match self.spec.get("readinessProbe").or(self.spec.get("startupProbe")) {
            Some(probe) => {
                field::number(probe, "/initialDelaySeconds", 0) * 1000
                    + around.model.draw(around.model.speeds.readiness.clone())
            }
            None => 0,
        };
        let init = around.model.draw(around.model.speeds.init_run.clone());
        let random = around.model.number();
        let Model { volumes, network, programs, .. } = &mut *around.model;
        let mut surroundings = Surroundings { volumes, network, random };
        let program = programs.start(&launch, &mut surroundings, init);
        self.state =
            State::Running { since: around.now, ready_at: after(around.now, delay), program };
    }

    /// Watches a running program: `Err` when it has just ended.
    fn watch(&mut self, around: &mut Context) -> Result<Option<Timestamp>, ()> {
        let State::Running { since, ready_at, program } = &mut self.state else {
            return Ok(None);
        };
        program.refresh(&inputs::mounts(&self.spec, around.volumes).0);
        let Model { volumes, network, .. } = &mut *around.model;
        program.advance(around.now, &mut Surroundings { volumes, network, random: 0 });
        match program.exit(around.now) {
            Some((at, exit)) if at <= around.now => {
                let since = *since;
                self.note_log(around);
                self.ended(around, since, at, exit);
                Err(())
            }
            end => {
                let due = *ready_at <= around.now;
                let quiet = self.init && self.spec.get("restartPolicy").is_none();
                self.ready = due && !quiet && program.ready(around.now);
                let own = program.due(around.now);
                let wake = end.map(|(at, _)| at);
                let ready_at = (!due).then_some(*ready_at);
                Ok(earliest(earliest(wake, own), ready_at))
            }
        }
    }

    fn note_log(&self, around: &mut Context) {
        let State::Running { program, .. } = &self.state else { return };
        let (namespace, pod) = (field::namespace(around.pod), field::name(around.pod));
        let key = (namespace.to_owned(), pod.to_owned(), self.name().to_owned());
        around.model.logs.insert(key, program.log());
    }

    fn ended(&mut self, around: &mut Context, started: Timestamp, finished: Timestamp, exit: Exit) {
        let policy = match self.sidecar() {
            true => "Always",
            false => field::text(around.pod, "/spec/restartPolicy"),
        };
        let again = match (policy, self.init && !self.sidecar()) {
            ("Never", _) => false,
            ("OnFailure", _) | (_, true) => exit.code != 0,
            _ => true,
        };
        let ran = finished.duration_since(started);
        if ran > SignedDuration::from_secs(CRASH_FORGIVEN_SECONDS) {
            self.crash_wait = 0;
        }
        self.last = Some(Ended { exit, started, finished, id: self.id.clone() });
        self.ready = false;
        self.state = match again {
            true => State::Died { until: after(around.now, 500) },
            false => State::Done,
        };
    }

    fn restart(&mut self, around: &mut Context) {
        let finished = self.last.as_ref().map_or(around.now, |ended| ended.finished);
        let waited = around.now.duration_since(finished).as_secs() >= self.crash_wait;
        if self.crash_wait == 0 || waited {
            self.crash_wait =
                (self.crash_wait * 2).clamp(CRASH_FIRST_SECONDS, BACKOFF_LONGEST_SECONDS);
            return self.pull(around);
        }
        let text = format!(
            "Back-off restarting failed container {} in pod {}_{}({})",
            self.name(),
            field::name(around.pod),
            field::namespace(around.pod),
            field::uid(around.pod)
        );
        self.tell(around, "Warning", "BackOff", &text);
        let until = after(finished, self.crash_wait * 1000);
        self.state = State::BackOff { until, seconds: self.crash_wait };
        self.crash_wait = (self.crash_wait * 2).min(BACKOFF_LONGEST_SECONDS);
    }

    /// Ends a running container, as at the end of a pod; true if it ran.
    pub(super) fn stop(&mut self, around: &mut Context) {
        self.note_log(around);
        let random = around.model.number();
        let Model { volumes, network, .. } = &mut *around.model;
        let mut surroundings = Surroundings { volumes, network, random };
        if let State::Running { since, program, .. } = &mut self.state {
            let (started, exit) = (*since, program.stop(&mut surroundings));
            self.last = Some(Ended { exit, started, finished: around.now, id: self.id.clone() });
        }
        self.ready = false;
        self.state = State::Done;
    }

    fn tell(&self, around: &mut Context, kind: &str, reason: &str, message: &str) {
        let pod = around.pod;
        around.door.event(pod, kind, reason, message);
    }
}
