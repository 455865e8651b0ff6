//! Command lines of the programs (reference/real-cluster.md section 2), tuned for short-lived clusters.
//!
//! Pure: paths and ports in, arguments out.

use std::net::Ipv4Addr;

use crate::layout::Layout;
use crate::options::Options;

/// Ports of one control plane, all on loopback but for the API server's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) api_server: u16,
    pub(crate) controller_manager: u16,
}

impl Ports {
    /// Ports that are free now: the API server's at its address, the others on loopback.
    pub(crate) fn free(address: Ipv4Addr) -> anyhow::Result<Self> {
        let [api_server] = crate::ports::free(address)?;
        let [etcd, controller_manager] = crate::ports::free(Ipv4Addr::LOCALHOST)?;
        Ok(Self { etcd, api_server, controller_manager })
    }
}

/// Range of Service addresses; the first one is in the server's certificate.
const SERVICE_RANGE: &str = "10.96.0.0/16";

/// etcd keeps its data in the folder and does not wait for the disk: a test cluster never needs recovery.
pub(crate) fn etcd(layout: &Layout, ports: Ports) -> Vec<String> {
    let client_url = format!("http://127.0.0.1:{}", ports.etcd);
    vec![
        "--name=testbed".to_owned(),
        format!("--data-dir={}", layout.file("etcd").display()),
        format!("--listen-client-urls={client_url}"),
        format!("--advertise-client-urls={client_url}"),
        // Port 0: the only member has no peer to talk to.
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        "--unsafe-no-fsync=true".to_owned(),
        "--log-level=warn".to_owned(),
    ]
}

/// The API server, with its default admission plugins (ResourceQuota, PodSecurity and the others) and
/// NodeRestriction.
pub(crate) fn api_server(layout: &Layout, ports: Ports, options: &Options) -> Vec<String> {
    let certificate = |name: &str| layout.certificate(name).display().to_string();
    let key = |name: &str| layout.key(name).display().to_string();
    let mut arguments = vec![
        format!("--bind-address={}", options.address),
        format!("--secure-port={}", ports.api_server),
        format!("--endpoint-reconciler-type={}", endpoint_reconciler(options.address)),
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--authorization-mode=Node,RBAC".to_owned(),
        "--enable-admission-plugins=NodeRestriction".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--tls-cert-file={}", certificate("server")),
        format!("--tls-private-key-file={}", key("server")),
        format!("--client-ca-file={}", certificate("authority")),
        format!("--kubelet-client-certificate={}", certificate("kubelet-client")),
        format!("--kubelet-client-key={}", key("kubelet-client")),
        format!("--kubelet-certificate-authority={}", certificate("authority")),
        // A node is called by a name that only the cluster knows.
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
        format!("--service-account-key-file={}", certificate("service-account")),
        format!("--service-account-signing-key-file={}", key("service-account")),
        format!("--audit-policy-file={}", layout.file("audit-policy.yaml").display()),
        format!("--audit-log-path={}", layout.audit_log().display()),
        // Blocking: an answer that a client has seen is in the log.
        "--audit-log-mode=blocking".to_owned(),
        "--audit-log-maxsize=1000".to_owned(),
        "--profiling=false".to_owned(),
    ];
    arguments.extend(options.api_server_arguments.iter().cloned());
    arguments
}

/// The built-in controllers, each with its own service account, with client limits far above a test's needs.
pub(crate) fn controller_manager(layout: &Layout, ports: Ports, options: &Options) -> Vec<String> {
    let kubeconfig = layout.file("controller-manager.kubeconfig").display().to_string();
    let authority = layout.certificate("authority").display().to_string();
    let mut arguments = vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.controller_manager),
        "--use-service-account-credentials=true".to_owned(),
        format!("--service-account-private-key-file={}", layout.key("service-account").display()),
        format!("--root-ca-file={authority}"),
        format!("--cluster-signing-cert-file={authority}"),
        format!("--cluster-signing-key-file={}", layout.key("authority").display()),
        format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        "--leader-elect=false".to_owned(),
        format!("--controllers={}", controllers(options)),
        "--pvclaimbinder-sync-period=2s".to_owned(),
        "--kube-api-qps=500".to_owned(),
        "--kube-api-burst=1000".to_owned(),
        // No cloud, no disks to attach, no volumes to look for on the machine.
        "--disable-attach-detach-reconcile-sync=true".to_owned(),
        // It makes this folder, by default outside of ours.
        format!("--flex-volume-plugin-dir={}", layout.file("flex-volumes").display()),
        "--profiling=false".to_owned(),
    ];
    arguments.extend(options.controller_manager_arguments.iter().cloned());
    arguments
}

/// The Endpoints of `kubernetes` may not hold a loopback address, so nothing may try to write it; at any other
/// address they lead pods to the API server.
fn endpoint_reconciler(address: Ipv4Addr) -> &'static str {
    if address.is_loopback() { "none" } else { "lease" }
}

fn controllers(options: &Options) -> &'static str {
    if options.node_lifecycle {
        "*"
    } else {
        "*,-node-lifecycle-controller,-taint-eviction-controller"
    }
}
