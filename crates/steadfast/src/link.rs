//! The cluster that a command looks at: a real one, or an empty one that is only thought of.

use std::sync::Arc;
use std::time::Duration;

use foresight::cause::Cause;
use foresight::mistake::{self, Mistake, Refusal};
use kube::config::{KubeConfigOptions, Kubeconfig};
use runner::clock::{Clock, SystemClock};
use runner::trouble::{UNREACHED, root_cause};
use runner::view::Viewer;
use serde_json::json;
use sim::world::World;

use crate::args::foresight::Access;
use crate::manifests;

/// What a command says that can do without a cluster.
pub const OFFLINE: &str = ", or use --offline";

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster.
#[derive(Clone)]
pub struct Link {
    /// Looks at it.
    pub viewer: Viewer,
    /// Namespace of what names none.
    pub namespace: String,
    /// Where it is, for messages.
    pub address: String,
    /// What the command can do without it, as the end of a next step.
    pub without: &'static str,
    /// The time there.
    pub clock: Arc<dyn Clock>,
    /// The world behind it, when it is only thought of.
    thought: Option<World>,
}

impl Link {
    /// The cluster of the kubeconfig, or the one that this process runs in. `without` ends the next step
    /// of whoever has none, such as [`OFFLINE`].
    ///
    /// # Errors
    /// When none is configured.
    pub async fn real(access: &Access, without: &'static str) -> Result<Self, Mistake> {
        let mut config = config(access).await.map_err(|why| {
            Mistake::new(
                format!("No cluster is configured: {why}."),
                format!("Set KUBECONFIG or give --kubeconfig and --context{without}."),
            )
        })?;
        config.default_retry = false;
        let address = config.cluster_url.to_string();
        let namespace = access.namespace.clone().unwrap_or(config.default_namespace.clone());
        let client = kube::Client::try_from(config).map_err(|error| {
            Mistake::new(
                format!("The cluster's address or certificates are unusable: {error}."),
                "Check the kubeconfig.",
            )
        })?;
        Ok(Self { address, without, ..Self::to(client, &namespace) })
    }

    /// The cluster behind a client.
    pub fn to(client: kube::Client, namespace: &str) -> Self {
        Self {
            viewer: Viewer::new(client, PATIENCE),
            namespace: namespace.to_owned(),
            address: "the cluster".to_owned(),
            without: "",
            clock: Arc::new(SystemClock),
            thought: None,
        }
    }

    /// A cluster that holds the definitions and nothing else, in this process.
    ///
    /// # Errors
    /// When it does not take the definitions, which would be our fault.
    pub fn thought(namespace: Option<&str>) -> anyhow::Result<Self> {
        let world = World::new(1);
        for definition in manifests::crds()? {
            world
                .apply(&definition.to_string())
                .map_err(|refusal| anyhow::anyhow!("a definition was refused: {refusal:?}"))?;
        }
        let client = kube::Client::new(world.service(), "default");
        let link = Self::to(client, namespace.unwrap_or("default"));
        Ok(Self { thought: Some(world), ..link })
    }

    /// Whether it is only thought of.
    pub fn is_thought(&self) -> bool {
        self.thought.is_some()
    }

    /// Makes sure that a namespace exists, where that is only thought.
    pub fn imagine(&self, namespace: &str) {
        if let Some(world) = &self.thought
            && world.get("Namespace", "", namespace).is_none()
        {
            let object =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            // A name that no namespace can have is refused again with the resource.
            let _ = world.apply(&object.to_string());
        }
    }

    /// That no server answers, and why.
    pub fn silent(&self, why: &str) -> Mistake {
        let why = why.strip_prefix(UNREACHED).unwrap_or(why);
        mistake::unreachable(&self.address, why, self.without)
    }

    /// What the client says of a failed call.
    ///
    /// # Errors
    /// When the server gave no answer.
    pub fn refusal(&self, error: kube::Error) -> Result<Refusal, Mistake> {
        match error {
            kube::Error::Api(status) => Ok(Refusal {
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
                causes: causes(&status),
            }),
            other => Err(self.silent(&root_cause(&other))),
        }
    }
}

fn causes(status: &kube::core::Status) -> Vec<Cause> {
    let listed = status.details.iter().flat_map(|details| &details.causes);
    listed.map(|cause| Cause::new(cause.field.clone(), cause.message.clone())).collect()
}

async fn config(access: &Access) -> Result<kube::Config, String> {
    let options = KubeConfigOptions { context: access.context.clone(), ..Default::default() };
    let words = |error: &dyn std::error::Error| root_cause(error);
    if let Some(path) = &access.kubeconfig {
        let file = Kubeconfig::read_from(path)
            .map_err(|error| format!("{}: {}", path.display(), words(&error)))?;
        return kube::Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|error| words(&error));
    }
    if access.context.is_some() {
        return kube::Config::from_kubeconfig(&options).await.map_err(|error| words(&error));
    }
    kube::Config::infer().await.map_err(|error| words(&error))
}
