//! The receiving side: a standby that connects, replays what it is sent, and tries again.
//!
//! Must not decide what may be sent; the sender does.

use std::sync::Arc;
use std::time::Duration;

use super::sender::{Channel, Login, TIMEOUT};
use super::{Following, Stream};
use crate::external::network::{Reach, Unreached};
use crate::external::postgres::conninfo::Conninfo;
use crate::external::postgres::data::Data;
use crate::external::postgres::server::{Server, held};
use crate::external::postgres::wal::{self, SEGMENT};

/// How long the system tries to reach a host that does not answer.
const CONNECT: Duration = Duration::from_secs(127);

/// Follows the primary until the server is stopped or promoted.
pub(in crate::external::postgres) async fn follow(
    server: Arc<Server>,
    address: String,
    reach: Reach,
) {
    while server.standby() && !server.stopped() {
        let target = server.upstream();
        let Some((upstream, slot)) = &target else {
            let changed = server.changed.notified();
            if server.upstream().is_none() {
                changed.await;
            }
            continue;
        };
        let attempt =
            Attempt { server: &server, upstream, slot: slot.as_deref(), address: &address };
        let outcome = tokio::select! {
            biased;
            () = left(&server, &target) => None,
            complaint = attempt.run(&reach) => Some(complaint),
        };
        held(&server.following).stream = None;
        let Some((text, detail)) = outcome else {
            if !server.stopped() {
                let text = "terminating walreceiver process due to administrator command";
                server.say("FATAL", text);
            }
            continue;
        };
        server.say("FATAL", &text);
        if !detail.is_empty() {
            server.say("DETAIL", &detail);
        }
        let pause = u64::try_from(server.number("wal_retrieve_retry_interval")).unwrap_or(5000);
        tokio::select! {
            biased;
            () = left(&server, &target) => {}
            () = tokio::time::sleep(Duration::from_millis(pause)) => {}
        }
    }
}

/// Until there is nothing more to receive from there.
async fn left(server: &Server, target: &Option<(Conninfo, Option<String>)>) {
    loop {
        let changed = server.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if server.stopped() || !server.standby() || server.upstream() != *target {
            return;
        }
        changed.await;
    }
}

/// Why a stream ended: message and detail of the log.
type Complaint = (String, String);

struct Attempt<'a> {
    server: &'a Arc<Server>,
    upstream: &'a Conninfo,
    slot: Option<&'a str>,
    address: &'a str,
}

impl Attempt<'_> {
    async fn run(&self, reach: &Reach) -> Complaint {
        let channel = match self.connect(reach).await {
            Ok(channel) => channel,
            Err(text) => {
                let text = format!("could not connect to the primary server: {text}");
                return (text, String::new());
            }
        };
        if let Err(complaint) = self.begin(&channel) {
            return complaint;
        }
        self.receive(&channel, reach).await
    }

    async fn connect(&self, reach: &Reach) -> Result<Channel, String> {
        let (primary, own) = connect(reach, self.upstream, self.address).await?;
        let login = Login {
            user: self.upstream.get("user").unwrap_or(""),
            password: self.upstream.get("password"),
            application: self.upstream.application().unwrap_or(""),
            address: self.address,
        };
        primary.admit(&login).map_err(|refused| {
            format!("{}: {}", self.upstream.server(&own), refused.told(self.upstream))
        })?;
        Ok(primary.open(&login, "startup", (&own, reach.links())))
    }

    /// What is compared and asked before the first byte.
    fn begin(&self, channel: &Channel) -> Result<(), Complaint> {
        let plain = |text: String| (text, String::new());
        let (theirs, their_timeline) = {
            let data = channel.server.data();
            (data.identifier, data.wal.clone())
        };
        let (ours, position, timeline) = {
            let data = self.server.data();
            (data.identifier, data.wal.position, data.wal.timeline)
        };
        if theirs != ours {
            let detail = format!(
                "The primary's identifier is {theirs}, the standby's identifier is {ours}."
            );
            let text = "database system identifier differs between the primary and standby";
            return Err((text.to_owned(), detail));
        }
        if their_timeline.timeline < timeline {
            return Err(plain(format!(
                "highest timeline {} of the primary is behind recovery timeline {timeline}",
                their_timeline.timeline
            )));
        }
        if let Some(slot) = self.slot {
            channel.take(slot).map_err(|refusal| {
                plain(format!("could not start WAL streaming: ERROR:  {}", refusal.message))
            })?;
        }
        let start = position / SEGMENT * SEGMENT;
        let shown = wal::shown(start);
        let text = format!("started streaming WAL from primary at {shown} on timeline {timeline}");
        self.server.say("LOG", &text);
        let broken = |message: String| {
            plain(format!("could not receive data from WAL stream: ERROR:  {message}"))
        };
        channel.can_send(start).map_err(|refusal| broken(refusal.message))?;
        if !their_timeline.continues(timeline, position) {
            return Err(broken(format!(
                "requested starting point {shown} on timeline {timeline} is not in this server's \
                 history"
            )));
        }
        channel.feeds(self.server);
        held(&self.server.following).stream = Some(Stream {
            pid: channel.pid,
            start,
            timeline,
            slot: self.slot.map(str::to_owned),
            address: self.upstream.host().to_owned(),
            upstream: self.upstream.clone(),
        });
        Ok(())
    }

    /// Receives and replays until one of the two ends it.
    async fn receive(&self, channel: &Channel, reach: &Reach) -> Complaint {
        let broken =
            |text: &str| (format!("could not receive data from WAL stream: {text}"), String::new());
        loop {
            let (theirs, ours) =
                (channel.server.changed.notified(), self.server.changed.notified());
            let cut = reach.links().changed();
            tokio::pin!(theirs, ours, cut);
            theirs.as_mut().enable();
            ours.as_mut().enable();
            cut.as_mut().enable();
            if !channel.passes() {
                if tokio::time::timeout(TIMEOUT, cut).await.is_err() {
                    return ("terminating walreceiver due to timeout".to_owned(), String::new());
                }
                continue;
            }
            if channel.server.stopped() {
                return broken(GONE);
            }
            if channel.ended() {
                return broken("FATAL:  terminating connection due to administrator command");
            }
            let news = channel.server.data().wal.position > self.server.data().wal.position;
            if news {
                let pause = Duration::from_millis(1 + self.server.random() % 5);
                tokio::time::sleep(pause + self.server.condition().replaying).await;
                if channel.server.stopped() {
                    return broken(GONE);
                }
            }
            deliver(channel, self.server);
            tokio::select! {
                biased;
                () = theirs => {}
                () = ours => {}
                () = cut => {}
            }
        }
    }
}

const GONE: &str = "server closed the connection unexpectedly\n\t\tThis probably means the server \
                    terminated abnormally\n\t\tbefore or while processing the request.";

/// Sends what the standby lacks, and notes what it has.
fn deliver(channel: &Channel, standby: &Server) {
    let sent = channel.server.data().clone();
    let flushed = sent.wal.position;
    let replayed = standby.absorb(&sent);
    channel.confirm(flushed, Some(replayed));
}

/// Connects as libpq does: the server and its address, or the complaint.
pub(super) async fn connect(
    reach: &Reach,
    to: &Conninfo,
    from: &str,
) -> Result<(Arc<Server>, String), String> {
    let question = "\n\tIs the server running on that host and accepting TCP/IP connections?";
    match reach.find::<Server>(from, to.host(), to.port()) {
        Ok((address, server)) if !server.stopped() && server.now() >= server.ready_at => {
            Ok((server, address))
        }
        Ok((address, _)) | Err(Unreached::Refused(address)) => {
            Err(format!("{}: Connection refused{question}", to.server(&address)))
        }
        Err(Unreached::Unknown) => {
            let host = to.host();
            Err(format!(
                "could not translate host name \"{host}\" to address: Name or service not known"
            ))
        }
        Err(Unreached::Lost(address)) => {
            let limit = to.get("connect_timeout").and_then(|text| text.parse().ok());
            let limit = limit.filter(|seconds: &u64| *seconds > 0).map(Duration::from_secs);
            tokio::time::sleep(limit.unwrap_or(CONNECT)).await;
            Err(match limit {
                Some(_) => format!("{}: timeout expired", to.server(&address)),
                None => format!("{}: Connection timed out{question}", to.server(&address)),
            })
        }
    }
}

impl Server {
    /// Replays what was sent, as far as its settings allow; answers how far it is.
    pub(super) fn absorb(&self, sent: &Data) -> u64 {
        let position = self.data().wal.position;
        {
            let mut following = held(&self.following);
            following.received = Some(sent.wal.position);
            if following.paused || sent.wal.position <= position {
                return position;
            }
        }
        if self.condition().disk_full {
            self.say("FATAL", "could not extend file \"base/5/16388\": No space left on device");
            self.say("HINT", "Check free disk space.");
            self.end_of_startup();
            return position;
        }
        let needs = self.data().needs != sent.needs;
        if needs {
            self.data().needs.clone_from(&sent.needs);
            if let Some(lower) = self.lower(&sent.needs) {
                self.pause_over(&lower);
                return position;
            }
        }
        self.data().replay(sent);
        self.changed.notify_waiters();
        sent.wal.position
    }

    fn pause_over(&self, lower: &str) {
        let text = "hot standby is not possible because of insufficient parameter settings";
        self.say("WARNING", text);
        self.say("DETAIL", lower);
        self.say("LOG", "recovery has paused");
        self.say("DETAIL", "If recovery is unpaused, the server will shut down.");
        let hint =
            "You can then restart the server after making the necessary configuration changes.";
        self.say("HINT", hint);
        let mut following = held(&self.following);
        (following.paused, following.doomed) = (true, true);
    }
}

impl Following {
    /// As `pg_get_wal_replay_pause_state` says it.
    pub(in crate::external::postgres) fn state(&self) -> &'static str {
        if self.paused { "paused" } else { "not paused" }
    }
}
