//! The door to all servers of a world: one lock, so that what is said is said at one moment.
//!
//! Must not start or stop a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::time::Instant;

use super::ensemble::{Disk, Member, Mode, State};
use super::members::Config;
use super::tree::Change;
use crate::external::network::Links;

/// All servers of a world.
#[derive(Default)]
pub(crate) struct Ground(Mutex<State>);

pub(super) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panicking holder has failed its test already; between changes everything is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ground {
    /// Remembers how time and ways are looked up.
    pub(super) fn learn(&self, now: Timestamp, links: &Arc<Links>) {
        let mut state = held(&self.0);
        state.links.get_or_insert_with(|| links.clone());
        state.began.get_or_insert_with(|| (now, Instant::now()));
    }

    /// A server's process is up.
    pub(super) fn enter(
        &self,
        host: &str,
        address: &str,
        disk: Arc<Mutex<Disk>>,
        settings: BTreeMap<String, String>,
    ) {
        let member = Member { address: address.to_owned(), disk, settings, follows: None };
        let mut state = held(&self.0);
        state.members.insert(host.to_owned(), member);
        state.settle();
    }

    /// A server's process is gone. Only that at this address: another may have its name by now.
    pub(super) fn leave(&self, host: &str, address: &str) {
        let mut state = held(&self.0);
        if state.members.get(host).is_some_and(|member| member.address == address) {
            state.members.remove(host);
        }
        state.settle();
    }

    /// Looks who leads whom now.
    pub(super) fn look(&self) {
        held(&self.0).settle();
    }

    /// What a server is now; none when it serves nobody.
    pub(super) fn mode(&self, host: &str) -> Option<Mode> {
        let mut state = held(&self.0);
        state.settle();
        state.mode(host)
    }

    /// What a server holds.
    pub(super) fn disk(&self, host: &str) -> Option<Disk> {
        let mut state = held(&self.0);
        state.settle();
        state.members.get(host).map(|member| held(&member.disk).clone())
    }

    /// Settings that a server runs with.
    pub(super) fn settings(&self, host: &str) -> BTreeMap<String, String> {
        let state = held(&self.0);
        state.members.get(host).map(|member| member.settings.clone()).unwrap_or_default()
    }

    /// A server that serves and has the same domain, for a hook that asks for any of them.
    pub(super) fn any(&self, domain: &str) -> Option<String> {
        let mut state = held(&self.0);
        state.settle();
        let serves =
            |host: &&String| host.ends_with(&format!(".{domain}")) && state.mode(host).is_some();
        state.members.keys().find(serves).cloned()
    }

    /// Carries out a change of one node; none when the server serves nobody.
    pub(super) fn change(&self, host: &str, change: &Change) -> Option<Result<i64, i32>> {
        let mut state = held(&self.0);
        state.settle();
        state.mode(host)?;
        Some(state.change(host, change))
    }

    /// Changes the ensemble of a server; none when it serves nobody.
    pub(super) fn reconfigure(
        &self,
        host: &str,
        (joining, leaving): (&str, &str),
        from: i64,
    ) -> Option<Result<Config, i32>> {
        let mut state = held(&self.0);
        state.settle();
        state.mode(host)?;
        let answer = state.reconfigure(host, (joining, leaving), from);
        state.settle();
        Some(answer)
    }
}
