//! Who listens where: pod addresses and hosts outside the cluster, joined by in-memory streams.
//!
//! Must not resolve Service names; `World` does, from the store.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;

/// Answers one connection from a client's address in a task of its own; false refuses it.
pub type Listener = Arc<dyn Fn(DuplexStream, &str) -> bool + Send + Sync>;

/// How a host outside the cluster behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dialogue {
    /// Connections are refused.
    Refuse,
    /// Connections are accepted, and nothing is ever said.
    Silent,
    /// The connection is never made: packets are dropped.
    Drop,
    /// Answers every HTTP request with this status.
    Status(u16),
    /// Redirects every HTTP request to this location.
    Redirect(String),
    /// Starts a successful answer whose body never ends.
    Endless,
}

const BUFFER: usize = 64 * 1024;
/// Address from which clients inside the cluster come.
const CLIENT: &str = "10.244.255.10";

/// Listening addresses.
#[derive(Default)]
pub struct Network {
    pub(crate) links: Arc<Links>,
    reach: Option<Reach>,
    waker: Option<Arc<dyn Fn() + Send + Sync>>,
    listeners: BTreeMap<(String, u16), Listener>,
    inside: BTreeMap<(String, u16), Listener>,
    attached: BTreeMap<String, Arc<dyn Any + Send + Sync>>,
    hosts: BTreeMap<(String, u16), Dialogue>,
}

impl Network {
    /// Starts listening.
    pub fn listen(&mut self, host: &str, port: u16, listener: Listener) {
        self.listeners.insert((host.to_owned(), port), listener);
    }

    /// Starts listening on a pod's loopback address, where port-forwards arrive.
    pub fn listen_inside(&mut self, host: &str, port: u16, listener: Listener) {
        self.inside.insert((host.to_owned(), port), listener);
    }

    /// Keeps the handle of what runs at an address, for tests to find.
    pub fn attach(&mut self, host: &str, handle: Arc<dyn Any + Send + Sync>) {
        self.attached.insert(host.to_owned(), handle);
    }

    /// The handle of what runs at an address.
    pub fn attached<T: Any + Send + Sync>(&self, host: &str) -> Option<Arc<T>> {
        self.attached.get(host)?.clone().downcast().ok()
    }

    /// Ends everything at an address.
    pub fn leave(&mut self, host: &str) {
        self.listeners.retain(|key, _| key.0 != host);
        self.inside.retain(|key, _| key.0 != host);
        self.attached.remove(host);
    }

    /// Connects to a pod's loopback address, as a port-forward does.
    ///
    /// # Errors
    /// `ConnectionRefused` when nobody listens there.
    pub fn forward(&self, host: &str, port: u16) -> io::Result<DuplexStream> {
        let (near, far) = tokio::io::duplex(BUFFER);
        match self.inside.get(&(host.to_owned(), port)) {
            Some(listener) if listener(far, "127.0.0.1") => Ok(near),
            _ => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }

    /// Stops listening; open connections are the listener's own affair.
    pub fn close(&mut self, host: &str, port: u16) {
        self.listeners.remove(&(host.to_owned(), port));
    }

    /// Joins programs that connect by themselves to the rest of the world.
    pub(crate) fn join(&mut self, reach: Reach, waker: Arc<dyn Fn() + Send + Sync>) {
        (self.reach, self.waker) = (Some(reach), Some(waker));
    }

    /// How a program finds others; none where there is nobody else.
    pub(crate) fn reach(&self) -> Option<Reach> {
        self.reach.clone()
    }

    /// Makes the kubelet look again, from a task that has changed something.
    pub(crate) fn waker(&self) -> Arc<dyn Fn() + Send + Sync> {
        self.waker.clone().unwrap_or_else(|| Arc::new(|| ()))
    }

    /// Nothing passes between two addresses any more.
    pub fn cut(&mut self, one: &str, other: &str) {
        self.links.change(|cuts| cuts.insert(pair(one, other)));
    }

    /// Takes a cut back.
    pub fn mend(&mut self, one: &str, other: &str) {
        self.links.change(|cuts| cuts.remove(&pair(one, other)));
    }

    /// Nothing reaches an address or comes from it, as when its node has lost the network.
    pub fn isolate(&mut self, address: &str) {
        self.links.change(|cuts| cuts.insert(pair(address, "")));
    }

    /// Takes an isolation back.
    pub fn rejoin(&mut self, address: &str) {
        self.links.change(|cuts| cuts.remove(&pair(address, "")));
    }

    /// The program behind an address and port, for one at `from`.
    pub(crate) fn find<T: Any + Send + Sync>(
        &self,
        from: &str,
        address: &str,
        port: u16,
    ) -> Result<Arc<T>, Unreached> {
        if !self.links.passes(from, address) {
            return Err(Unreached::Lost(address.to_owned()));
        }
        let listens = self.listeners.contains_key(&(address.to_owned(), port));
        let found = self.attached(address).filter(|_| listens);
        found.ok_or_else(|| Unreached::Refused(address.to_owned()))
    }

    /// Says how a host outside the cluster behaves from now on.
    pub fn host(&mut self, host: &str, port: u16, dialogue: Dialogue) {
        self.hosts.insert((host.to_owned(), port), dialogue);
    }

    /// Whether an outside host is known by this name.
    pub(crate) fn knows(&self, host: &str, port: u16) -> bool {
        self.hosts.contains_key(&(host.to_owned(), port))
    }

    /// Connects. `Drop` is reported as `TimedOut` for the caller to wait out.
    ///
    /// # Errors
    /// `ConnectionRefused` when nobody listens; `TimedOut` when packets are dropped.
    pub fn connect(&self, host: &str, port: u16) -> io::Result<DuplexStream> {
        let key = (host.to_owned(), port);
        if !self.links.passes(CLIENT, host) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (near, far) = tokio::io::duplex(BUFFER);
        if let Some(listener) = self.listeners.get(&key) {
            return match listener(far, CLIENT) {
                true => Ok(near),
                false => Err(io::ErrorKind::ConnectionRefused.into()),
            };
        }
        match self.hosts.get(&key) {
            None | Some(Dialogue::Refuse) => Err(io::ErrorKind::ConnectionRefused.into()),
            Some(Dialogue::Drop) => Err(io::ErrorKind::TimedOut.into()),
            Some(other) => {
                tokio::spawn(talk(far, other.clone()));
                Ok(near)
            }
        }
    }
}

/// Which addresses do not reach each other; `""` stands for everybody.
#[derive(Default)]
pub(crate) struct Links {
    cuts: Mutex<BTreeSet<(String, String)>>,
    changed: Notify,
}

fn pair(one: &str, other: &str) -> (String, String) {
    (one.min(other).to_owned(), one.max(other).to_owned())
}

impl Links {
    fn change(&self, change: impl FnOnce(&mut BTreeSet<(String, String)>) -> bool) {
        change(&mut self.cuts.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_waiters();
    }

    /// Whether the two reach each other.
    pub(crate) fn passes(&self, one: &str, other: &str) -> bool {
        let cuts = self.cuts.lock().unwrap_or_else(PoisonError::into_inner);
        let ways = [pair(one, other), pair(one, ""), pair(other, "")];
        !ways.iter().any(|way| cuts.contains(way))
    }

    /// The next change.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

/// Why another program is not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unreached {
    /// No address has this name.
    Unknown,
    /// Nobody listens at this address.
    Refused(String),
    /// Nothing comes back from this address.
    Lost(String),
}

/// What finds an address by name, and hands out the network it is in.
pub(crate) trait Directory: Send + Sync {
    /// The address and port that a name means now.
    fn resolve(&self, host: &str, port: u16) -> Result<(String, u16), Unreached>;

    /// Looks into the network.
    fn look(&self, look: &mut dyn FnMut(&Network));
}

/// How a program's own tasks find others.
#[derive(Clone)]
pub(crate) struct Reach {
    directory: Arc<dyn Directory>,
    links: Arc<Links>,
}

impl Reach {
    pub(crate) fn new(directory: Arc<dyn Directory>, links: Arc<Links>) -> Reach {
        Reach { directory, links }
    }

    pub(crate) fn links(&self) -> &Arc<Links> {
        &self.links
    }

    /// Whether some address answers to a name now.
    pub(crate) fn resolves(&self, host: &str, port: u16) -> bool {
        self.directory.resolve(host, port).is_ok()
    }

    /// The program behind a name and port, with its address.
    pub(crate) fn find<T: Any + Send + Sync>(
        &self,
        from: &str,
        host: &str,
        port: u16,
    ) -> Result<(String, Arc<T>), Unreached> {
        let (address, port) = self.directory.resolve(host, port)?;
        let mut found = Err(Unreached::Refused(address.clone()));
        self.directory.look(&mut |network| found = network.find(from, &address, port));
        found.map(|program| (address, program))
    }
}

/// Plays an outside host on one connection until the other side goes away.
async fn talk(mut stream: DuplexStream, dialogue: Dialogue) {
    let mut buffer = [0_u8; 4096];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let answer = match &dialogue {
            Dialogue::Refuse | Dialogue::Silent | Dialogue::Drop => continue,
            Dialogue::Status(code) => {
                format!("HTTP/1.1 {code} Model\r\ncontent-length: 0\r\n\r\n")
            }
            Dialogue::Redirect(location) => {
                format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
            }
            Dialogue::Endless => "HTTP/1.1 200 OK\r\ncontent-length: 1099511627776\r\n\r\n".into(),
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        if dialogue == Dialogue::Endless {
            while stream.write_all(&buffer).await.is_ok() {}
            return;
        }
    }
}
