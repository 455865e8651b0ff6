//! Client handles: one per incarnation of an operator, so that a crash ends exactly one of them.

use super::{Faults, rule::WRITES};

/// Identity of a client handle; handles are numbered from 0 in the order they are opened.
pub type ClientId = usize;

/// When a client crashes, counted in its own writes from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The nth write is never sent.
    Before(u64),
    /// The nth write is carried out, but its reply is not seen.
    After(u64),
}

/// What is known about one client handle.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) name: String,
    pub(super) writes: u64,
    pub(super) crash: Option<Crash>,
    pub(super) dead: bool,
}

/// What becomes of one request of a client that may crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It is carried out and answered.
    Lives,
    /// It is carried out, not answered, and the client is dead.
    DiesAfter,
    /// It is not carried out.
    Dead,
}

impl Faults {
    /// Opens a handle called `name`; several may share a name.
    pub(crate) fn open(&mut self, name: &str) -> ClientId {
        let client = Client { name: name.to_owned(), writes: 0, crash: None, dead: false };
        self.clients.push(client);
        self.clients.len() - 1
    }

    /// Name of a handle.
    pub fn client_name(&self, id: ClientId) -> &str {
        self.clients.get(id).map_or("", |client| client.name.as_str())
    }

    /// Lets a client crash at one of its writes.
    pub fn crash_at(&mut self, id: ClientId, crash: Option<Crash>) {
        if let Some(client) = self.clients.get_mut(id) {
            client.crash = crash;
        }
    }

    /// Kills a client now: every later request of its handle fails for ever.
    pub(crate) fn kill(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id) {
            client.dead = true;
        }
    }

    /// Lets a client that dies at its present write live until that has ended: a command takes its time.
    pub(crate) fn put_off(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(id) {
            client.dead = false;
        }
    }

    /// Whether a client has crashed.
    pub fn dead(&self, id: ClientId) -> bool {
        self.clients.get(id).is_some_and(|client| client.dead)
    }

    /// How many write requests a client has sent, refused ones included.
    pub fn writes(&self, id: ClientId) -> u64 {
        self.clients.get(id).map_or(0, |client| client.writes)
    }

    /// Counts a request and decides what becomes of its client.
    pub(crate) fn live(&mut self, id: ClientId, verb: &str) -> Life {
        let Some(client) = self.clients.get_mut(id) else { return Life::Lives };
        if client.dead {
            return Life::Dead;
        }
        if !WRITES.contains(&verb) {
            return Life::Lives;
        }
        match client.crash {
            Some(Crash::Before(n)) if client.writes + 1 == n => {
                client.dead = true;
                Life::Dead
            }
            Some(Crash::After(n)) if client.writes + 1 == n => {
                client.writes += 1;
                client.dead = true;
                Life::DiesAfter
            }
            _ => {
                client.writes += 1;
                Life::Lives
            }
        }
    }
}
