//! Login: who may open a session, by host rule, password, role and database.
//!
//! Must not run statements.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use tokio::io::DuplexStream;

use super::{Block, State, flush};
use crate::external::postgres::conf::Method;
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::run;
use crate::external::postgres::scram::{Exchange, Verifier};
use crate::external::postgres::server::{Seen, Server};
use crate::external::postgres::wire::{self, Out};

pub(super) enum Login {
    Lost(io::Error),
    Refused(Refusal),
}

impl From<io::Error> for Login {
    fn from(error: io::Error) -> Login {
        Login::Lost(error)
    }
}

impl From<Refusal> for Login {
    fn from(refusal: Refusal) -> Login {
        Login::Refused(refusal)
    }
}

pub(super) async fn login(
    server: &Arc<Server>,
    stream: &mut DuplexStream,
    out: &mut Out,
    parameters: Vec<(String, String)>,
    address: &str,
) -> Result<State, Login> {
    let mut startup = BTreeMap::new();
    let (mut user, mut database) = (String::new(), String::new());
    let mut replication = String::new();
    for (name, value) in parameters {
        match name.as_str() {
            "user" => user = value,
            "database" => database = value,
            "options" => startup.extend(options(&value)),
            "replication" => replication = value,
            _ => {
                startup.insert(name.to_lowercase(), value);
            }
        }
    }
    if user.is_empty() {
        let message = "no PostgreSQL user name specified in startup packet";
        return Err(Refusal::new("28000", message).into());
    }
    if database.is_empty() {
        database.clone_from(&user);
    }
    if server.condition().starting {
        return Err(Refusal::new("57P03", "the database system is starting up").into());
    }
    if server.closed() {
        let message = "the database system is not accepting connections";
        let refusal = Refusal::new("57P03", message).detail("Hot standby mode is disabled.");
        return Err(refusal.into());
    }
    if !matches!(replication.as_str(), "" | "false" | "off" | "no" | "0") {
        let message = "the model speaks no replication commands; its servers stream by themselves";
        return Err(Refusal::new("0A000", message).into());
    }
    authenticate(server, stream, out, (&user, &database, address)).await?;
    admit(server, &user, &database)?;
    let pid = i32::try_from(server.random() % 30_000).unwrap_or(0) + 100;
    let application = startup.get("application_name").cloned().unwrap_or_default();
    let mut state = State {
        server: server.clone(),
        user: user.clone(),
        database: database.clone(),
        pid,
        startup: BTreeMap::new(),
        settings: BTreeMap::new(),
        local: BTreeMap::new(),
        temporary: BTreeMap::new(),
        block: Block::None,
        read_only: None,
        undo: Vec::new(),
        savepoints: Vec::new(),
    };
    for (name, value) in startup {
        let kept = run::check_setting(&state, &name, &value)?;
        state.startup.insert(kept.0, kept.1);
    }
    server.enter(Seen { pid, database, user, application, address: address.to_owned() });
    Ok(state)
}

/// `-c name=value` words, with backslashes before blanks inside values.
fn options(text: &str) -> Vec<(String, String)> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.extend(chars.next()),
            c if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    let mut found = Vec::new();
    let mut expected = false;
    for word in words.iter().filter(|word| !word.is_empty()) {
        let pair = match (expected, word.strip_prefix("-c"), word.strip_prefix("--")) {
            (true, _, _) => Some(word.as_str()),
            (false, Some(""), _) => None,
            (false, Some(rest), _) => Some(rest),
            (false, None, rest) => rest,
        };
        expected = pair.is_none();
        let pair = pair.and_then(|pair| pair.split_once('='));
        found.extend(pair.map(|(name, value)| (name.replace('-', "_"), value.to_owned())));
    }
    found
}

async fn authenticate(
    server: &Arc<Server>,
    stream: &mut DuplexStream,
    out: &mut Out,
    (user, database, address): (&str, &str, &str),
) -> Result<(), Login> {
    let whom = match address {
        "" => format!("host \"[local]\", user \"{user}\", database \"{database}\""),
        host => format!("host \"{host}\", user \"{user}\", database \"{database}\""),
    };
    let Some(rule) = server.rule(user, database, address) else {
        let message = format!("no pg_hba.conf entry for {whom}, no encryption");
        return Err(Refusal::new("28000", &message).into());
    };
    let (verifier, exists) = {
        let data = server.data();
        let role = data.roles.get(user);
        let expired = role.and_then(|role| role.valid_until.as_deref()).is_some_and(|until| {
            until.replace(' ', "T").parse::<jiff::Timestamp>().is_ok_and(|at| at < server.now())
        });
        let verifier = role.and_then(|role| role.verifier.clone()).filter(|_| !expired);
        (verifier, role.is_some())
    };
    match rule.method {
        Method::Trust => {}
        Method::Peer if user == "postgres" => {}
        Method::Peer => {
            let message = format!("Peer authentication failed for user \"{user}\"");
            return Err(Refusal::new("28000", &message).into());
        }
        Method::Reject => {
            let message = format!("pg_hba.conf rejects connection for {whom}, no encryption");
            return Err(Refusal::new("28000", &message).into());
        }
        Method::Scram | Method::Md5 | Method::Password => {
            scram(server, stream, out, user, verifier).await?;
        }
    }
    if !exists {
        return Err(Refusal::new("28000", &format!("role \"{user}\" does not exist")).into());
    }
    out.authentication(0, &[]);
    Ok(())
}

async fn scram(
    server: &Arc<Server>,
    stream: &mut DuplexStream,
    out: &mut Out,
    user: &str,
    verifier: Option<Verifier>,
) -> Result<(), Login> {
    let failed =
        || Refusal::new("28P01", &format!("password authentication failed for user \"{user}\""));
    let known = verifier.is_some();
    // An unknown role goes through the same exchange, so that it can't be told from a wrong password.
    let salt = u128::from(server.random()).to_be_bytes();
    let verifier = verifier.unwrap_or_else(|| Verifier::of("no such password", salt));
    out.authentication(10, b"SCRAM-SHA-256\0\0");
    flush(stream, out).await?;
    let (kind, body) = wire::message(stream).await?;
    if kind != b'p' {
        return Err(failed().into());
    }
    let (_, rest) = wire::text(&body);
    let first = String::from_utf8_lossy(rest.get(4..).unwrap_or(&[])).into_owned();
    let nonce = format!("{:016x}{:016x}", server.random(), server.random());
    let exchange = Exchange::begin(verifier, &first, &nonce)
        .ok_or_else(|| Refusal::new("08P01", "malformed SCRAM message"))?;
    out.authentication(11, exchange.server_first().as_bytes());
    flush(stream, out).await?;
    let (kind, body) = wire::message(stream).await?;
    let proof = String::from_utf8_lossy(&body).into_owned();
    match exchange.finish(&proof).filter(|_| kind == b'p' && known) {
        Some(answer) => out.authentication(12, answer.as_bytes()),
        None => return Err(failed().into()),
    }
    Ok(())
}

/// What is asked after the password: the role may log in, the database exists and lets it in.
fn admit(server: &Server, user: &str, database: &str) -> Result<(), Refusal> {
    let most = server.setting("max_connections").and_then(|text| text.parse().ok()).unwrap_or(100);
    let sessions = server.sessions();
    if sessions.len() >= most {
        return Err(Refusal::new("53300", "sorry, too many clients already"));
    }
    let data = server.data();
    let role = data.roles.get(user);
    if role.is_some_and(|role| !role.login) {
        let message = format!("role \"{user}\" is not permitted to log in");
        return Err(Refusal::new("28000", &message));
    }
    let limit = role.map_or(-1, |role| role.connection_limit);
    let same = i64::try_from(sessions.iter().filter(|one| one.user == user).count()).unwrap_or(0);
    if limit >= 0 && same >= limit && !data.is_superuser(user) {
        return Err(Refusal::new("53300", &format!("too many connections for role \"{user}\"")));
    }
    let Some(found) = data.databases.get(database) else {
        return Err(Refusal::new("3D000", &format!("database \"{database}\" does not exist")));
    };
    if !found.allow_connections {
        let message = format!("database \"{database}\" is not currently accepting connections");
        return Err(Refusal::new("55000", &message));
    }
    if !data.may(user, found, 'c') {
        let message = format!("permission denied for database \"{database}\"");
        return Err(Refusal::new("42501", &message).detail("User does not have CONNECT privilege."));
    }
    let inside = sessions.iter().filter(|one| one.database == database).count();
    let inside = i64::try_from(inside).unwrap_or(0);
    if found.connection_limit >= 0 && inside >= found.connection_limit && !data.is_superuser(user) {
        let message = format!("too many connections for database \"{database}\"");
        return Err(Refusal::new("53300", &message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startup_options_are_read() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let cases = [
            ("-c a=1 -c b.c=2", vec![pair("a", "1"), pair("b.c", "2")]),
            ("-ca=1 --statement-timeout=5", vec![pair("a", "1"), pair("statement_timeout", "5")]),
            ("-c a=x\\ y", vec![pair("a", "x y")]),
        ];
        for (text, expected) in cases {
            assert_eq!(options(text), expected, "{text}");
        }
    }
}
