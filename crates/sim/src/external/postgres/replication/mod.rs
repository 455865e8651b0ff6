//! Streaming replication: who sends to whom, and what each side shows of it.
//!
//! Both sides are servers of the model in one process, so what is sent is the state itself. Who may
//! connect, what is still there to send, and every refusal are PostgreSQL's. Must not parse SQL.

mod base_backup;
mod receiver;
mod sender;

use std::collections::BTreeMap;

pub(crate) use base_backup::{Backup, Order};
pub(super) use receiver::follow;
pub(super) use sender::Sender;

use super::conninfo::Conninfo;
use super::refusal::Refusal;
use super::server::{Server, held};
use super::wal::Limits;

/// What a standby knows of following; a primary's stays empty.
pub(super) struct Following {
    pub(super) standby: bool,
    /// The stream, while there is one.
    pub(super) stream: Option<Stream>,
    /// Whether replay stands still until somebody says "resume".
    pub(super) paused: bool,
    /// Whether "resume" ends the server, since its settings are too low.
    pub(super) doomed: bool,
    /// End of what has been received.
    pub(super) received: Option<u64>,
    /// Password files by path.
    passwords: BTreeMap<String, String>,
}

/// A stream, as the receiving side shows it.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    pub(super) pid: i32,
    pub(super) start: u64,
    pub(super) timeline: u32,
    pub(super) slot: Option<String>,
    pub(super) address: String,
    pub(super) upstream: Conninfo,
}

impl Following {
    pub(super) fn new(passwords: BTreeMap<String, String>) -> Following {
        Following {
            standby: false,
            stream: None,
            paused: false,
            doomed: false,
            received: None,
            passwords,
        }
    }
}

impl Server {
    /// From now on a standby.
    pub(super) fn begin_following(&self) {
        held(&self.following).standby = true;
    }

    /// Where it streams from, as its settings say now.
    fn upstream(&self) -> Option<(Conninfo, Option<String>)> {
        let text = self.setting("primary_conninfo").filter(|text| !text.trim().is_empty())?;
        let mut upstream = Conninfo::parse(&text).ok()?;
        let name = self.setting("cluster_name").filter(|name| !name.is_empty());
        upstream.or("application_name", name.as_ref());
        upstream.or("fallback_application_name", Some(&"walreceiver".to_owned()));
        upstream.retrieve(|path, to| password(held(&self.following).passwords.get(path)?, to));
        let slot = self.setting("primary_slot_name").filter(|name| !name.is_empty());
        Some((upstream, slot))
    }

    /// The limits of what is kept of the log.
    pub(super) fn limits(&self) -> Limits {
        let segments = |name: &str| u64::try_from(self.number(name)).ok().map(|mega| mega / 16);
        Limits {
            slots: segments("max_slot_wal_keep_size"),
            keep: segments("wal_keep_size").unwrap_or(0),
            most: segments("max_wal_size").unwrap_or(64),
        }
    }

    /// Writes this much of the log, as a busy application does, and runs the checkpoint that is due.
    pub fn write_log(&self, bytes: u64) {
        let now = self.now();
        let due = {
            let mut data = self.data();
            data.wal.write(bytes, now);
            data.wal.position - data.wal.redo >= self.limits().most.max(2) * super::wal::SEGMENT / 2
        };
        if due {
            self.checkpoint();
        }
        self.changed.notify_waiters();
    }

    /// A checkpoint: what nobody keeps is removed, and slots that asked for too much are lost.
    pub fn checkpoint(&self) {
        let limits = self.limits();
        let lost = {
            let mut data = self.data();
            let data = &mut *data;
            data.wal.checkpoint(&mut data.slots, limits)
        };
        for (name, restart, user) in lost {
            if let Some(pid) = user {
                let text =
                    format!("terminating process {pid} to release replication slot \"{name}\"");
                self.say("LOG", &text);
                self.terminate(pid);
            }
            let restart = super::wal::shown(restart);
            let text = format!(
                "invalidating slot \"{name}\" because its restart_lsn {restart} exceeds \
                 max_slot_wal_keep_size"
            );
            self.say("LOG", &text);
        }
        self.changed.notify_waiters();
    }

    /// Lets replay go on; ends a server that must not replay what comes next.
    pub(super) fn resume(&self) {
        let doomed = {
            let mut following = held(&self.following);
            following.paused = false;
            following.doomed
        };
        if doomed {
            self.end_of_startup();
        }
        self.changed.notify_waiters();
    }

    /// What the server says when its startup process has ended by itself, and ends it.
    pub(super) fn end_of_startup(&self) {
        self.say("LOG", "startup process (PID 28) exited with exit code 1");
        self.say("LOG", "terminating any other active server processes");
        self.say("LOG", "shutting down due to startup process failure");
        self.say("LOG", "database system is shut down");
        self.end("");
    }

    /// Ends recovery: the standby becomes a primary on a timeline of its own.
    pub(super) fn promote(&self) -> Result<(), Refusal> {
        if !self.standby() {
            return Err(not_in_recovery());
        }
        self.say("LOG", "received promote request");
        {
            let mut data = self.data();
            let wal = &mut data.wal;
            wal.history.push((wal.timeline, wal.position));
            wal.timeline += 1;
            data.follows = false;
            data.needs = self.needs();
        }
        let mut following = held(&self.following);
        following.standby = false;
        following.stream = None;
        drop(following);
        let timeline = self.data().wal.timeline;
        self.say("LOG", &format!("selected new timeline ID: {timeline}"));
        self.say("LOG", "archive recovery complete");
        self.say("LOG", "database system is ready to accept connections");
        self.changed.notify_waiters();
        Ok(())
    }

    /// Its own values of the settings that standbys must match.
    pub(super) fn needs(&self) -> BTreeMap<String, i64> {
        let names = super::data::NEEDS.iter();
        names.map(|(name, _)| ((*name).to_owned(), self.number(name))).collect()
    }

    /// The first setting that is lower than the log was written with.
    pub(super) fn lower(&self, needs: &BTreeMap<String, i64>) -> Option<String> {
        if self.setting("hot_standby").is_some_and(|value| value == "off") {
            return None;
        }
        super::data::NEEDS.iter().find_map(|(name, _)| {
            let (own, needed) = (self.number(name), *needs.get(*name)?);
            (own < needed).then(|| {
                format!(
                    "{name} = {own} is a lower setting than on the primary server, where its value \
                     was {needed}."
                )
            })
        })
    }
}

/// The error of functions that only a standby runs.
pub(super) fn not_in_recovery() -> Refusal {
    Refusal::new("55000", "recovery is not in progress")
        .hint("Recovery control functions can only be executed during recovery.")
}

/// The password of the first line of a `.pgpass` file that fits; `*` fits everything.
pub(crate) fn password(file: &str, to: &Conninfo) -> Option<String> {
    let port = to.port().to_string();
    let wanted = [to.host(), &port, to.get("dbname").unwrap_or("replication"), to.get("user")?];
    file.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [rest @ .., secret] = fields.as_slice() else { return None };
        let fits = rest.len() == 4
            && rest.iter().zip(wanted).all(|(one, wanted)| one == "*" || one == wanted);
        fits.then(|| secret.clone())
    })
}

/// Fields between colons; a backslash takes the next sign as it is.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut signs = line.chars();
    while let Some(c) = signs.next() {
        let last = fields.len() - 1;
        match c {
            '\\' => fields[last].extend(signs.next()),
            ':' if last < 4 => fields.push(String::new()),
            c => fields[last].push(c),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_files_are_read_like_libpq() {
        let to = Conninfo::parse("host=h port=5432 user=repl").expect("a good string");
        let cases = [
            ("*:*:*:repl:secret\n", Some("secret")),
            ("# *:*:*:repl:no\nh:5432:replication:repl:a\\:b\\\\c\n", Some("a:b\\c")),
            ("h:5433:*:repl:no\n*:*:*:other:no\n", None),
            ("*:*:*:repl:one\n*:*:*:repl:two\n", Some("one")),
            ("*:*:repl:three\n", None),
        ];
        for (file, expected) in cases {
            assert_eq!(password(file, &to).as_deref(), expected, "{file}");
        }
    }
}
