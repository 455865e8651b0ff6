//! A server with its scripts, as its container's program.
//!
//! Must not start anything but the task of its scripts.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::task::JoinHandle;

use super::scripts::Script;
use crate::builtin::pods::program::{Exit, Program, Surroundings};

/// A server in its container.
pub(super) struct Running {
    script: Arc<Script>,
    task: JoinHandle<()>,
}

impl Running {
    pub(super) fn new(script: Script) -> Running {
        let script = Arc::new(script);
        Running { task: tokio::spawn(script.clone().run()), script }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Program for Running {
    fn advance(&mut self, _now: Timestamp, around: &mut Surroundings) {
        if self.script.server.is_over() {
            around.network.leave(&self.script.server.address);
        }
    }

    fn exit(&mut self, now: Timestamp) -> Option<(Timestamp, Exit)> {
        let message = self.script.server.last_words()?;
        Some((now, Exit { code: 1, message }))
    }

    fn ready(&mut self, _now: Timestamp) -> bool {
        self.script.server.is_ready()
    }

    fn stop(&mut self, around: &mut Surroundings) -> Exit {
        self.script.stop();
        self.script.server.stop();
        self.task.abort();
        around.network.leave(&self.script.server.address);
        Exit { code: 0, message: self.log() }
    }

    fn log(&self) -> String {
        let server = &self.script.server;
        let mode = server.mode().unwrap_or("looking");
        format!("[myid:{}] {mode}\n", self.script.id)
    }
}
