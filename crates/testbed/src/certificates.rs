//! The control plane's keys: one certificate authority, the server's certificate, client certificates, and
//! the key pair of service-account tokens (reference/real-cluster.md section 2).
//!
//! Keys are made for one control plane and die with its folder. No key may reach a log or an error text.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use std::io::Write;

use crate::layout::Layout;

/// The certificate authority of one control plane.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key, as PEM. Has no `Debug`, so that the key cannot be printed by accident.
pub(crate) struct Credential {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    /// A new authority with a key of its own.
    pub(crate) fn generate() -> Result<Self> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, "steadfast-testbed");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().context("generate the authority's key")?;
        let issuer = CertifiedIssuer::self_signed(parameters, key).context("sign the authority")?;
        Ok(Self { issuer })
    }

    /// The authority's own certificate, as PEM.
    pub(crate) fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A client certificate: `user` becomes the user name, `group` the one group.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Credential> {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            parameters.distinguished_name.push(DnType::OrganizationName, group);
        }
        self.sign(parameters, ExtendedKeyUsagePurpose::ClientAuth)
            .with_context(|| format!("make a client certificate for user {user:?}"))
    }

    /// A server certificate for these host names and addresses.
    pub(crate) fn server(&self, names: &[&str]) -> Result<Credential> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).context("name the API server")?;
        parameters.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        self.sign(parameters, ExtendedKeyUsagePurpose::ServerAuth)
            .context("make the API server's certificate")
    }

    fn sign(
        &self,
        mut parameters: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Credential> {
        parameters.extended_key_usages = vec![usage];
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        Ok(Credential { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// Names under which clients reach the API server, beside the address that it listens at; 10.96.0.1 is the
/// first of the service range.
const SERVER_NAMES: [&str; 6] = [
    "localhost",
    "127.0.0.1",
    "10.96.0.1",
    "kubernetes.default.svc",
    "kubernetes.default",
    "kubernetes.default.svc.cluster.local",
];

/// Writes every key file that the programs are started with into the control plane's folder.
pub(crate) fn write_files(authority: &Authority, layout: &Layout, address: Ipv4Addr) -> Result<()> {
    let write = |name: &str, credential: &Credential| -> Result<()> {
        write_private(&layout.certificate(name), &credential.certificate)?;
        write_private(&layout.key(name), &credential.key)
    };
    // The controllers sign client certificates with the authority's key when a CertificateSigningRequest is approved.
    write(
        "authority",
        &Credential {
            certificate: authority.certificate(),
            key: authority.issuer.key().serialize_pem(),
        },
    )?;
    let address = address.to_string();
    let names: Vec<&str> = SERVER_NAMES.into_iter().chain([address.as_str()]).collect();
    write("server", &authority.server(&names)?)?;
    write("kubelet-client", &authority.client("kube-apiserver", Some("system:masters"))?)?;
    let tokens = KeyPair::generate().context("generate the key of service-account tokens")?;
    write_private(&layout.certificate("service-account"), &tokens.public_key_pem())?;
    write_private(&layout.key("service-account"), &tokens.serialize_pem())
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("write {}", path.display()))
}
