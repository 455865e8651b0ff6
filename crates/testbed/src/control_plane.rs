//! A control plane that lives as long as its value.
//!
//! Starts and ends programs and hands out clients. Cluster contents are none of its business, except what
//! it must wait for before it can be called ready.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tempfile::TempDir;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::Instant;

use crate::access::{self, Identity, Login};
use crate::audit::{self, AuditEntry};
use crate::binaries;
use crate::certificates::write_private;
use crate::launch::{Plant, is_port_conflict};
use crate::layout::Layout;
use crate::options::Options;
use crate::programs::{Group, Program};
use crate::readiness;

/// How long a program may take to end in good order before it is killed.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long things that take milliseconds may take on a busy machine.
pub(crate) const SHORT_WAIT: Duration = Duration::from_secs(30);
/// Query that marks our own requests in the audit log.
const MARKER: &str = "steadfast-testbed-marker";

/// A running control plane. Dropping it kills the programs and removes its folder; so does the end of this
/// process, even a violent one.
pub struct ControlPlane {
    // Dropped in this order: the group kills all at once, each program is waited for, the folder goes last.
    group: Group,
    pub(crate) plant: Plant,
    etcd: Program,
    api_server: Mutex<Option<Program>>,
    // Held while they are restarted.
    pub(crate) controllers: Mutex<Option<Program>>,
    markers: AtomicU64,
    folder: TempDir,
}

impl std::fmt::Debug for ControlPlane {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ControlPlane")
            .field("folder", &self.folder.path())
            .finish_non_exhaustive()
    }
}

impl ControlPlane {
    /// Starts a control plane and waits until pods could be created in namespace `default`.
    ///
    /// # Errors
    /// The programs are missing (see [`crate::require_or_skip`]), one of them ends (the error has its last
    /// log lines), or it takes longer than `options.start_timeout`.
    pub async fn start(options: Options) -> Result<Self> {
        const ATTEMPTS: usize = 3;
        for _ in 1..ATTEMPTS {
            match Self::attempt(options.clone()).await {
                // Another process took a port between our look and our use of it.
                Err(error) if is_port_conflict(&error) => {}
                outcome => return outcome,
            }
        }
        Self::attempt(options).await
    }

    /// The control plane that all tests of one program share: started by the first who asks, ended with the
    /// process. Keep to a namespace of your own in it ([`Self::create_namespace`]).
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(Options::default())).await
    }

    async fn attempt(options: Options) -> Result<Self> {
        let binaries = binaries::find()
            .context("no control plane programs: run `cargo xtask cluster build`")?;
        let folder = tempfile::Builder::new()
            .prefix("steadfast-testbed-")
            .tempdir()
            .context("make a folder")?;
        let group = Group::leashed(folder.path())?;
        let plant = Plant::prepare(Layout::new(folder.path()), binaries, options)?;
        let programs = plant.start_all(&group).await?;
        Ok(Self {
            group,
            plant,
            etcd: programs.etcd,
            api_server: Mutex::new(Some(programs.api_server)),
            controllers: Mutex::new(programs.controllers),
            markers: AtomicU64::new(0),
            folder,
        })
    }

    /// Ends all programs, waits for them and removes the folder. Dropping does the same without the errors.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub fn stop(self) -> Result<()> {
        let Self { etcd, api_server, controllers, mut group, folder, .. } = self;
        group.kill();
        drop((controllers, api_server, etcd));
        folder.close().context("remove the control plane's folder")
    }

    /// Ends the API server in good order; the others stay. Clients see refused connections.
    ///
    /// # Errors
    /// It is stopped already, or cannot be ended.
    pub async fn stop_api_server(&self) -> Result<()> {
        let program =
            self.api_server.lock().await.take().context("the API server is stopped already")?;
        program.end(PATIENCE).await.map(drop)
    }

    /// Starts the API server again, on the same port and with the same contents, and waits until it is ready.
    ///
    /// # Errors
    /// It runs already, or does not become ready.
    pub async fn start_api_server(&self) -> Result<()> {
        let mut slot = self.api_server.lock().await;
        if slot.is_some() {
            bail!("the API server runs already");
        }
        let deadline = Instant::now() + self.plant.options.start_timeout;
        *slot = Some(self.plant.start_api_server(&self.group, deadline).await?);
        Ok(())
    }

    /// Replaces the running controllers by new ones, which know of no earlier watch or discovery.
    pub(crate) async fn replace_controllers(&self, slot: &mut Option<Program>) -> Result<()> {
        if let Some(program) = slot.take() {
            program.end(PATIENCE).await?;
            *slot = Some(self.plant.start_controllers(&self.group)?);
        }
        Ok(())
    }

    /// Process numbers of the running programs, by name.
    pub async fn processes(&self) -> Vec<(&'static str, u32)> {
        let api_server = self.api_server.lock().await;
        let controllers = self.controllers.lock().await;
        let running = [Some(&self.etcd), api_server.as_ref(), controllers.as_ref()];
        running.into_iter().flatten().map(|program| (program.name(), program.pid())).collect()
    }

    /// The API server's address.
    pub fn url(&self) -> String {
        format!("https://{}", self.plant.server())
    }

    /// The programs that run.
    pub fn binaries(&self) -> &binaries::Binaries {
        &self.plant.binaries
    }

    /// A kubeconfig file of the admin.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.plant.layout.admin_kubeconfig()
    }

    /// A kubeconfig file for somebody, in the control plane's folder. Each call writes a new one.
    ///
    /// # Errors
    /// A service account does not exist, or the file cannot be written.
    pub async fn kubeconfig_for(&self, identity: &Identity) -> Result<PathBuf> {
        let text = self.kubeconfig_text(identity).await?;
        let number = self.markers.fetch_add(1, Ordering::Relaxed);
        let path = self.plant.layout.file(&format!("client-{number}.kubeconfig"));
        write_private(&path, &text)?;
        Ok(path)
    }

    /// Client settings for somebody, to change before making a client (a `User-Agent` header, say).
    ///
    /// # Errors
    /// As [`Self::kubeconfig_for`].
    pub async fn config_for(&self, identity: &Identity) -> Result<Config> {
        config_from(&self.kubeconfig_text(identity).await?).await
    }

    /// A client of the admin. A client belongs to the async runtime that it was made in.
    ///
    /// # Errors
    /// The client cannot be built.
    pub async fn client(&self) -> Result<Client> {
        self.client_as(&Identity::Admin).await
    }

    /// A client that is exactly this user to the API server, with these groups.
    ///
    /// # Errors
    /// The client cannot be built.
    pub async fn client_for(&self, user: &str, groups: &[&str]) -> Result<Client> {
        self.client_as(&Identity::user(user, groups)).await
    }

    /// A client for somebody.
    ///
    /// # Errors
    /// As [`Self::kubeconfig_for`].
    pub async fn client_as(&self, identity: &Identity) -> Result<Client> {
        Client::try_from(self.config_for(identity).await?).context("build a client")
    }

    /// Every request finished so far, oldest first. While the API server runs, a request of our own is sent
    /// and waited for in the log, so that all answers seen before this call are included; it is left out.
    ///
    /// # Errors
    /// The log cannot be read or understood.
    pub async fn audit_log(&self) -> Result<Vec<AuditEntry>> {
        let path = self.plant.layout.audit_log();
        if self.api_server.lock().await.is_some() {
            let number = self.markers.fetch_add(1, Ordering::Relaxed);
            let uri = format!("/version?{MARKER}={number}");
            let request = http::Request::get(&uri).body(Vec::new()).context("build a request")?;
            self.client().await?.request_text(request).await.context("mark the audit log")?;
            let seen = || {
                let found = audit::read(&path)
                    .is_ok_and(|log| log.iter().any(|entry| entry.request_uri == uri));
                std::future::ready(found)
            };
            readiness::wait_for(
                "our mark in the audit log",
                Instant::now() + SHORT_WAIT,
                || Ok(()),
                seen,
            )
            .await?;
        }
        let mut log = audit::read(&path)?;
        log.retain(|entry| !entry.request_uri.contains(MARKER));
        Ok(log)
    }

    async fn kubeconfig_text(&self, identity: &Identity) -> Result<String> {
        let authority = &self.plant.authority;
        let login = match identity {
            Identity::Admin => Login::admin(authority)?,
            Identity::User { name, groups } => Login::user(authority, name, groups)?,
            Identity::ServiceAccount { namespace, name } => {
                Login::token(&self.token(namespace, name).await?)
            }
        };
        Ok(access::kubeconfig(authority, self.plant.server(), &login))
    }

    async fn token(&self, namespace: &str, name: &str) -> Result<String> {
        let admin = access::kubeconfig(
            &self.plant.authority,
            self.plant.server(),
            &Login::admin(&self.plant.authority)?,
        );
        let client = Client::try_from(config_from(&admin).await?).context("build a client")?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(3600),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let accounts = Api::<ServiceAccount>::namespaced(client, namespace);
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .with_context(|| format!("ask for a token of service account {namespace}/{name}"))?;
        answer
            .status
            .and_then(|status| status.token)
            .context("a token request was answered without a token")
    }
}

/// Client settings from the text of a kubeconfig.
pub(crate) async fn config_from(text: &str) -> Result<Config> {
    // The text holds a secret, so the parser's error, which may quote it, is not passed on.
    let parsed = Kubeconfig::from_yaml(text).ok().context("our own kubeconfig cannot be parsed")?;
    Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .context("read our own kubeconfig")
}
