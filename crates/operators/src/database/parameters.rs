//! Which settings of `postgresql.conf` a Database may set, and how their values are written.
//!
//! The refused settings are data, since the documentation lists them too.

use std::collections::BTreeMap;

use super::config::ORDERED;

/// A setting that the operator refuses, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Name of the setting.
    pub name: &'static str,
    /// Why it is refused and what to use instead.
    pub why: &'static str,
}

const fn refused(name: &'static str, why: &'static str) -> Refused {
    Refused { name, why }
}

const OWNED: &str = "the operator's Services, probes and checks rely on its own value";
const LAYOUT: &str = "the operator lays out files and folders itself";
const STANDBYS: &str = "the operator sets it where standbys need it";
const ARCHIVING: &str = "it runs commands inside the pod; archiving is not offered by this release";
const COMMANDS: &str = "it runs commands inside the pod";
const LIBRARIES: &str = "it loads code into the server, and a wrong name keeps it from starting";

/// The settings that `spec.parameters` may not hold (reference/database.md section 1).
pub static REFUSED: &[Refused] = &[
    refused("listen_addresses", OWNED),
    refused("port", OWNED),
    refused("unix_socket_directories", OWNED),
    refused("data_directory", LAYOUT),
    refused("config_file", LAYOUT),
    refused("hba_file", LAYOUT),
    refused("ident_file", LAYOUT),
    refused("external_pid_file", LAYOUT),
    refused("primary_conninfo", STANDBYS),
    refused("primary_slot_name", STANDBYS),
    refused("hot_standby", STANDBYS),
    refused("restore_command", STANDBYS),
    refused("recovery_end_command", COMMANDS),
    refused("archive_cleanup_command", COMMANDS),
    refused("ssl_passphrase_command", COMMANDS),
    refused("archive_mode", ARCHIVING),
    refused("archive_command", ARCHIVING),
    refused("archive_library", ARCHIVING),
    refused("shared_preload_libraries", LIBRARIES),
    refused("session_preload_libraries", LIBRARIES),
    refused("local_preload_libraries", LIBRARIES),
    refused("dynamic_library_path", LIBRARIES),
    refused("jit_provider", LIBRARIES),
    refused("default_transaction_read_only", "a server that takes no writes is never Ready"),
    refused("unix_socket_group", OWNED),
    refused("unix_socket_permissions", OWNED),
    refused("password_encryption", "logins are verified by scram-sha-256"),
    refused("cluster_name", OWNED),
];

/// Prefix of settings that the operator puts in for its own checks.
const OWN_PREFIX: &str = "steadfast.";
/// Longest value, in bytes.
const VALUE_LIMIT: usize = 4096;

/// Why a setting is refused; the sentence follows the path of the field.
pub fn refusal(name: &str, value: &str) -> Option<String> {
    if !is_name(name) {
        return Some(
            "is not the name of a setting: lower-case letters, digits and '_', with dots between the parts"
                .to_owned(),
        );
    }
    if let Some(refused) = REFUSED.iter().find(|r| r.name == name) {
        return Some(format!("is not yours to set: {}; remove it", refused.why));
    }
    if name.starts_with(OWN_PREFIX)
        || matches!(name, "include" | "include_dir" | "include_if_exists")
    {
        return Some("is not yours to set; remove it".to_owned());
    }
    if ORDERED.iter().any(|(ordered, _)| *ordered == name) && whole_number(value).is_none() {
        return Some(format!("{value:?} must be a whole number in digits; write it so"));
    }
    if value.contains('\0') {
        return Some("holds a NUL character, which the server cannot read; remove it".to_owned());
    }
    (value.len() > VALUE_LIMIT).then(|| format!("is longer than {VALUE_LIMIT} bytes; shorten it"))
}

/// A number as it is compared with another one by a shell: digits, without a zero in front.
fn whole_number(value: &str) -> Option<u32> {
    let number: u32 = value.parse().ok()?;
    (number.to_string() == value).then_some(number)
}

/// Why settings cannot be in force with so many servers: name of the setting and what is wrong.
pub fn unfit(parameters: &BTreeMap<String, String>, servers: u32) -> Vec<(&'static str, String)> {
    if servers < 2 {
        return Vec::new();
    }
    let mut all = Vec::new();
    if parameters.get("wal_level").is_some_and(|level| level.eq_ignore_ascii_case("minimal")) {
        let message =
            "minimal leaves nothing for standbys; write replica, or set spec.replicas to 1";
        all.push(("wal_level", message.to_owned()));
    }
    // A copy takes two senders besides those of the standbys that stream.
    for (name, least) in [("max_wal_senders", servers + 1), ("max_replication_slots", servers - 1)]
    {
        let set = parameters.get(name).and_then(|value| whole_number(value));
        if set.is_some_and(|number| number < least) {
            all.push((name, format!("must be at least {least} for {servers} servers; raise it")));
        }
    }
    all
}

fn is_name(name: &str) -> bool {
    name.len() <= 127
        && name.split('.').all(|part| {
            let mut bytes = part.bytes();
            bytes.next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_')
                && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        })
}

/// A value as `postgresql.conf` reads it back byte for byte: quotes doubled, the backslash and
/// control characters escaped (fault catalogue PG-13).
pub fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('\'');
    for c in value.chars() {
        match c {
            '\'' => text.push_str("''"),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            other => text.push(other),
        }
    }
    text.push('\'');
    text
}
