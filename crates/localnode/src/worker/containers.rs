//! Starting a pod's containers, and what follows from their ends and their probes.

use super::{Live, News, RETRY, Worker};
use crate::assembly::{Assembly, AssemblyError, Pieces, assemble};
use crate::backoff;
use crate::context::Window;
use crate::events::Tone;
use crate::image::PullError;
use crate::log_file::{LogFile, tail};
use crate::next;
use crate::probe::{ProbeKind, Verdict};
use crate::probe_run::{self, ProbeReport};
use crate::process::{Exit, sweep};
use crate::record::{Ending, Situation};
use crate::status::{now, template};
use crate::stop::{StopListener, stop_order};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Container;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Most bytes of a termination message (API documentation of `terminationMessagePath`).
const MESSAGE_BYTES: usize = 4096;

impl Worker {
    /// The folder that a container's process sees as its own.
    pub(super) fn container_folder(&self, index: usize) -> PathBuf {
        self.folder.join(format!("c{index}"))
    }

    /// The folder of the first ordinary container.
    pub(super) fn container_folder_of_first_app(&self) -> PathBuf {
        self.container_folder(self.spec().init_containers.map_or(0, |inits| inits.len()))
    }

    /// Starts a container, or notes why it cannot be started now.
    pub(super) fn start(&mut self, index: usize) {
        let Some(container) = template(&self.pod, &self.record.containers[index].name).cloned()
        else {
            return;
        };
        match self.put_together(index, &container) {
            Ok((assembly, log)) => self.launch(index, container, assembly, log),
            Err(AssemblyError::Image(error)) => self.pull_failed(index, &container, &error),
            Err(error @ AssemblyError::Configuration(_)) => {
                self.cannot_create(index, "CreateContainerConfigError", error.to_string());
            }
            Err(error @ AssemblyError::Machine(_)) => {
                self.cannot_create(index, "CreateContainerError", error.to_string());
            }
        }
    }

    fn put_together(
        &self,
        index: usize,
        container: &Container,
    ) -> Result<(Assembly, LogFile), AssemblyError> {
        let Some(volumes) = &self.volumes else {
            return Err(AssemblyError::Machine(std::io::Error::other(
                "the pod's volumes are not there",
            )));
        };
        std::fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(format!("l{index}"));
        // The log of the run before is kept beside the new one.
        // There is none before the first run.
        let _ = std::fs::rename(&path, self.folder.join(format!("l{index}.previous")));
        let log = LogFile::create(&path)?;
        let root = self.container_folder(index);
        let pieces = Pieces {
            pod: &self.pod,
            container,
            volumes,
            sources: &self.sources,
            root: &root,
            address: self.record.address,
        };
        Ok((assemble(&self.context, &pieces, &log)?, log))
    }

    fn launch(&mut self, index: usize, container: Container, assembly: Assembly, log: LogFile) {
        self.tell_start(&container, &assembly);
        let assembly = Arc::new(assembly);
        let key = (self.namespace().to_owned(), self.name().to_owned(), container.name.clone());
        let window = Window { log: log.clone(), assembly: Arc::clone(&assembly) };
        self.context.windows().insert(key, window);
        let record = &mut self.record.containers[index];
        if let Situation::Ended(ending) = &record.situation {
            record.last = Some(ending.clone());
        }
        record.restarts += i32::from(record.run > 0);
        record.run += 1;
        record.not_before = None;
        record.situation = Situation::Running {
            since: now(),
            started: container.startup_probe.is_none(),
            ready: container.startup_probe.is_none() && container.readiness_probe.is_none(),
        };
        let (stop, listener) = stop_order();
        let run = record.run;
        let running = Run {
            assembly: Arc::clone(&assembly),
            log,
            number: run,
            folder: self.container_folder(index),
            fall_back: container.termination_message_policy.as_deref()
                == Some("FallbackToLogsOnError"),
        };
        let news = self.news.0.clone();
        let task = tokio::spawn(running.run_out(listener, news.clone(), index));
        let has_probes = container.startup_probe.is_some()
            || container.readiness_probe.is_some()
            || container.liveness_probe.is_some();
        let probes = has_probes.then(|| {
            let report = move |report| {
                // A worker that is gone has no more use for it.
                let _ = news.send(News::Probed(index, run, report));
            };
            tokio::spawn(probe_run::watch(
                Arc::clone(&self.context),
                Arc::clone(&assembly),
                container,
                report,
            ))
        });
        self.live[index] = Some(Live { stop, stopping: false, task, probes, assembly });
    }

    fn tell_start(&self, container: &Container, assembly: &Assembly) {
        let name = &container.name;
        let image = container.image.as_deref().unwrap_or_default();
        let events = &self.context.events;
        let pulled = format!("Container image \"{image}\" already present on machine");
        events.container(&self.pod, name, Tone::Normal, "Pulled", pulled);
        let real = &assembly.programs;
        let differs = assembly.image.major.is_some_and(|asked| asked != real.major);
        if differs || assembly.image.by_digest {
            let message = format!(
                "Image \"{image}\" is played by PostgreSQL {} of this machine ({}), which is not the version asked for",
                real.major,
                real.bin_dir.display()
            );
            tracing::debug!(pod = self.name(), "{message}");
            events.container(&self.pod, name, Tone::Normal, "ImageStandIn", message);
        }
        events.container(
            &self.pod,
            name,
            Tone::Normal,
            "Created",
            format!("Created container {name}"),
        );
        events.container(
            &self.pod,
            name,
            Tone::Normal,
            "Started",
            format!("Started container {name}"),
        );
    }

    fn pull_failed(&mut self, index: usize, container: &Container, error: &PullError) {
        let image = container.image.as_deref().unwrap_or_default();
        let events = self.context.events.clone();
        let record = &mut self.record.containers[index];
        let moment = Timestamp::now();
        if let PullError::Invalid(message) = error {
            record.wait_for("InvalidImageName", message.clone());
            record.not_before = Some(later(moment, Duration::from_secs(30)));
            events.container(
                &self.pod,
                &container.name,
                Tone::Warning,
                "InspectFailed",
                message.clone(),
            );
            return;
        }
        // A pull that failed shows its error first and the back-off from the next look on.
        if matches!(record.situation, Situation::Waiting { reason: "ErrImagePull", .. }) {
            let message =
                format!("Back-off pulling image \"{image}\": ErrImagePull: {}", error.message());
            record.wait_for("ImagePullBackOff", message);
            record.not_before = Some(later(moment, record.pulls.pull_failed()));
            let message = format!("Back-off pulling image \"{image}\"");
            events.container(&self.pod, &container.name, Tone::Normal, "BackOff", message);
        } else {
            record.wait_for("ErrImagePull", error.message().to_owned());
            record.not_before = Some(later(moment, Duration::from_secs(1)));
            let message = format!("Failed to pull image \"{image}\": {}", error.message());
            events.container(&self.pod, &container.name, Tone::Warning, "Failed", message);
        }
    }

    fn cannot_create(&mut self, index: usize, reason: &'static str, message: String) {
        // Objects may have appeared since: the next look reads them anew.
        self.refresh = true;
        let record = &mut self.record.containers[index];
        record.not_before = Some(later(Timestamp::now(), RETRY));
        let text = format!("Error: {message}");
        self.context.events.container(
            &self.pod,
            &record.name.clone(),
            Tone::Warning,
            "Failed",
            text,
        );
        self.record.containers[index].wait_for(reason, message);
    }

    /// A container's process is over: it is put to rest, or its restart is scheduled.
    pub(super) fn container_ended(&mut self, index: usize, ending: Ending) {
        self.live[index] = None;
        let over = self.pod.metadata.deletion_timestamp.is_some();
        let policy = self.record.policy;
        let record = &mut self.record.containers[index];
        if over || !policy.restarts(record.role, &ending) {
            record.situation = Situation::Ended(ending);
            return;
        }
        let ran_for =
            Duration::try_from(ending.finished.duration_since(ending.started)).unwrap_or_default();
        let delay = record.crashes.crashed(ran_for);
        if delay.is_zero() {
            record.situation = Situation::Ended(ending);
            return;
        }
        record.last = Some(ending);
        record.not_before = Some(later(Timestamp::now(), delay));
        let name = record.name.clone();
        let (pod, namespace) = (self.name().to_owned(), self.namespace().to_owned());
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        let of = format!("{pod}_{namespace}({uid})");
        let message = format!(
            "back-off {} restarting failed container={name} pod={of}",
            backoff::in_words(delay)
        );
        let text = format!("Back-off restarting failed container {name} in pod {of}");
        self.context.events.container(&self.pod, &name, Tone::Warning, "BackOff", text);
        self.record.containers[index].wait_for("CrashLoopBackOff", message);
    }

    /// A probe said something.
    pub(super) fn container_probed(&mut self, index: usize, report: ProbeReport) {
        let name = self.record.containers[index].name.clone();
        if let Some(failure) = &report.failure {
            let message = format!("{} probe failed: {failure}", report.kind.title());
            self.context.events.container(&self.pod, &name, Tone::Warning, "Unhealthy", message);
        }
        let reads =
            template(&self.pod, &name).is_some_and(|container| container.readiness_probe.is_some());
        let Situation::Running { started, ready, .. } =
            &mut self.record.containers[index].situation
        else {
            return;
        };
        match (report.kind, report.verdict) {
            (ProbeKind::Startup, Verdict::Healthy) => {
                *started = true;
                *ready = !reads;
            }
            (ProbeKind::Readiness, Verdict::Healthy) => *ready = true,
            (ProbeKind::Readiness, Verdict::Unhealthy) => *ready = false,
            (ProbeKind::Startup | ProbeKind::Liveness, Verdict::Unhealthy) => {
                self.restart(index, report.kind)
            }
            (ProbeKind::Liveness, Verdict::Healthy) | (_, Verdict::Unknown) => {}
        }
    }

    fn restart(&mut self, index: usize, kind: ProbeKind) {
        let name = self.record.containers[index].name.clone();
        if self.live[index].as_ref().is_some_and(|live| !live.stopping) {
            let message =
                format!("Container {name} failed {} probe, will be restarted", kind.word());
            self.context.events.container(&self.pod, &name, Tone::Normal, "Killing", message);
            self.stop_container(index, self.template_grace());
        }
    }

    /// Whether every init container let the next one start, for the status of the others.
    pub(super) fn mark_creating(&mut self) {
        let open = self
            .record
            .containers
            .iter()
            .any(|c| c.role != crate::record::Role::App && !next::init_is_done(c));
        let reason = if open { "PodInitializing" } else { "ContainerCreating" };
        for container in &mut self.record.containers {
            if matches!(
                container.situation,
                Situation::Waiting { reason: "PodInitializing" | "ContainerCreating", .. }
            ) {
                container.wait_for(reason, String::new());
            }
        }
    }
}

fn later(moment: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by)
        .ok()
        .and_then(|by| moment.checked_add(by).ok())
        .unwrap_or(Timestamp::MAX)
}

/// One run of a container.
struct Run {
    assembly: Arc<Assembly>,
    log: LogFile,
    number: u32,
    folder: PathBuf,
    fall_back: bool,
}

impl Run {
    async fn run_out(
        self,
        mut stop: StopListener,
        news: mpsc::UnboundedSender<News>,
        index: usize,
    ) {
        let started = now();
        let outcome = self.assembly.run(&mut stop).await;
        sweep(&self.folder).await;
        let (exit, reason, refusal) = match outcome {
            Ok(exit) if exit.code == 0 => (exit, "Completed", None),
            Ok(exit) => (exit, "Error", None),
            Err(refusal) => (Exit::with_code(128), "StartError", Some(refusal)),
        };
        let message = refusal.unwrap_or_else(|| self.message(exit));
        let ending = Ending { exit, reason, message, started, finished: now(), run: self.number };
        // A worker that is gone has no more use for it.
        let _ = news.send(News::Ended(index, ending));
    }

    fn message(&self, exit: Exit) -> String {
        let bytes = std::fs::read(&self.assembly.message_file).unwrap_or_default();
        let left = String::from_utf8_lossy(&bytes[..bytes.len().min(MESSAGE_BYTES)]).into_owned();
        if left.is_empty() && self.fall_back && exit.code != 0 {
            tail(&self.log.read())
        } else {
            left
        }
    }
}
