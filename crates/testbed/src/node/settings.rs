//! Texts of the files that a node's programs are started with. Pure: paths and addresses in, text out.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::programs::NodePrograms;
use super::room::Place;

/// The name server's Service address, as pods have it in their `resolv.conf`.
pub(crate) const DNS_ADDRESS: &str = "10.96.0.10";
/// Image that holds a pod's namespaces open; built by `images`.
pub(crate) const PAUSE_IMAGE: &str = "steadfast.dev/pause:1";
/// containerd's socket, in the room's own `/run`.
pub(crate) const SOCKET: &str = "/run/containerd/containerd.sock";

/// Folder of what containerd is told about registries.
pub(crate) const REGISTRIES: &str = "registries";

/// Where a node's files lie.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) folder: PathBuf,
}

impl Files {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

/// containerd's settings.
pub(crate) fn containerd(files: &Files, programs: &NodePrograms) -> String {
    format!(
        r#"version = 3
root = "{root}"
state = "/run/containerd"

[grpc]
  address = "{SOCKET}"

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"

  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{PAUSE_IMAGE}"

  # Read at each pull: a folder for each registry that is spoken to in a way of its own.
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "{registries}"

[plugins.'io.containerd.cri.v1.runtime']
  # Where we lack CAP_SYS_RESOURCE, a negative value is refused, and runc fails with it.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true

  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{network}"

  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"

    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "{runc}"
      SystemdCgroup = false
"#,
        root = files.text("containerd"),
        plugins = programs.network_plugins.display(),
        network = files.text("network"),
        registries = files.text(REGISTRIES),
        runc = programs.runc.display(),
    )
}

/// The pods' network on one node: a bridge, and an address from the node's range.
pub(crate) fn pod_network(place: Place<'_>) -> String {
    let pods = place.network.pods(place.index);
    format!(
        r#"{{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{{
    "type": "bridge",
    "bridge": "cni0",
    "isGateway": true,
    "hairpinMode": true,
    "ipam": {{
      "type": "host-local",
      "dataDir": "/run/pod-addresses",
      "ranges": [[{{"subnet": "{pods}"}}]],
      "routes": [{{"dst": "0.0.0.0/0"}}]
    }}
  }}]
}}
"#
    )
}

/// The kubelet's settings. Nothing is evicted for lack of disk or memory: the machine is not the cluster's.
pub(crate) fn kubelet(files: &Files, place: Place<'_>, authority: &Path) -> String {
    let (address, group) = (place.address(), format!("{}/{}", place.network.name(), place.name()));
    format!(
        r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {address}
authentication:
  anonymous: {{enabled: false}}
  webhook: {{enabled: true}}
  x509: {{clientCAFile: "{authority}"}}
authorization: {{mode: Webhook}}
tlsCertFile: "{certificate}"
tlsPrivateKeyFile: "{key}"
cgroupDriver: cgroupfs
cgroupRoot: /{group}
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
clusterDNS: ["{DNS_ADDRESS}"]
clusterDomain: cluster.local
# Empty: the machine's own name servers are not the pods' business.
resolvConf: "{resolv}"
podLogsDir: /var/log/pods
volumePluginDir: "{plugins}"
containerRuntimeEndpoint: unix://{SOCKET}
evictionHard: {{memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}}
imageGCHighThresholdPercent: 100
kubeAPIQPS: 200
kubeAPIBurst: 400
"#,
        authority = authority.display(),
        certificate = files.text("kubelet.crt"),
        key = files.text("kubelet.key"),
        resolv = files.text("resolv.conf"),
        plugins = files.text("volume-plugins"),
    )
}

/// What containerd is told of a registry that speaks without TLS: `hosts.toml` in the registry's folder.
pub(crate) fn plain_registry(host: &str) -> String {
    format!("server = \"http://{host}\"\n")
}

/// kube-proxy's settings. The kernel's connection table is the machine's, so its size is left alone.
pub(crate) fn proxy(files: &Files, place: Place<'_>) -> String {
    format!(
        r#"apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {{kubeconfig: "{kubeconfig}"}}
clusterCIDR: {range}
bindAddress: {address}
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
hostnameOverride: {name}
oomScoreAdj: 0
conntrack: {{maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}
nftables: {{minSyncPeriod: 100ms}}
"#,
        kubeconfig = files.text("proxy.kubeconfig"),
        range = place.network.range(),
        address = place.address(),
        name = place.name(),
    )
}

/// The name server's settings: the cluster's names and no others.
pub(crate) fn name_server(files: &Files, address: Ipv4Addr) -> String {
    format!(
        "cluster.local:53 in-addr.arpa:53 {{
    bind {address}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
    # Short, so that a test which asks too early does not wait for its own answer to grow old.
    cache 1
}}

# Any other name does not exist, and is said not to at once.
.:53 {{
    bind {address}
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
",
        kubeconfig = files.text("dns.kubeconfig"),
    )
}
