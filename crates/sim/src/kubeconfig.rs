//! A kubeconfig for a simulated server on this machine.

/// The kubeconfig of a server at `address`, for example `127.0.0.1:8001`.
pub fn kubeconfig(address: std::net::SocketAddr) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: simulated\n  cluster:\n    server: http://{address}\nusers:\n- name: simulated\n  user: {{}}\ncontexts:\n- name: simulated\n  context:\n    cluster: simulated\n    user: simulated\n    namespace: default\ncurrent-context: simulated\n"
    )
}
