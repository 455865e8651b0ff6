//! A server that has started, as its container's program.
//!
//! Must not start anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::builtin::pods::program::{Exit, Program, Surroundings};
use crate::external::postgres::server::Server;
use crate::external::postgres::session;

/// A server in its container.
pub(super) struct Running {
    pub(super) server: Arc<Server>,
    pub(super) address: String,
    pub(super) port: u16,
    pub(super) ready_at: Timestamp,
    pub(super) log: String,
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
    }
}

impl Program for Running {
    fn exit(&mut self, now: Timestamp) -> Option<(Timestamp, Exit)> {
        let message = self.server.crashed()?;
        self.log.push_str(&message);
        Some((now, Exit { code: 1, message: self.log.clone() }))
    }

    fn ready(&mut self, now: Timestamp) -> bool {
        let condition = self.server.condition();
        now >= self.ready_at && !condition.starting && !condition.silent
    }

    fn due(&mut self, now: Timestamp) -> Option<Timestamp> {
        (self.ready_at > now).then_some(self.ready_at)
    }

    fn refresh(&mut self, files: &BTreeMap<String, String>) {
        self.server.see(files);
    }

    fn stop(&mut self, around: &mut Surroundings) -> Exit {
        self.server.stop();
        around.network.leave(&self.address);
        Exit { code: 0, message: self.log.clone() }
    }

    fn log(&self) -> String {
        self.log.clone()
    }
}
