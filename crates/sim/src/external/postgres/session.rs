//! One session: login, then queries until the client or the server ends it.
//!
//! Must not decide what statements do; `run` does.

mod login;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

use super::data::Data;
use super::parse;
use super::refusal::Refusal;
use super::run::{self, Undo};
use super::server::Server;
use super::settings;
use super::wire::{self, Opening, Out};
use login::{Login, login};

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
