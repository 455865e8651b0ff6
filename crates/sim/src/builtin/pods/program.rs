//! What a container runs: a program chosen by rules from what the container was given.
//!
//! Must not know pods' phases or statuses; the kubelet model asks and reports.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::external::Network;
use crate::external::volumes::Volumes;

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit code.
    pub code: i64,
    /// Last lines that it printed.
    pub message: String,
}

/// Everything a container gets from its pod.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The pod as stored.
    pub pod: Value,
    /// The container's part of the pod's spec.
    pub container: Value,
    /// Whether it is an init container.
    pub init: bool,
    /// Environment, with references resolved.
    pub environment: BTreeMap<String, String>,
    /// Mounted files of Secrets, ConfigMaps and the downward API: absolute path to content.
    pub files: BTreeMap<String, String>,
    /// Mounted data volumes: mount path to volume identity (and sub path).
    pub mounts: BTreeMap<String, String>,
    /// The pod's address.
    pub address: String,
    /// Start of the program.
    pub now: Timestamp,
}

impl Launch {
    /// Container name.
    pub fn name(&self) -> &str {
        crate::builtin::field::text(&self.container, "/name")
    }

    /// Image.
    pub fn image(&self) -> &str {
        crate::builtin::field::text(&self.container, "/image")
    }

    /// `command` followed by `args`.
    pub fn arguments(&self) -> Vec<&str> {
        let part = |pointer| crate::builtin::field::list(&self.container, pointer);
        part("/command").iter().chain(part("/args")).filter_map(Value::as_str).collect()
    }

    /// The volume that holds `path`, and the rest of the path below the mount.
    pub fn volume_of(&self, path: &str) -> Option<(String, String)> {
        let fits = |mount: &str| {
            path.strip_prefix(mount)
                .filter(|rest| rest.is_empty() || rest.starts_with('/') || mount.ends_with('/'))
                .map(|rest| rest.trim_start_matches('/').to_owned())
        };
        let best =
            self.mounts.iter().filter_map(|(mount, volume)| Some((mount, volume, fits(mount)?)));
        best.max_by_key(|(mount, _, _)| mount.len()).map(|(_, volume, rest)| (volume.clone(), rest))
    }
}

/// What a program can reach beside its `Launch`.
pub struct Surroundings<'a> {
    /// Volumes' contents.
    pub volumes: &'a mut Volumes,
    /// Listening addresses.
    pub network: &'a mut Network,
    /// A fresh random number.
    pub random: u64,
}

/// A running program.
pub trait Program: Send {
    /// Does what has come due and needs its surroundings, whose random number is not fresh here.
    fn advance(&mut self, _now: Timestamp, _around: &mut Surroundings) {}

    /// How and when it ended or will end by itself.
    fn exit(&mut self, _now: Timestamp) -> Option<(Timestamp, Exit)> {
        None
    }

    /// Whether the readiness probe succeeds.
    fn ready(&mut self, _now: Timestamp) -> bool {
        true
    }

    /// When its readiness may change by itself.
    fn due(&mut self, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Mounted files as they are now.
    fn refresh(&mut self, _files: &BTreeMap<String, String>) {}

    /// Ends it; called once, at the end of the grace period or earlier.
    fn stop(&mut self, _around: &mut Surroundings) -> Exit {
        Exit { code: 0, message: String::new() }
    }

    /// What it has printed so far.
    fn log(&self) -> String {
        String::new()
    }
}

/// Starts a program if the rule applies to the container.
pub type Starter = Box<dyn Fn(&Launch, &mut Surroundings) -> Option<Box<dyn Program>> + Send>;

/// A program that runs until it is stopped, or ends by itself at a set time.
pub struct Plain {
    /// When and how it ends; none means never.
    pub ends: Option<(Timestamp, Exit)>,
    /// What the readiness probe sees.
    pub ready: bool,
}

impl Program for Plain {
    fn exit(&mut self, _now: Timestamp) -> Option<(Timestamp, Exit)> {
        self.ends.clone()
    }

    fn ready(&mut self, _now: Timestamp) -> bool {
        self.ready
    }

    fn log(&self) -> String {
        self.ends.as_ref().map(|(_, exit)| exit.message.clone()).unwrap_or_default()
    }
}

/// What a test makes containers do, by `namespace/pod`, `namespace/pod/container` or image prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Ends after so many milliseconds.
    Crash {
        /// Milliseconds after the start.
        after: i64,
        /// How.
        exit: Exit,
    },
    /// Runs, never ready.
    NeverReady,
}

/// Rules in order: tests' behaviours first, then the registered programs, then "runs quietly".
#[derive(Default)]
pub struct Programs {
    behaviours: BTreeMap<String, Behaviour>,
    starters: Vec<Starter>,
}

impl Programs {
    /// Sets the behaviour of containers by pod, container or image prefix.
    pub fn behave(&mut self, of: &str, behaviour: Behaviour) {
        self.behaviours.insert(of.to_owned(), behaviour);
    }

    /// Back to normal, from the next start on.
    pub fn recover(&mut self, of: &str) {
        self.behaviours.remove(of);
    }

    /// Registers a program; the one registered last is asked first.
    pub fn register(&mut self, starter: Starter) {
        self.starters.insert(0, starter);
    }

    pub(crate) fn behaviour(&self, launch: &Launch) -> Option<&Behaviour> {
        let pod = format!(
            "{}/{}",
            crate::builtin::field::namespace(&launch.pod),
            crate::builtin::field::name(&launch.pod)
        );
        let container = format!("{pod}/{}", launch.name());
        let exact = |key: &String| self.behaviours.get(key);
        exact(&container).or_else(|| exact(&pod).filter(|_| !launch.init)).or_else(|| {
            let image = launch.image();
            let fitting = self.behaviours.iter().filter(|(key, _)| image.starts_with(*key));
            fitting.max_by_key(|(key, _)| key.len()).map(|(_, behaviour)| behaviour)
        })
    }

    pub(crate) fn start(
        &self,
        launch: &Launch,
        around: &mut Surroundings,
        init_millis: i64,
    ) -> Box<dyn Program> {
        let later = |millis| super::super::after(launch.now, millis);
        match self.behaviour(launch) {
            Some(Behaviour::Crash { after, exit }) => {
                return Box::new(Plain { ends: Some((later(*after), exit.clone())), ready: true });
            }
            Some(Behaviour::NeverReady) => {
                return Box::new(Plain { ends: None, ready: false });
            }
            None => {}
        }
        let registered = self.starters.iter().find_map(|starter| starter(launch, around));
        registered.unwrap_or_else(|| {
            let done = Exit { code: 0, message: String::new() };
            let ends = launch.init.then(|| (later(init_millis), done));
            Box::new(Plain { ends, ready: true })
        })
    }
}
