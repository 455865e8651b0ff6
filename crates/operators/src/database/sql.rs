//! Statements that the operator sends, and the quoting that keeps names names.
//!
//! Names are quoted as identifiers or literals and never pasted in; passwords are places that the
//! runner fills with a verifier. Every object is qualified, so that nothing that an application
//! planted in a search path is ever called (fault catalogue PG-11, PG-15).

use phased::fact::{SecretKey, SqlPiece, SqlText};

use super::config::{DIGEST_SETTING, IDENTITY_SETTING, RAISED_SETTING};
use super::secrets::{REPLICATION_ROLE, SUPERUSER_ROLE};

/// Comment on the database `postgres` that the bootstrap leaves as its last act.
pub const BOOTSTRAP_MARK: &str = "steadfast bootstrap complete";

/// An identifier in quotes.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A literal. With a backslash in it the escape form is used, so that the meaning does not hang on
/// `standard_conforming_strings`.
pub fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}

/// What the bootstrap of the image runs as its last script.
pub fn bootstrap_script() -> String {
    let mut script = String::from("-- Written by steadfast; runs once, when the data are made.\n");
    for statement in bootstrap() {
        script.push_str(&statement);
        script.push_str(";\n");
    }
    script
}

/// The same as single statements, for a bootstrap that was interrupted.
pub fn bootstrap() -> [String; 2] {
    [
        "REVOKE ALL ON DATABASE postgres FROM PUBLIC".to_owned(),
        format!("COMMENT ON DATABASE postgres IS {}", literal(BOOTSTRAP_MARK)),
    ]
}

/// Who the server is and how it stands: one row of seven columns.
pub fn identity() -> String {
    format!(
        "SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()), \
         pg_catalog.current_setting('{IDENTITY_SETTING}', true), \
         pg_catalog.current_setting('{DIGEST_SETTING}', true), \
         pg_catalog.current_setting('server_version_num'), \
         pg_catalog.pg_is_in_recovery(), \
         pg_catalog.current_setting('server_version'), \
         pg_catalog.current_setting('default_transaction_read_only')"
    )
}

/// Owner of a database: one row of one column, or none.
pub fn database_owner(database: &str) -> String {
    format!(
        "SELECT pg_catalog.pg_get_userbyid(datdba) FROM pg_catalog.pg_database WHERE datname = {}",
        literal(database)
    )
}

/// The bootstrap's mark: one row of one column.
pub fn bootstrap_mark() -> String {
    "SELECT pg_catalog.shobj_description(oid, 'pg_database') \
     FROM pg_catalog.pg_database WHERE datname = 'postgres'"
        .to_owned()
}

/// Whether a role exists, may log in, and how many connections it may have: one row of two
/// columns, or none.
pub fn role(name: &str) -> String {
    format!(
        "SELECT rolcanlogin, rolconnlimit FROM pg_catalog.pg_roles WHERE rolname = {}",
        literal(name)
    )
}

/// The role of standbys: one row of two columns, or none.
pub fn replication_role() -> String {
    format!(
        "SELECT rolcanlogin, rolreplication FROM pg_catalog.pg_roles WHERE rolname = {}",
        literal(REPLICATION_ROLE)
    )
}

/// Physical slots: a row of three columns each.
pub fn slots() -> String {
    "SELECT slot_name, active, wal_status FROM pg_catalog.pg_replication_slots \
     WHERE slot_type = 'physical'"
        .to_owned()
}

/// Who receives the log: a row of two columns each.
pub fn senders() -> String {
    "SELECT application_name, state FROM pg_catalog.pg_stat_replication".to_owned()
}

/// Whether a standby runs with settings that its guard raised, and whether its replay is paused: one
/// row of two columns. A server that is no standby refuses it.
pub fn standby() -> String {
    format!(
        "SELECT pg_catalog.current_setting('{RAISED_SETTING}', true), \
         pg_catalog.pg_is_wal_replay_paused()"
    )
}

/// Recorded and actual collation version (PostgreSQL 15 and newer): one row of two columns.
pub fn collation() -> String {
    "SELECT datcollversion, pg_catalog.pg_database_collation_actual_version(oid) \
     FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()"
        .to_owned()
}

/// What the round-trip writes and must read back.
pub const ROUND_TRIP_VALUE: &str = "steadfast";

/// A write and a read in a table that only this session sees, and that goes with its transaction.
pub fn round_trip() -> [String; 3] {
    [
        "CREATE TEMPORARY TABLE steadfast_probe (value pg_catalog.text) ON COMMIT DROP".to_owned(),
        format!("INSERT INTO pg_temp.steadfast_probe VALUES ({})", literal(ROUND_TRIP_VALUE)),
        "SELECT value FROM pg_temp.steadfast_probe".to_owned(),
    ]
}

/// Creates a role that may log in.
pub fn create_role(name: &str, password: SecretKey) -> SqlText {
    with_password(&format!("CREATE ROLE {} LOGIN PASSWORD ", identifier(name)), password)
}

/// Sets a role's password, and takes back whatever else keeps it from logging in: a missing right,
/// an end of its validity, a limit of its connections.
pub fn set_password(name: &str, password: SecretKey) -> SqlText {
    let lifted = "LOGIN VALID UNTIL 'infinity' CONNECTION LIMIT -1";
    with_password(&format!("ALTER ROLE {} {lifted} PASSWORD ", identifier(name)), password)
}

/// What `psql` is told to let the superuser in again: nothing happens in a server that does not hold
/// the data of this identifier with this Database's configuration, or that is a standby. Each statement
/// is one line, and the last line ends the program.
pub fn let_superuser_in(identifier: &str, identity: &str, password: SecretKey) -> Vec<SqlText> {
    let ours = format!(
        "SELECT (CASE WHEN (SELECT system_identifier::pg_catalog.text \
         FROM pg_catalog.pg_control_system()) = {} \
         AND pg_catalog.current_setting('{IDENTITY_SETTING}', true) = {} \
         AND NOT pg_catalog.pg_is_in_recovery() \
         THEN '1' ELSE 'another server' END)::pg_catalog.int4;",
        literal(identifier),
        literal(identity)
    );
    let mut alter = set_password(SUPERUSER_ROLE, password);
    alter.0.push(SqlPiece::Text(";".to_owned()));
    let bounds = ["SET search_path = pg_catalog;", "SET statement_timeout = 5000;"];
    let mut lines: Vec<SqlText> = bounds.map(SqlText::plain).into();
    lines.extend([SqlText::plain("SET lock_timeout = 5000;"), SqlText::plain(ours), alter]);
    lines.push(SqlText::plain("\\q"));
    lines
}

/// Creates the role of standbys.
pub fn create_replication_role(password: SecretKey) -> SqlText {
    let role = identifier(REPLICATION_ROLE);
    with_password(&format!("CREATE ROLE {role} LOGIN REPLICATION PASSWORD "), password)
}

/// Sets the password of the role of standbys, and what else it needs.
pub fn set_replication_password(password: SecretKey) -> SqlText {
    let lifted = "LOGIN REPLICATION VALID UNTIL 'infinity' CONNECTION LIMIT -1";
    let role = identifier(REPLICATION_ROLE);
    with_password(&format!("ALTER ROLE {role} {lifted} PASSWORD "), password)
}

/// Creates a slot, which reserves nothing before its standby first connects.
pub fn create_slot(ordinal: u32) -> String {
    let slot = literal(&super::names::slot(ordinal));
    format!("SELECT pg_catalog.pg_create_physical_replication_slot({slot})")
}

/// Drops a slot.
pub fn drop_slot(ordinal: u32) -> String {
    let slot = literal(&super::names::slot(ordinal));
    format!("SELECT pg_catalog.pg_drop_replication_slot({slot})")
}

fn with_password(text: &str, password: SecretKey) -> SqlText {
    SqlText(vec![SqlPiece::Text(text.to_owned()), SqlPiece::Verifier(password)])
}

/// Creates a database.
pub fn create_database(name: &str, owner: &str) -> String {
    format!("CREATE DATABASE {} OWNER {}", identifier(name), identifier(owner))
}

/// Hands a database over.
pub fn set_owner(name: &str, owner: &str) -> String {
    format!("ALTER DATABASE {} OWNER TO {}", identifier(name), identifier(owner))
}

/// Lets the owner connect, in case the right was taken away.
pub fn grant_connect(name: &str, owner: &str) -> String {
    format!("GRANT CONNECT, TEMPORARY ON DATABASE {} TO {}", identifier(name), identifier(owner))
}
