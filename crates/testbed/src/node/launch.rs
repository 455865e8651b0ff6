//! Bringing nodes up: the room, containerd, then kubelet, kube-proxy and, on the first node, the name server.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::{Api, Client};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::programs::NodePrograms;
use super::room::{Place, Room};
use super::settings::{self, Files, SOCKET};
use super::store;
use crate::access::{self, Login};
use crate::certificates::write_private;
use crate::images;
use crate::launch::Plant;
use crate::programs::{Group, Program};
use crate::readiness;

/// The first node runs the name server.
pub(crate) const FIRST: u8 = 1;

/// What a node is started from.
pub(crate) struct Site<'a> {
    pub(crate) plant: &'a Plant,
    pub(crate) programs: &'a NodePrograms,
    pub(crate) group: &'a Group,
}

/// A running node.
#[derive(Debug)]
pub(crate) struct Node {
    // Dropped in this order; the room's end also ends what its programs started.
    programs: Vec<Program>,
    room: Room,
    name: String,
    address: Ipv4Addr,
    ctr: PathBuf,
}

impl Node {
    /// Where its programs run.
    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// Name and process number of each program. The room's first process comes last: whoever ends them in
    /// reverse order ends all with it.
    pub(crate) fn numbers(&self) -> Vec<(&'static str, u32)> {
        let programs = self.programs.iter().map(|program| (program.name(), program.pid()));
        programs.chain([("node", self.room.first())]).collect()
    }

    /// Gives the node an image.
    pub(crate) fn import(&self, image: &Path) -> Result<()> {
        let mut command = self.room.command(&self.ctr);
        command.args(["--address", SOCKET, "--namespace", "k8s.io", "images", "import", "-"]);
        images::feed(image, &mut command)
            .with_context(|| format!("import {} into {}", image.display(), self.name))
    }

    /// Lets it live on without us.
    pub(crate) fn release(self) {
        for program in self.programs {
            program.release();
        }
        self.room.release();
    }

    /// Waits until the API server knows the node as ready and, where it runs one, its name server answers.
    pub(crate) async fn wait_until_ready(
        &mut self,
        client: &Client,
        deadline: Instant,
    ) -> Result<()> {
        let nodes = Api::<NodeObject>::all(client.clone());
        let (name, address) = (self.name.clone(), self.address);
        let serves_names = self.programs.iter().any(|program| program.name() == "coredns");
        let ask =
            || async { is_ready(&nodes, &name).await && (!serves_names || answers(address).await) };
        let programs = &mut self.programs;
        let alive = || programs.iter_mut().try_for_each(Program::check_running);
        readiness::wait_for(&name, deadline, alive, ask).await
    }
}

async fn is_ready(nodes: &Api<NodeObject>, name: &str) -> bool {
    let Ok(Some(node)) = nodes.get_opt(name).await else { return false };
    let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

async fn answers(address: Ipv4Addr) -> bool {
    TcpStream::connect(SocketAddr::from((address, 53))).await.is_ok()
}

impl Site<'_> {
    /// Starts the scheduler, which the control plane has only when there are nodes to choose from.
    pub(crate) fn start_scheduler(&self) -> Result<Program> {
        let Plant { layout, authority, .. } = self.plant;
        let path = layout.file("scheduler.kubeconfig");
        let login = Login::user(authority, "system:kube-scheduler", &[])?;
        write_private(&path, &access::kubeconfig(authority, self.plant.server(), &login))?;
        let [port] = crate::ports::free(Ipv4Addr::LOCALHOST)?;
        let path = path.display();
        let arguments = [
            format!("--kubeconfig={path}"),
            format!("--authentication-kubeconfig={path}"),
            format!("--authorization-kubeconfig={path}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--leader-elect=false".to_owned(),
            "--kube-api-qps=500".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            "--profiling=false".to_owned(),
        ];
        let program = self.programs.kubernetes.join("kube-scheduler");
        let log = layout.log("kube-scheduler");
        Program::start("kube-scheduler", &program, &arguments, (self.group, log))
    }

    /// Starts one node; it is not ready yet.
    pub(crate) async fn start_node(
        &self,
        place: Place<'_>,
        store: &Path,
        deadline: Instant,
    ) -> Result<Node> {
        let room = Room::open(place, self.group)?;
        let files = Files { folder: place.folder() };
        self.write_files(place, &files)?;
        let ctr = self.programs.containerd.join("ctr");
        let (name, address) = (place.name(), place.address());
        let mut node = Node { programs: Vec::new(), room, name, address, ctr };
        store::lend(store, &node.room, &files.path("containerd"))?;
        let arguments =
            ["--config".to_owned(), files.path("containerd.toml").display().to_string()];
        let mut containerd = self.start(&node.room, "containerd", &arguments, &files)?;
        let ask = || {
            std::future::ready(
                node.room
                    .run(&node.ctr.to_string_lossy(), &["--address", SOCKET, "version"])
                    .is_ok(),
            )
        };
        readiness::wait_for("containerd", deadline, || containerd.check_running(), ask).await?;
        node.programs.push(containerd);
        node.programs.push(self.start(
            &node.room,
            "kubelet",
            &kubelet_arguments(place, &files),
            &files,
        )?);
        let arguments = [format!("--config={}", files.path("proxy.yaml").display())];
        node.programs.push(self.start(&node.room, "kube-proxy", &arguments, &files)?);
        if place.index == FIRST {
            let arguments = ["-conf".to_owned(), files.path("Corefile").display().to_string()];
            node.programs.push(self.start(&node.room, "coredns", &arguments, &files)?);
        }
        Ok(node)
    }

    fn start(
        &self,
        room: &Room,
        name: &'static str,
        arguments: &[String],
        files: &Files,
    ) -> Result<Program> {
        let path = match name {
            "containerd" => self.programs.containerd.join(name),
            "coredns" => self.programs.coredns.clone(),
            _ => self.programs.kubernetes.join(name),
        };
        let mut words = room.entry().to_vec();
        if name == "containerd" {
            // It looks for its shim on the PATH.
            let path = std::env::var("PATH").unwrap_or_default();
            let path = format!("PATH={}:{path}", self.programs.containerd.display());
            words.extend(["env".to_owned(), path]);
        }
        words.push(path.display().to_string());
        words.extend_from_slice(arguments);
        let log = files.path(&format!("{name}.log"));
        Program::start(name, Path::new("nsenter"), &words, (self.group, log))
    }

    fn write_files(&self, place: Place<'_>, files: &Files) -> Result<()> {
        let Plant { authority, layout, .. } = self.plant;
        let kubeconfig = |file: &str, user: &str, groups: &[String]| -> Result<()> {
            let login = Login::user(authority, user, groups)?;
            let text = access::kubeconfig(authority, self.plant.server(), &login);
            write_private(&files.path(file), &text)
        };
        let user = format!("system:node:{}", place.name());
        kubeconfig("kubelet.kubeconfig", &user, &["system:nodes".to_owned()])?;
        kubeconfig("proxy.kubeconfig", "system:kube-proxy", &[])?;
        kubeconfig("dns.kubeconfig", super::dns::USER, &[])?;
        let serving = authority.server(&[&place.name(), &place.address().to_string()])?;
        write_private(&files.path("kubelet.crt"), &serving.certificate)?;
        write_private(&files.path("kubelet.key"), &serving.key)?;
        fs::create_dir_all(files.path("network"))
            .context("make a folder for the network's settings")?;
        for (name, text) in [
            ("containerd.toml", settings::containerd(files, self.programs)),
            ("network/pods.conflist", settings::pod_network(place)),
            ("kubelet.yaml", settings::kubelet(files, place, &layout.certificate("authority"))),
            ("proxy.yaml", settings::proxy(files, place)),
            ("Corefile", settings::name_server(files, place.address())),
            ("resolv.conf", String::new()),
        ] {
            fs::write(files.path(name), text).with_context(|| format!("write {name}"))?;
        }
        Ok(())
    }
}

fn kubelet_arguments(place: Place<'_>, files: &Files) -> Vec<String> {
    vec![
        format!("--config={}", files.path("kubelet.yaml").display()),
        format!("--kubeconfig={}", files.path("kubelet.kubeconfig").display()),
        format!("--hostname-override={}", place.name()),
        format!("--node-ip={}", place.address()),
    ]
}
