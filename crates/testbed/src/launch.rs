//! Bringing a control plane up: files first, then etcd and the API server, then the controllers.

use std::net::SocketAddrV4;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use kube::Client;
use tokio::time::Instant;

use crate::access::{self, Login};
use crate::audit;
use crate::binaries::Binaries;
use crate::certificates::{self, Authority, write_private};
use crate::control_plane::config_from;
use crate::layout::Layout;
use crate::options::Options;
use crate::programs::arguments::{self, Ports};
use crate::programs::{self, Group, Program};
use crate::readiness;

/// Everything that is decided before a program starts, and stays.
pub(crate) struct Plant {
    pub(crate) layout: Layout,
    pub(crate) ports: Ports,
    pub(crate) options: Options,
    pub(crate) binaries: Binaries,
    pub(crate) authority: Authority,
}

/// The running programs.
pub(crate) struct Programs {
    pub(crate) etcd: Program,
    pub(crate) api_server: Program,
    pub(crate) controllers: Option<Program>,
}

impl Programs {
    /// Name and process number of each, in the order of their start.
    pub(crate) fn numbers(&self) -> Vec<(&'static str, u32)> {
        let running = [Some(&self.etcd), Some(&self.api_server), self.controllers.as_ref()];
        running.into_iter().flatten().map(|program| (program.name(), program.pid())).collect()
    }

    /// Lets all of them live on without us.
    pub(crate) fn release(self) {
        let Self { etcd, api_server, controllers } = self;
        for program in [Some(etcd), Some(api_server), controllers].into_iter().flatten() {
            program.release();
        }
    }
}

impl Plant {
    /// Picks ports and writes keys, policy and kubeconfigs.
    pub(crate) fn prepare(layout: Layout, binaries: Binaries, options: Options) -> Result<Self> {
        let ports = Ports::free(options.address)?;
        let server = SocketAddrV4::new(options.address, ports.api_server);
        let authority = Authority::generate()?;
        certificates::write_files(&authority, &layout, options.address)?;
        write_private(&layout.file("audit-policy.yaml"), audit::POLICY)?;
        let admin = Login::admin(&authority)?;
        write_private(&layout.admin_kubeconfig(), &access::kubeconfig(&authority, server, &admin))?;
        let controllers = Login::user(&authority, "system:kube-controller-manager", &[])?;
        write_private(
            &layout.file("controller-manager.kubeconfig"),
            &access::kubeconfig(&authority, server, &controllers),
        )?;
        Ok(Self { layout, ports, options, binaries, authority })
    }

    /// The API server's address and port.
    pub(crate) fn server(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.options.address, self.ports.api_server)
    }

    /// Starts all programs and waits until the cluster can be used.
    pub(crate) async fn start_all(&self, group: &Group) -> Result<Programs> {
        let deadline = Instant::now() + self.options.start_timeout;
        let mut etcd = self.start(programs::ETCD, group)?;
        // The API server retries until etcd answers, so neither waits for the other's start.
        let api_server = match self.start_api_server(group, deadline).await {
            Ok(program) => program,
            // An etcd that has ended is the better explanation.
            Err(error) => return Err(etcd.check_running().err().unwrap_or(error)),
        };
        let client = self.client().await?;
        let mut controllers = match self.options.controllers {
            true => Some(self.start_controllers(group)?),
            false => None,
        };
        let ask = || readiness::namespace_exists(&client, "default");
        readiness::wait_for("namespace default", deadline, || etcd.check_running(), ask).await?;
        if let Some(program) = &mut controllers {
            let ask = || readiness::service_account_exists(&client, "default");
            readiness::wait_for(
                "the default service account",
                deadline,
                || program.check_running(),
                ask,
            )
            .await?;
        }
        Ok(Programs { etcd, api_server, controllers })
    }

    /// Starts the API server alone and waits until it says that it is ready.
    pub(crate) async fn start_api_server(
        &self,
        group: &Group,
        deadline: Instant,
    ) -> Result<Program> {
        let mut program = self.start(programs::API_SERVER, group)?;
        let client = self.client().await?;
        let ask = || readiness::api_server_ready(&client);
        readiness::wait_for("the API server", deadline, || program.check_running(), ask)
            .await
            .with_context(|| format!("the API server's log ends with:\n{}", program.log_end()))?;
        Ok(program)
    }

    /// Starts the controllers; they need the API server.
    pub(crate) fn start_controllers(&self, group: &Group) -> Result<Program> {
        self.start(programs::CONTROLLER_MANAGER, group)
    }

    fn start(&self, name: &'static str, group: &Group) -> Result<Program> {
        let (layout, ports, options) = (&self.layout, self.ports, &self.options);
        let (path, arguments) = match name {
            programs::ETCD => (Some(&self.binaries.etcd), arguments::etcd(layout, ports)),
            programs::API_SERVER => {
                (Some(&self.binaries.kube_apiserver), arguments::api_server(layout, ports, options))
            }
            _ => (
                self.binaries.kube_controller_manager.as_ref(),
                arguments::controller_manager(layout, ports, options),
            ),
        };
        let path =
            path.with_context(|| format!("no {name} program: run `cargo xtask cluster build`"))?;
        Program::start(name, path, &arguments, (group, layout.log(name)))
    }

    /// An admin client that answers at once rather than trying again by itself.
    pub(crate) async fn client(&self) -> Result<Client> {
        let admin = Login::admin(&self.authority)?;
        let mut config =
            config_from(&access::kubeconfig(&self.authority, self.server(), &admin)).await?;
        config.default_retry = false;
        config.read_timeout = Some(Duration::from_secs(5));
        Client::try_from(config).context("build a client")
    }
}

/// Whether a start failed because somebody else took a port first.
pub(crate) fn is_port_conflict(error: &Error) -> bool {
    format!("{error:#}").contains("address already in use")
}
