//! `pg_basebackup`: a copy of a primary's data, with the log that was written meanwhile.
//!
//! Runs in a task of its own; whoever started it puts the result onto a volume. Must not know volumes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::receiver::connect;
use super::sender::{Channel, Login, TIMEOUT};
use crate::external::network::Reach;
use crate::external::postgres::conninfo::Conninfo;
use crate::external::postgres::data::Data;
use crate::external::postgres::server::{Server, held};

/// What a copy was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The server to copy, everything filled in.
    pub(crate) from: Conninfo,
    pub(crate) slot: Option<String>,
    /// `-C`: the slot is to be made.
    pub(crate) create_slot: bool,
    /// The folder as the program was told it.
    pub(crate) folder: String,
    /// Whether the folder was there before.
    pub(crate) existed: bool,
    /// Address of the pod.
    pub(crate) address: String,
    /// How long the copy takes by itself.
    pub(crate) takes: Duration,
}

/// How far a copy is.
#[derive(Default)]
pub(crate) struct Progress {
    /// Files are being written.
    pub(crate) began: bool,
    /// The copy, or the program's last words.
    pub(crate) done: Option<Result<Box<Data>, String>>,
}

/// A copy on its way; it ends with this value.
pub(crate) struct Backup {
    progress: Arc<Mutex<Progress>>,
    task: tokio::task::JoinHandle<()>,
}

impl Backup {
    /// Begins one.
    pub(crate) fn begin(order: Order, reach: Reach, waker: Arc<dyn Fn() + Send + Sync>) -> Backup {
        let progress = Arc::new(Mutex::new(Progress::default()));
        let shared = progress.clone();
        let task = tokio::spawn(async move {
            let done = run(&order, &reach, &shared, &waker).await;
            held(&shared).done = Some(done.map(Box::new));
            waker();
        });
        Backup { progress, task }
    }

    /// Looks how far it is.
    pub(crate) fn progress<R>(&self, look: impl FnOnce(&mut Progress) -> R) -> R {
        look(&mut held(&self.progress))
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    order: &Order,
    reach: &Reach,
    progress: &Mutex<Progress>,
    waker: &Arc<dyn Fn() + Send + Sync>,
) -> Result<Data, String> {
    let failed = |text: &str| format!("pg_basebackup: error: {text}\n");
    let (primary, own) =
        connect(reach, &order.from, &order.address).await.map_err(|text| failed(&text))?;
    let login = Login {
        user: order.from.get("user").unwrap_or(""),
        password: order.from.get("password"),
        application: order.from.application().unwrap_or(""),
        address: &order.address,
    };
    let refused = primary.admit(&login).err();
    if let Some(refused) = refused {
        return Err(failed(&format!("{}: {}", order.from.server(&own), refused.told(&order.from))));
    }
    let _copier = primary.open(&login, "backup", (&own, reach.links()));
    primary.checkpoint();
    held(progress).began = true;
    waker();
    let undone = |text: String| format!("{}{}", text, removed(order));
    let stream = stream(order, &primary, &login, (&own, reach)).map_err(undone)?;
    copy(&primary, &stream, order.takes).await.map_err(|text| undone(failed(&text)))?;
    let data = primary.data().copied();
    stream.confirm(data.wal.position, None);
    Ok(data)
}

/// The second connection, which receives the log.
fn stream(
    order: &Order,
    primary: &Arc<Server>,
    login: &Login,
    (own, reach): (&str, &Reach),
) -> Result<Channel, String> {
    let failed = |text: &str| format!("pg_basebackup: error: {text}\n");
    if let (true, Some(name)) = (order.create_slot, &order.slot) {
        let mut data = primary.data();
        if data.slots.contains_key(name) {
            return Err(failed(&format!(
                "could not send replication command \"CREATE_REPLICATION_SLOT \"{name}\" PHYSICAL ( \
                 RESERVE_WAL)\": ERROR:  replication slot \"{name}\" already exists"
            )));
        }
        let restart = Some(data.wal.redo);
        data.slots.insert(name.clone(), super::super::wal::Slot { restart, ..Default::default() });
    }
    primary.admit(login).map_err(|refused| {
        failed(&format!("{}: {}", order.from.server(own), refused.told(&order.from)))
    })?;
    let channel = primary.open(login, "startup", (own, reach.links()));
    if let Some(slot) = &order.slot {
        channel.take(slot).map_err(|refusal| {
            let text = format!(
                "could not send replication command \"START_REPLICATION\": ERROR:  {}",
                refusal.message
            );
            failed(&text) + &failed("background process terminated unexpectedly")
        })?;
    }
    let redo = primary.data().wal.redo;
    channel.confirm(redo, None);
    Ok(channel)
}

/// Waits until everything is copied, or the server or the way to it is gone.
async fn copy(primary: &Arc<Server>, stream: &Channel, takes: Duration) -> Result<(), String> {
    let gone = "server closed the connection unexpectedly\n\tThis probably means the server terminated \
                abnormally\n\tbefore or while processing the request.";
    let end = tokio::time::Instant::now() + takes + primary.condition().copying;
    loop {
        let changed = primary.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if primary.stopped() || stream.ended() {
            return Err(format!("could not read COPY data: {gone}"));
        }
        tokio::select! {
            biased;
            () = changed => {}
            () = tokio::time::sleep_until(end) => break,
        }
    }
    if !stream.passes() {
        tokio::time::sleep(TIMEOUT).await;
        return Err(
            "could not read COPY data: could not receive data from server: Connection timed \
                    out"
            .to_owned(),
        );
    }
    // The log is received as it is written.
    let position = primary.data().wal.position;
    stream.confirm(position, None);
    Ok(())
}

/// What the program says when it cleans up after itself.
fn removed(order: &Order) -> String {
    let what = if order.existed { "contents of data directory" } else { "data directory" };
    format!("pg_basebackup: removing {what} \"{}\"\n", order.folder)
}
