//! Ways into a control plane: who is asking, and the kubeconfig that says so.

use std::net::SocketAddrV4;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::certificates::{Authority, Credential};

/// Who a client is to the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// Member of `system:masters`: may do everything.
    Admin,
    /// A user. With one group or none it has a client certificate of its own; with more, the admin
    /// impersonates it, which the API server authorises in the same way.
    User {
        /// User name, such as `ann`.
        name: String,
        /// Groups; `system:authenticated` is always added by the server.
        groups: Vec<String>,
    },
    /// A service account that exists, by a real token of one hour.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl Identity {
    /// A user and its groups.
    pub fn user(name: &str, groups: &[&str]) -> Self {
        Self::User {
            name: name.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// The `user` part of a kubeconfig. Has no `Debug`: it holds a secret.
pub(crate) struct Login(String);

impl Login {
    /// The admin's.
    pub(crate) fn admin(authority: &Authority) -> Result<Self> {
        Ok(Self::certificate(&authority.client("steadfast-testbed-admin", Some("system:masters"))?))
    }

    /// A user's, by certificate or by impersonation.
    pub(crate) fn user(authority: &Authority, name: &str, groups: &[String]) -> Result<Self> {
        if groups.len() <= 1 {
            return Ok(Self::certificate(
                &authority.client(name, groups.first().map(String::as_str))?,
            ));
        }
        // JSON strings and lists are valid YAML, so quoting is right for any name.
        let name = serde_json::to_string(name).context("quote the user name")?;
        let groups = serde_json::to_string(groups).context("quote the groups")?;
        let Self(admin) = Self::admin(authority)?;
        Ok(Self(format!("{admin}    as: {name}\n    as-groups: {groups}\n")))
    }

    /// A bearer token's.
    pub(crate) fn token(token: &str) -> Self {
        Self(format!("    token: {token}\n"))
    }

    fn certificate(credential: &Credential) -> Self {
        let certificate = STANDARD.encode(&credential.certificate);
        let key = STANDARD.encode(&credential.key);
        Self(format!("    client-certificate-data: {certificate}\n    client-key-data: {key}\n"))
    }
}

/// The text of a kubeconfig. It holds a secret: never log it.
pub(crate) fn kubeconfig(
    authority: &Authority,
    server: SocketAddrV4,
    Login(login): &Login,
) -> String {
    let authority = STANDARD.encode(authority.certificate());
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: testbed
  cluster:
    server: https://{server}
    certificate-authority-data: {authority}
users:
- name: testbed
  user:
{login}contexts:
- name: testbed
  context:
    cluster: testbed
    user: testbed
current-context: testbed
"
    )
}
