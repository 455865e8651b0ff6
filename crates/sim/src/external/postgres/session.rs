//! One session: login, then queries until the client or the server ends it.
//!
//! Must not decide what statements do; `run` does.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

use super::conf::Method;
use super::data::Data;
use super::parse;
use super::refusal::Refusal;
use super::run::{self, Undo};
use super::scram::{Exchange, Verifier};
use super::server::{Seen, Server};
use super::settings;
use super::wire::{self, Opening, Out};

/// A table of this session only.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Temporary {
    pub(super) table: super::data::Table,
    pub(super) drop_on_commit: bool,
}

/// Whether a transaction block is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    None,
    Open,
    Failed,
}

/// What a session knows of itself.
pub(super) struct State {
    pub(super) server: Arc<Server>,
    pub(super) user: String,
    pub(super) database: String,
    pub(super) pid: i32,
    pub(super) startup: BTreeMap<String, String>,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) local: BTreeMap<String, String>,
    pub(super) temporary: BTreeMap<String, Temporary>,
    pub(super) block: Block,
    pub(super) read_only: Option<bool>,
    pub(super) undo: Vec<Undo>,
    pub(super) savepoints: Vec<(String, usize)>,
}

impl State {
    /// A setting as kept: the innermost layer that has it.
    pub(super) fn kept(&self, data: &Data, name: &str) -> Option<String> {
        let version = self.server.version;
        let fixed = match name {
            "server_version" => Some(version.shown()),
            "server_version_num" => Some(format!("{}{:04}", version.major, version.minor)),
            "server_encoding" => Some("UTF8".to_owned()),
            "is_superuser" => Some(switch(data.is_superuser(&self.user))),
            "session_authorization" => Some(self.user.clone()),
            "in_hot_standby" => Some(switch(self.server.standby())),
            "transaction_read_only" => Some(switch(self.is_read_only(data))),
            _ => None,
        };
        if fixed.is_some() {
            return fixed;
        }
        let role = data.roles.get(&self.user).and_then(|role| role.settings.get(name));
        let database = data.databases.get(&self.database).and_then(|one| one.settings.get(name));
        let own = self.local.get(name).or_else(|| self.settings.get(name));
        let layers = own.or_else(|| self.startup.get(name)).or(role).or(database).cloned();
        let forced = (name == "default_transaction_read_only" && self.server.condition().read_only)
            .then(|| switch(true));
        layers
            .or(forced)
            .or_else(|| self.server.setting(name))
            .or_else(|| settings::find(name, version.major).map(|setting| setting.boot.to_owned()))
    }

    /// A setting as `SHOW` prints it.
    pub(super) fn show(&self, data: &Data, name: &str) -> Result<String, Refusal> {
        let major = self.server.version.major;
        match settings::find(name, major) {
            Some(setting) => Ok(setting.shown(&self.kept(data, setting.name).unwrap_or_default())),
            None => self.kept(data, &name.to_lowercase()).ok_or_else(|| settings::unknown(name)),
        }
    }

    pub(super) fn is_read_only(&self, data: &Data) -> bool {
        let own = self.local.get("transaction_read_only").map(|value| value == "on");
        let default =
            || self.kept(data, "default_transaction_read_only").is_some_and(|value| value == "on");
        self.server.standby() || own.or(self.read_only).unwrap_or_else(default)
    }

    pub(super) fn search_path(&self, data: &Data) -> Vec<String> {
        let path = self.kept(data, "search_path").unwrap_or_default();
        path.split(',')
            .map(|one| one.trim().trim_matches('"').replace("$user", &self.user))
            .filter(|one| !one.is_empty())
            .collect()
    }

    fn milliseconds(&self, name: &str) -> Option<Duration> {
        let kept = self.kept(&self.server.data(), name)?;
        let millis: u64 = kept.parse().ok().filter(|millis| *millis > 0)?;
        Some(Duration::from_millis(millis))
    }
}

fn switch(on: bool) -> String {
    if on { "on".into() } else { "off".into() }
}

/// Serves one connection; `address` is the client's, empty for the local socket.
pub(super) async fn serve(server: Arc<Server>, mut stream: DuplexStream, address: String) {
    // A client that goes away ends its session; there is nobody to tell.
    let _ = talk(&server, &mut stream, &address).await;
}

async fn flush(stream: &mut DuplexStream, out: &mut Out) -> io::Result<()> {
    stream.write_all(&out.take()).await?;
    stream.flush().await
}

async fn talk(server: &Arc<Server>, stream: &mut DuplexStream, address: &str) -> io::Result<()> {
    let mut out = Out::default();
    if server.condition().silent {
        return std::future::pending().await;
    }
    let parameters = loop {
        match wire::opening(stream).await? {
            Opening::Encryption => {
                out.no_encryption();
                flush(stream, &mut out).await?;
            }
            Opening::Cancel => return Ok(()),
            Opening::Session(parameters) => break parameters,
            Opening::Unknown(code) => {
                let message = format!(
                    "unsupported frontend protocol {}.{}: server supports 3.0 to 3.0",
                    code >> 16,
                    code & 0xffff
                );
                out.refusal(&Refusal::fatal("0A000", &message));
                return flush(stream, &mut out).await;
            }
        }
    };
    let outcome = login(server, stream, &mut out, parameters, address).await;
    let mut state = match outcome {
        Ok(state) => state,
        Err(Login::Lost(error)) => return Err(error),
        Err(Login::Refused(refusal)) => {
            out.refusal(&Refusal { fatal: true, ..refusal });
            return flush(stream, &mut out).await;
        }
    };
    greet(&state, &mut out);
    flush(stream, &mut out).await?;
    let answer = queries(&mut state, stream, &mut out).await;
    run::undo(&mut state, 0);
    server.leave(state.pid);
    answer
}

enum Login {
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

async fn login(
    server: &Arc<Server>,
    stream: &mut DuplexStream,
    out: &mut Out,
    parameters: Vec<(String, String)>,
    address: &str,
) -> Result<State, Login> {
    let mut startup = BTreeMap::new();
    let (mut user, mut database) = (String::new(), String::new());
    for (name, value) in parameters {
        match name.as_str() {
            "user" => user = value,
            "database" => database = value,
            "options" => startup.extend(options(&value)),
            "replication" => {}
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

fn greet(state: &State, out: &mut Out) {
    let names = [
        "application_name",
        "client_encoding",
        "DateStyle",
        "default_transaction_read_only",
        "in_hot_standby",
        "integer_datetimes",
        "IntervalStyle",
        "is_superuser",
        "server_encoding",
        "server_version",
        "session_authorization",
        "standard_conforming_strings",
        "TimeZone",
    ];
    for name in names {
        let value = {
            let data = state.server.data();
            state.show(&data, name).unwrap_or_default()
        };
        out.parameter(name, &value);
    }
    out.key(state.pid, 0x5eed);
    out.ready(b'I');
}

async fn queries(state: &mut State, stream: &mut DuplexStream, out: &mut Out) -> io::Result<()> {
    loop {
        let server = state.server.clone();
        let idle = state.milliseconds("idle_in_transaction_session_timeout");
        let idle = idle.filter(|_| state.block != Block::None);
        let next = tokio::select! {
            biased;
            () = stopped(&server) => Err(Refusal::fatal(
                "57P01",
                "terminating connection due to administrator command",
            )),
            message = wire::message(stream) => Ok(message?),
            () = after(idle) => Err(Refusal::fatal(
                "25P03",
                "terminating connection due to idle-in-transaction timeout",
            )),
        };
        let (kind, body) = match next {
            Ok(next) => next,
            Err(refusal) => {
                out.refusal(&refusal);
                return flush(stream, out).await;
            }
        };
        match kind {
            b'Q' => {
                let (sql, _) = wire::text(&body);
                query(state, &sql, out).await;
            }
            b'X' => return Ok(()),
            // The extended protocol is not spoken: refused once, at its Sync.
            b'S' => {
                out.refusal(&Refusal::new("0A000", "the model speaks simple queries only"));
                ready(state, out);
            }
            _ => {}
        }
        flush(stream, out).await?;
    }
}

async fn after(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

async fn stopped(server: &Server) {
    loop {
        let changed = server.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if server.stopped() {
            return;
        }
        changed.await;
    }
}

fn ready(state: &State, out: &mut Out) {
    out.ready(match state.block {
        Block::None => b'I',
        Block::Open => b'T',
        Block::Failed => b'E',
    });
}

/// One query message: its statements are one transaction unless they say otherwise.
async fn query(state: &mut State, sql: &str, out: &mut Out) {
    let parsed = match parse::statements(sql) {
        Ok(parsed) => parsed,
        Err(refusal) => {
            fail(state, out, &refusal);
            return ready(state, out);
        }
    };
    if parsed.is_empty() {
        out.empty();
    }
    let several = parsed.len() > 1;
    for one in &parsed {
        if let Err(refusal) = statement(state, &one.statement, several, out).await {
            fail(state, out, &refusal);
            return ready(state, out);
        }
    }
    if state.block == Block::None {
        run::commit(state);
    }
    ready(state, out);
}

fn fail(state: &mut State, out: &mut Out, refusal: &Refusal) {
    out.refusal(refusal);
    match state.block {
        Block::None => run::rollback(state),
        Block::Open => state.block = Block::Failed,
        Block::Failed => {}
    }
}

async fn statement(
    state: &mut State,
    statement: &super::ast::Statement,
    several: bool,
    out: &mut Out,
) -> Result<(), Refusal> {
    let began = Instant::now();
    let limit = state.milliseconds("statement_timeout").map(|limit| began + limit);
    let timeout = || Refusal::new("57014", "canceling statement due to statement timeout");
    let delay = state.server.condition().delay;
    pause(delay, limit).await.map_err(|()| timeout())?;
    wait_for_locks(state, statement, limit).await?;
    let done = run::execute(state, statement, several)?;
    if done.reload {
        state.server.reload();
    }
    pause(done.sleep, limit).await.map_err(|()| timeout())?;
    if let Some(warning) = &done.warning {
        out.warning(warning);
    }
    if let Some(rows) = &done.rows {
        out.rows(rows);
    }
    out.complete(&done.tag);
    Ok(())
}

/// Sleeps, or fails at the limit if that comes first.
async fn pause(time: Duration, limit: Option<Instant>) -> Result<(), ()> {
    if time.is_zero() {
        return Ok(());
    }
    let end = Instant::now() + time;
    match limit.filter(|limit| *limit < end) {
        Some(limit) => {
            tokio::time::sleep_until(limit).await;
            Err(())
        }
        None => {
            tokio::time::sleep_until(end).await;
            Ok(())
        }
    }
}

async fn wait_for_locks(
    state: &State,
    statement: &super::ast::Statement,
    limit: Option<Instant>,
) -> Result<(), Refusal> {
    let names = run::locks(statement);
    let patience = state.milliseconds("lock_timeout").map(|limit| Instant::now() + limit);
    loop {
        let changed = state.server.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let locked = state.server.condition().locked;
        if !names.iter().any(|name| locked.contains(name)) {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = &mut changed => {}
            () = until(patience) => {
                return Err(Refusal::new("55P03", "canceling statement due to lock timeout"));
            }
            () = until(limit) => {
                return Err(Refusal::new("57014", "canceling statement due to statement timeout"));
            }
        }
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
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
