//! The node as its user sees it: started with a client, stopped, or simply dropped.

use crate::address::{AddressBlock, AddressBook};
use crate::context::Context;
use crate::events::Recorder;
use crate::keeper::Keeper;
use crate::process::Starter;
use crate::programs::Programs;
use crate::user::RunUser;
use crate::watching::Watching;
use crate::{provisioner, registration, scheduler};
use kube::Client;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};

/// A socket's path may have 107 bytes; this much of it is left to the node's folder, so that
/// `<folder>/p/<pod>/c<container>/run/.s.PGSQL.5432` always fits.
const LONGEST_STATE_DIR: usize = 64;

/// Longest time for all pods to stop, a little over the longest grace period that is honoured then.
const STOPPING: Duration = Duration::from_secs(40);
/// Longest time to take the Node object away.
const GOODBYE: Duration = Duration::from_secs(5);

/// How a node is to behave.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of the Node object and of `spec.nodeName`.
    pub node_name: String,
    /// Folder for everything the node writes: made if missing, and **removed with all its content** when
    /// the node ends. It must be empty. `None` makes a folder below the system's temporary one.
    pub state_dir: Option<PathBuf>,
    /// Loopback addresses for pods.
    pub address_pool: AddressBlock,
    /// Namespaces whose pods the node takes; `None` means all.
    pub namespaces: Option<BTreeSet<String>>,
    /// Whether the node also places pods that no node has.
    pub schedule: bool,
    /// Whether the node makes volumes for claims whose StorageClass names [`crate::PROVISIONER`].
    pub provision: bool,
    /// What the node can run.
    pub programs: Programs,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            node_name: "local".to_owned(),
            state_dir: None,
            address_pool: AddressBlock::default(),
            namespaces: None,
            schedule: true,
            provision: true,
            programs: Programs::find(),
        }
    }
}

/// Why a node could not be started.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The state folder cannot be used.
    #[error("use state folder {folder}: {why}")]
    UseFolder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is nobody to run the containers as.
    #[error("choose a user for containers: {0}")]
    ChooseUser(String),
    /// The keeper process could not be started.
    #[error("start the keeper process")]
    StartKeeper(#[source] std::io::Error),
    /// The API refused the Node object.
    #[error("register the node")]
    Register(#[source] Box<kube::Error>),
}

/// A running node. Dropping it kills its processes and removes its files, waiting for that up to some
/// ten seconds; [`LocalNode::stop`] does the same gracefully. Even when this process is killed, a keeper
/// process does it.
pub struct LocalNode {
    context: Arc<Context>,
    stop: Arc<Notify>,
    watching: Option<JoinHandle<()>>,
    others: JoinSet<()>,
}

impl LocalNode {
    /// Starts a node against the cluster that `client` reaches.
    pub async fn start(client: Client, options: Options) -> Result<Self, NodeError> {
        let user = RunUser::choose().map_err(NodeError::ChooseUser)?;
        let state_dir = make_state_dir(options.state_dir.as_deref())?;
        let keeper = Keeper::start(&state_dir).map_err(NodeError::StartKeeper)?;
        let (events, event_writer) = Recorder::new(client.clone(), options.node_name.clone());
        let addresses = AddressBook::new(options.address_pool, std::process::id().wrapping_mul(97));
        let starter = Starter { user, keeper: keeper.clone() };
        let parts = (starter, options.programs, events, addresses);
        let context =
            Arc::new(Context::new(client.clone(), options.node_name.clone(), state_dir, parts));
        if let Err(error) = registration::register(&client, &options.node_name).await {
            tokio::task::spawn_blocking(move || keeper.finish()).await.unwrap_or_default();
            return Err(NodeError::Register(Box::new(error)));
        }
        let mut others = JoinSet::new();
        others.spawn(event_writer);
        if options.provision {
            let node = options.node_name.clone();
            others.spawn(provisioner::run(client.clone(), node, options.namespaces.clone()));
        }
        others.spawn(registration::keep_lease(client, options.node_name));
        let seen = options.schedule.then(|| {
            let (sender, receiver) = mpsc::channel(256);
            others.spawn(scheduler::run(Arc::clone(&context), receiver));
            sender
        });
        let stop = Arc::new(Notify::new());
        let watching = Watching::new(Arc::clone(&context), options.namespaces, seen);
        let watching = Some(tokio::spawn(watching.run(Arc::clone(&stop))));
        Ok(Self { context, stop, watching, others })
    }

    /// Stops every container gracefully, removes the Node object and all files.
    pub async fn stop(mut self) {
        self.stop.notify_one();
        if let Some(mut watching) = self.watching.take()
            && tokio::time::timeout(STOPPING, &mut watching).await.is_err()
        {
            // An API server that no longer answers must not hold up the end: the keeper finishes it.
            watching.abort();
        }
        self.others.shutdown().await;
        let goodbye = registration::deregister(&self.context.client, &self.context.node_name);
        // A node object that stays is told dead by its lease; a server that is away must not hold us up.
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
        let keeper = self.context.starter.keeper.clone();
        tokio::task::spawn_blocking(move || keeper.finish()).await.unwrap_or_default();
    }

    /// The same for somebody who waits: what has not ended within `grace` is killed, pods' own grace
    /// periods notwithstanding.
    pub async fn stop_within(self, grace: Duration) {
        let keeper = self.context.starter.keeper.clone();
        let mut stopping = Box::pin(self.stop());
        if tokio::time::timeout(grace, &mut stopping).await.is_err() {
            // The node goes with what is left of its stopping, and lets the keeper do its work.
            keeper.hurry();
        }
    }

    /// The kept log of a container's current or last run; `None` when it has not run here.
    pub fn logs(&self, namespace: &str, pod: &str, container: &str) -> Option<String> {
        let window = self.window(namespace, pod, container)?;
        Some(window.log.read())
    }

    /// Runs a command in a container's surroundings and returns its exit code and output (both streams,
    /// at most 10 KiB). `Err` says why it could not be run; secrets belong in the container's environment,
    /// since arguments are visible to every user of this machine.
    pub async fn exec(
        &self,
        (namespace, pod, container): (&str, &str, &str),
        command: &[String],
        limit: Duration,
    ) -> Result<(i32, String), String> {
        let window = self.window(namespace, pod, container).ok_or_else(|| {
            format!("container {container} of {namespace}/{pod} does not run on this node")
        })?;
        let (program, starter) = window.assembly.beside(&self.context, command)?;
        match starter.output(&program, "", limit).await {
            Ok(Some((exit, output))) => Ok((exit.code, output)),
            Ok(None) => Err(format!("the command did not end within {} s", limit.as_secs())),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Folder that holds everything the node writes.
    pub fn state_dir(&self) -> &Path {
        &self.context.state_dir
    }

    fn window(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
    ) -> Option<crate::context::Window> {
        let key = (namespace.to_owned(), pod.to_owned(), container.to_owned());
        self.context.windows().get(&key).cloned()
    }
}

impl Drop for LocalNode {
    fn drop(&mut self) {
        if let Some(watching) = &self.watching {
            watching.abort();
        }
        self.others.abort_all();
        self.context.starter.keeper.finish();
    }
}

fn make_state_dir(wanted: Option<&Path>) -> Result<PathBuf, NodeError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let folder = wanted.map_or_else(
        || {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            short_temporary_folder().join(format!("sfn{}-{number}", std::process::id()))
        },
        Path::to_path_buf,
    );
    let refuse = |why: String| NodeError::UseFolder { folder: folder.clone(), why };
    std::fs::create_dir_all(&folder).map_err(|error| refuse(error.to_string()))?;
    let real = folder.canonicalize().map_err(|error| refuse(error.to_string()))?;
    if real.as_os_str().len() > LONGEST_STATE_DIR {
        return Err(refuse(format!(
            "its path has more than {LONGEST_STATE_DIR} bytes, too long for the sockets below it"
        )));
    }
    let mut entries = std::fs::read_dir(&real).map_err(|error| refuse(error.to_string()))?;
    if entries.next().is_some() {
        return Err(refuse("it is not empty, and everything in it would be removed".to_owned()));
    }
    // Others may pass through to what is theirs, and list nothing.
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o711))
        .map_err(|error| refuse(error.to_string()))?;
    Ok(real)
}

/// The system's temporary folder unless it is deep, as on macOS.
fn short_temporary_folder() -> PathBuf {
    let usual = std::env::temp_dir();
    if usual.as_os_str().len() > LONGEST_STATE_DIR / 2 { PathBuf::from("/tmp") } else { usual }
}
