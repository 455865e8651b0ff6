//! A server that has started, as its container's program.
//!
//! Must not start anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::builtin::pods::program::{Exit, Program, Surroundings};
use crate::external::postgres::replication;
use crate::external::postgres::server::{Server, held};
use crate::external::postgres::session;

/// A server in its container.
pub(super) struct Running {
    pub(super) server: Arc<Server>,
    pub(super) address: String,
    pub(super) port: u16,
    pub(super) ready_at: Timestamp,
    pub(super) log: String,
    /// Volume and path of the data folder.
    pub(super) place: Option<(String, String)>,
    /// The task that follows a primary.
    pub(super) receiver: Option<tokio::task::JoinHandle<()>>,
}

impl Running {
    pub(super) fn listen(&self, around: &mut Surroundings, addresses: &str) {
        let open =
            |ready_at: Timestamp, server: Arc<Server>| -> crate::external::network::Listener {
                Arc::new(move |stream, client| {
                    if server.now() < ready_at || server.stopped() {
                        return false;
                    }
                    tokio::spawn(session::serve(server.clone(), stream, client.to_owned()));
                    true
                })
            };
        let listener = open(self.ready_at, self.server.clone());
        let listed = |wanted: &[&str]| addresses.split(',').any(|one| wanted.contains(&one.trim()));
        if listed(&["*", "0.0.0.0", "localhost", "127.0.0.1"]) {
            around.network.listen_inside(&self.address, self.port, listener.clone());
        }
        if listed(&["*", "0.0.0.0", &self.address]) {
            around.network.listen(&self.address, self.port, listener);
        }
        around.network.attach(&self.address, self.server.clone());
        *held(&self.server.waker) = Some(around.network.waker());
    }

    /// Starts to receive, where the server is a standby.
    pub(super) fn follow(&mut self, around: &mut Surroundings) {
        self.look(around);
        if let Some(reach) = around.network.reach().filter(|_| self.server.standby()) {
            let following = replication::follow(self.server.clone(), self.address.clone(), reach);
            self.receiver = Some(tokio::spawn(following));
        }
    }

    /// What the volume and the server tell each other: the room left, and the end of recovery.
    fn look(&self, around: &mut Surroundings) {
        let Some((volume, path)) = &self.place else { return };
        let full = around.volumes.is_full(volume);
        if full != self.server.volume_full() {
            self.server.set_volume_full(full);
        }
        if self.receiver.is_some() && !self.server.standby() {
            let signal = format!("{path}/standby.signal");
            around.volumes.unlink(volume, signal.trim_start_matches('/'));
        }
    }

    fn said(&self) -> String {
        format!("{}{}", self.log, self.server.log())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(receiver) = &self.receiver {
            receiver.abort();
        }
    }
}

impl Program for Running {
    fn advance(&mut self, _now: Timestamp, around: &mut Surroundings) {
        self.look(around);
        if self.server.crashed().is_some() {
            around.network.leave(&self.address);
        }
    }

    fn exit(&mut self, now: Timestamp) -> Option<(Timestamp, Exit)> {
        let message = self.server.crashed()?;
        Some((now, Exit { code: 1, message: self.said() + &message }))
    }

    fn ready(&mut self, now: Timestamp) -> bool {
        let condition = self.server.condition();
        let open = !condition.starting && !condition.silent && !self.server.closed();
        now >= self.ready_at && open
    }

    fn due(&mut self, now: Timestamp) -> Option<Timestamp> {
        (self.ready_at > now).then_some(self.ready_at)
    }

    fn refresh(&mut self, files: &BTreeMap<String, String>) {
        self.server.see(files);
    }

    fn stop(&mut self, around: &mut Surroundings) -> Exit {
        self.look(around);
        self.server.send_the_rest();
        self.server.stop();
        around.network.leave(&self.address);
        Exit { code: 0, message: self.said() }
    }

    fn log(&self) -> String {
        self.said()
    }
}
