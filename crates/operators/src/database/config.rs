//! The server's files: `postgresql.conf`, `pg_hba.conf`, the bootstrap script and the guard's word.
//!
//! Must not hold a secret: the ConfigMap is readable by more people than the Secrets are.

use std::collections::BTreeMap;
use std::fmt::Write;

use phased::child::Desired;
use phased::digest;
use serde_json::json;

use super::blueprint::Blueprint;
use super::parameters::quoted;
use super::{record, sql};

/// Folder where the files are mounted.
pub const FOLDER: &str = "/etc/steadfast";
/// Folder of the server's socket.
pub const SOCKET_FOLDER: &str = "/var/run/postgresql";
/// Key with the recorded system identifier, so that a lost status cannot lose it.
pub const IDENTIFIER_KEY: &str = "system-identifier";
/// Key with the server's settings.
pub const SETTINGS_KEY: &str = "postgresql.conf";
/// Setting by which the server tells whose it is (fault catalogue PG-24).
pub const IDENTITY_SETTING: &str = "steadfast.resource_uid";
/// Setting by which a standby tells that its guard raised settings above those of the file.
pub const RAISED_SETTING: &str = "steadfast.raised";
/// Setting by which the server tells which configuration it runs with.
pub const DIGEST_SETTING: &str = "steadfast.config";

/// Who may log in, and how (reference/database.md section 2, `Verifying`). Over the network, the
/// loopback address included, only by password. The socket lies in a volume of the pod that only
/// the server's container mounts; the image's own bootstrap and a person with `exec` use it.
/// The word `all` does not cover replication.
const HOST_AUTHENTICATION: &str = "\
# Written by steadfast; edits are taken back.
# TYPE  DATABASE     USER                   ADDRESS  METHOD
local   all          postgres                        trust
local   all          all                             scram-sha-256
host    replication  steadfast_replication  all      scram-sha-256
host    all          all                    all      scram-sha-256
";

/// Key with the connection string of standbys.
const PRIMARY_KEY: &str = "primary";
/// Beginning of the keys that ask for a standby to be seeded anew; its ordinal follows.
const RESEED_PREFIX: &str = "reseed-";
/// Where a standby's guard puts what only this standby needs.
const STANDBY_FILE: &str = "/tmp/standby.conf";
/// Where a standby's guard puts the password of replication.
const PASSWORD_FILE: &str = "/tmp/steadfast.pgpass";
/// Settings that a standby must not have lower than its primary, and PostgreSQL's defaults but for
/// room for sixteen servers. They always stand in the file, as digits, for the guard to compare.
pub const ORDERED: [(&str, &str); 5] = [
    ("max_connections", "100"),
    ("max_locks_per_transaction", "64"),
    ("max_prepared_transactions", "0"),
    ("max_wal_senders", "20"),
    ("max_worker_processes", "8"),
];
/// What standbys need besides, unless `spec.parameters` says otherwise.
const FOR_STANDBYS: [(&str, &str); 3] =
    [("max_replication_slots", "20"), ("max_slot_wal_keep_size", "1GB"), ("wal_level", "replica")];

/// The ConfigMap.
pub fn config_map(blueprint: &Blueprint) -> Desired {
    let bootstrap = if blueprint.may_bootstrap() { "allowed" } else { "refused" };
    let mut data = BTreeMap::from([
        (SETTINGS_KEY, server_settings(blueprint)),
        ("pg_hba.conf", HOST_AUTHENTICATION.to_owned()),
        ("10-steadfast.sql", sql::bootstrap_script()),
        ("bootstrap", bootstrap.to_owned()),
        (record::DATABASE.key, blueprint.valid.database.clone()),
        (record::USERNAME.key, blueprint.valid.username.clone()),
        (record::IDENTITY.key, blueprint.identity.clone()),
        (record::IMAGE.key, blueprint.valid.image.clone()),
        (PRIMARY_KEY, primary(blueprint)),
    ])
    .into_iter()
    .map(|(key, text)| (key.to_owned(), text))
    .collect::<BTreeMap<String, String>>();
    if let Some(identifier) = &blueprint.identifier {
        data.insert(IDENTIFIER_KEY.to_owned(), identifier.clone());
    }
    for (ordinal, pod) in &blueprint.reseed {
        data.insert(reseed_key(*ordinal), pod.clone());
    }
    blueprint.owned(blueprint.names.config_map(), json!({"data": data}))
}

/// Key by which a standby is asked to be seeded anew.
pub fn reseed_key(ordinal: u32) -> String {
    format!("{RESEED_PREFIX}{ordinal}")
}

/// How standbys reach the primary. No name of their own: the server's `cluster_name` is that.
fn primary(blueprint: &Blueprint) -> String {
    let (host, port) = (blueprint.names.pod_host(0), super::names::PORT);
    let role = super::secrets::REPLICATION_ROLE;
    // A copy whose peer has gone silent must end.
    let patience =
        "connect_timeout=10 keepalives_idle=30 keepalives_interval=10 keepalives_count=3";
    format!("host={host} port={port} user={role} passfile={PASSWORD_FILE} {patience}")
}

/// Digest of everything that needs a restart to take effect.
pub fn restart_digest(blueprint: &Blueprint) -> String {
    digest::of(&json!([settings(blueprint), HOST_AUTHENTICATION]))
}

/// `postgresql.conf`: the settings, then what verification reads back.
pub(super) fn server_settings(blueprint: &Blueprint) -> String {
    let mut text = String::from("# Written by steadfast; edits are taken back.\n");
    text.push_str(&settings(blueprint));
    let digest = restart_digest(blueprint);
    for (name, value) in [(IDENTITY_SETTING, &blueprint.identity), (DIGEST_SETTING, &digest)] {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} = {}", quoted(value));
    }
    let _ = writeln!(text, "include_if_exists = {}", quoted(STANDBY_FILE));
    text
}

/// Whether one of the settings that a standby must not have lower than its primary is lower in the second
/// file than in the first.
pub(super) fn is_lowered(before: &str, after: &str) -> bool {
    let number = |file: &str, name: &str| -> Option<u64> {
        let mut lines = file.lines().filter_map(|line| line.split_once(" = "));
        let (_, value) = lines.find(|(setting, _)| *setting == name)?;
        value.trim_matches('\'').parse().ok()
    };
    ORDERED.iter().any(|(name, _)| number(after, name) < number(before, name))
}

/// The settings in the order of their names; the operator's own cannot be replaced, for
/// [`super::valid`] refuses them.
fn settings(blueprint: &Blueprint) -> String {
    let defaults = ORDERED.into_iter().chain(FOR_STANDBYS);
    let mut all: BTreeMap<String, String> =
        defaults.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    all.extend(blueprint.valid.parameters.clone());
    let own = [
        ("hba_file", format!("{FOLDER}/pg_hba.conf")),
        ("hot_standby", "on".to_owned()),
        ("listen_addresses", "*".to_owned()),
        ("password_encryption", "scram-sha-256".to_owned()),
        ("port", super::names::PORT.to_string()),
        ("primary_conninfo", primary(blueprint)),
        ("unix_socket_directories", SOCKET_FOLDER.to_owned()),
    ];
    all.extend(own.map(|(name, value)| (name.to_owned(), value)));
    all.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name} = {}", quoted(value));
        text
    })
}
