//! The sending side: who may stream, from where, and how the primary shows it.
//!
//! Must not know how the other side uses what it is sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;

use crate::external::network::Links;
use crate::external::postgres::conf::Method;
use crate::external::postgres::conninfo::Conninfo;
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::server::{Server, held};
use crate::external::postgres::wal::{self, SEGMENT};

/// How long a side waits for a sign of the other: `wal_sender_timeout`, `wal_receiver_timeout`.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// Who wants to stream.
pub(crate) struct Login<'a> {
    pub(crate) user: &'a str,
    pub(crate) password: Option<&'a str>,
    pub(crate) application: &'a str,
    pub(crate) address: &'a str,
}

/// A process that sends, as `pg_stat_replication` shows it.
#[derive(Clone)]
pub(in crate::external::postgres) struct Sender {
    pub(in crate::external::postgres) user: String,
    pub(in crate::external::postgres) application: String,
    pub(in crate::external::postgres) address: String,
    pub(in crate::external::postgres) state: &'static str,
    pub(in crate::external::postgres) sent: Option<u64>,
    pub(in crate::external::postgres) flushed: Option<u64>,
    pub(in crate::external::postgres) replayed: Option<u64>,
    pub(in crate::external::postgres) since: Timestamp,
    slot: Option<String>,
    ended: bool,
    /// Who replays what is sent, once the stream has begun.
    to: Option<Weak<Server>>,
    links: Arc<Links>,
    ends: (String, String),
}

/// The other end of a sender; it goes when this does.
pub(super) struct Channel {
    pub(super) server: Arc<Server>,
    pub(super) pid: i32,
    links: Arc<Links>,
    ends: (String, String),
}

impl Server {
    /// Whether a replication connection is let in: the refusal, or libpq's complaint where the client
    /// has no password to offer.
    pub(crate) fn admit(&self, login: &Login) -> Result<(), Refused> {
        if self.condition().starting {
            let refusal = Refusal::new("57P03", "the database system is starting up");
            return Err(Refused::Server(refusal));
        }
        self.authenticate(login)?;
        let data = self.data();
        let role = data.roles.get(login.user);
        let refuse = |code, message: &str| Err(Refused::Server(Refusal::new(code, message)));
        if role.is_none() {
            return refuse("28000", &format!("role \"{}\" does not exist", login.user));
        }
        if role.is_some_and(|role| !role.login) {
            let message = format!("role \"{}\" is not permitted to log in", login.user);
            return refuse("28000", &message);
        }
        if !role.is_some_and(|role| role.superuser || role.replication) {
            return refuse("42501", "must be superuser or replication role to start walsender");
        }
        drop(data);
        let most = self.number("max_wal_senders");
        if held(&self.senders).len() >= usize::try_from(most).unwrap_or(0) {
            let message = format!(
                "number of requested standby connections exceeds max_wal_senders (currently {most})"
            );
            return refuse("53300", &message);
        }
        Ok(())
    }

    fn authenticate(&self, login: &Login) -> Result<(), Refused> {
        let (user, address) = (login.user, login.address);
        let refuse = |message: &str| Err(Refused::Server(Refusal::new("28000", message)));
        let whom = format!("host \"{address}\", user \"{user}\", no encryption");
        let Some(rule) = self.replication_rule(user, address) else {
            let message = format!("no pg_hba.conf entry for replication connection from {whom}");
            return refuse(&message);
        };
        match rule.method {
            Method::Trust => return Ok(()),
            Method::Reject => {
                return refuse(&format!("pg_hba.conf rejects replication connection for {whom}"));
            }
            Method::Peer => {
                return refuse(&format!("Peer authentication failed for user \"{user}\""));
            }
            Method::Scram | Method::Md5 | Method::Password => {}
        }
        let Some(password) = login.password else { return Err(Refused::NoPassword) };
        let data = self.data();
        let role = data.roles.get(user);
        let expired = role.and_then(|role| role.valid_until.as_deref()).is_some_and(|until| {
            until.replace(' ', "T").parse::<Timestamp>().is_ok_and(|at| at < self.now())
        });
        let verifier = role.and_then(|role| role.verifier.as_ref());
        match verifier.is_some_and(|one| !expired && one.fits(password)) {
            true => Ok(()),
            false => {
                let message = format!("password authentication failed for user \"{user}\"");
                Err(Refused::Server(Refusal::new("28P01", &message)))
            }
        }
    }

    /// Opens a sender for a client that was let in.
    pub(super) fn open(
        self: &Arc<Server>,
        login: &Login,
        state: &'static str,
        (own, links): (&str, &Arc<Links>),
    ) -> Channel {
        let pid = i32::try_from(self.random() % 30_000).unwrap_or(0) + 100;
        let ends = (login.address.to_owned(), own.to_owned());
        let sender = Sender {
            user: login.user.to_owned(),
            application: login.application.to_owned(),
            address: login.address.to_owned(),
            state,
            sent: None,
            flushed: None,
            replayed: None,
            since: self.now(),
            slot: None,
            ended: false,
            to: None,
            links: links.clone(),
            ends: ends.clone(),
        };
        held(&self.senders).insert(pid, sender);
        Channel { server: self.clone(), pid, links: links.clone(), ends }
    }

    /// Ends a session or a sender, as `pg_terminate_backend` does; whether there was one.
    pub(in crate::external::postgres) fn terminate(&self, pid: i32) -> bool {
        let found = held(&self.senders).get_mut(&pid).map(|sender| sender.ended = true).is_some();
        self.changed.notify_waiters();
        found
    }

    /// The senders in the order of their processes.
    pub(in crate::external::postgres) fn senders(&self) -> BTreeMap<i32, Sender> {
        held(&self.senders).clone()
    }

    /// An orderly end sends the rest to whoever streams; a crash does not.
    pub(in crate::external::postgres) fn send_the_rest(&self) {
        let sent = self.data().clone();
        for sender in self.senders().into_values() {
            let reached = sender.links.passes(&sender.ends.0, &sender.ends.1);
            if let Some(standby) = sender.to.and_then(|to| to.upgrade()).filter(|_| reached) {
                standby.absorb(&sent);
            }
        }
    }

    /// Ends a sender and frees its slot.
    fn close(&self, pid: i32) {
        held(&self.senders).remove(&pid);
        for slot in self.data().slots.values_mut().filter(|slot| slot.active == Some(pid)) {
            slot.active = None;
        }
        self.changed.notify_waiters();
    }
}

/// Why a client got no connection.
pub(crate) enum Refused {
    /// The server's word.
    Server(Refusal),
    /// The server asked for a password, and the client has none.
    NoPassword,
}

impl Refused {
    /// As libpq tells it, after the name of the server.
    pub(crate) fn told(&self, to: &Conninfo) -> String {
        match self {
            Refused::Server(refusal) if refusal.code == "28P01" => {
                format!("FATAL:  {}{}", refusal.message, to.where_from())
            }
            Refused::Server(refusal) => format!("FATAL:  {}", refusal.message),
            Refused::NoPassword => "fe_sendauth: no password supplied".to_owned(),
        }
    }
}

impl Channel {
    /// Takes a slot into use.
    pub(super) fn take(&self, name: &str) -> Result<(), Refusal> {
        let mut data = self.server.data();
        let Some(slot) = data.slots.get_mut(name) else {
            let message = format!("replication slot \"{name}\" does not exist");
            return Err(Refusal::new("42704", &message));
        };
        if let Some(pid) = slot.active {
            let message = format!("replication slot \"{name}\" is active for PID {pid}");
            return Err(Refusal::new("55006", &message));
        }
        // A slot that was lost keeps again from what its next user confirms.
        slot.active = Some(self.pid);
        drop(data);
        if let Some(sender) = held(&self.server.senders).get_mut(&self.pid) {
            sender.slot = Some(name.to_owned());
        }
        Ok(())
    }

    /// The stream has begun: this is who replays it.
    pub(super) fn feeds(&self, standby: &Arc<Server>) {
        if let Some(sender) = held(&self.server.senders).get_mut(&self.pid) {
            sender.to = Some(Arc::downgrade(standby));
        }
    }

    /// Whether the log from `start` on can be sent to somebody who has it up to there.
    pub(super) fn can_send(&self, start: u64) -> Result<(), Refusal> {
        let data = self.server.data();
        if start > data.wal.position {
            let message = format!(
                "requested starting point {} is ahead of the WAL flush position of this server {}",
                wal::shown(start),
                wal::shown(data.wal.position)
            );
            return Err(Refusal::new("XX000", &message));
        }
        let segment = start / SEGMENT;
        if segment < data.wal.oldest {
            let file = wal::file(data.wal.timeline, segment);
            let message = format!("requested WAL segment {file} has already been removed");
            return Err(Refusal::new("58P01", &message));
        }
        Ok(())
    }

    /// Notes what the other side has.
    pub(super) fn confirm(&self, flushed: u64, replayed: Option<u64>) {
        let position = self.server.data().wal.position;
        let mut slot = None;
        if let Some(sender) = held(&self.server.senders).get_mut(&self.pid) {
            sender.sent = Some(position);
            sender.flushed = Some(flushed);
            sender.replayed = replayed;
            sender.state = if flushed >= position { "streaming" } else { "catchup" };
            slot.clone_from(&sender.slot);
        }
        let mut data = self.server.data();
        if let Some(slot) = slot.and_then(|name| data.slots.get_mut(&name)) {
            slot.restart = Some(flushed);
        }
    }

    /// Whether somebody has ended the sender.
    pub(super) fn ended(&self) -> bool {
        held(&self.server.senders).get(&self.pid).is_none_or(|sender| sender.ended)
    }

    /// Whether what one side says reaches the other.
    pub(super) fn passes(&self) -> bool {
        self.links.passes(&self.ends.0, &self.ends.1)
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if self.passes() || self.ended() {
            return self.server.close(self.pid);
        }
        // The goodbye does not arrive: the sender waits for a sign until its time is up.
        let (server, pid) = (self.server.clone(), self.pid);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return server.close(pid) };
        runtime.spawn(async move {
            tokio::time::sleep(TIMEOUT).await;
            server.close(pid);
        });
    }
}
