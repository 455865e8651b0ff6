//! A snapshot by live reads, and answers to questions about the cluster: for commands that look and
//! change nothing.
//!
//! Shows what the runner's watches would show, so that a plan made from it is the plan that the
//! operator makes. Must not write, and must not ask what lies outside the cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject, ListParams};
use phased::fact::Fate;
use phased::{Answer, KindRef, Live, ObjectId, Question, Reply, Subject, Trigger, Trouble};

use crate::api::{self, Server};
use crate::external::{self, EVENT};
use crate::store::Store;
use crate::trouble::{ApiError, classify};

/// How many objects one page of a list holds.
const PAGE: u32 = 500;
/// How long one page may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks at a cluster.
#[derive(Clone)]
pub struct Viewer {
    client: Client,
    server: Server,
}

/// A kind that could not be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{} in namespace {namespace} cannot be read: {}", kind.plural, trouble.message)]
pub struct Unread {
    /// The kind.
    pub kind: KindRef,
    /// The namespace.
    pub namespace: String,
    /// Why.
    pub trouble: Trouble,
}

impl Viewer {
    /// A viewer of the cluster behind `client`; a read of one object may take `timeout`.
    pub fn new(client: Client, timeout: Duration) -> Self {
        Self { server: Server::new(client.clone(), timeout), client }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The API of one kind in one namespace, or in all when it is empty.
    pub fn api(&self, kind: KindRef, namespace: &str) -> Api<DynamicObject> {
        api::api(self.client.clone(), kind, namespace)
    }

    /// Reads one object.
    ///
    /// # Errors
    /// Any but "not found", which is `None`.
    pub async fn get(&self, id: &ObjectId) -> Result<Option<Live>, ApiError> {
        self.server.get(id).await
    }

    /// All that the watches of `subject` would show in a namespace; with `only`, of one resource.
    ///
    /// # Errors
    /// When a kind cannot be listed: an absence that was not seen must not be taken for one.
    pub async fn gather(
        &self,
        subject: &dyn Subject,
        namespace: &str,
        only: Option<&str>,
    ) -> Result<Store, Unread> {
        let store = Store::default();
        let mut asked = BTreeSet::new();
        for watch in subject.watches() {
            let named = match (&watch.trigger, only) {
                (Trigger::NameSuffix(_), _) => continue,
                (Trigger::Label(key), Some(name)) => Some(format!("{key}={name}")),
                (Trigger::Label(_) | Trigger::Owner, _) => None,
            };
            let parts: Vec<String> = watch.selector.into_iter().chain(named).collect();
            let selector = parts.join(",");
            if !asked.insert((watch.kind, selector.clone())) {
                continue;
            }
            let listed = self.list(watch.kind, namespace, &selector).await.map_err(|error| {
                let namespace = namespace.to_owned();
                Unread { kind: watch.kind, namespace, trouble: error.trouble() }
            })?;
            for live in listed {
                store.put(&id_of(watch.kind, &live), live);
            }
        }
        Ok(store)
    }

    /// All objects of a kind, page by page; of all namespaces when `namespace` is empty.
    ///
    /// # Errors
    /// As the server answers.
    pub async fn list(
        &self,
        kind: KindRef,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<Live>, ApiError> {
        let api = self.api(kind, namespace);
        let mut params = ListParams::default().limit(PAGE).labels(labels);
        let mut found = Vec::new();
        loop {
            let page = tokio::time::timeout(PATIENCE, api.list(&params));
            let page = page.await.map_err(|_| ApiError::timeout("list"))?.map_err(classify)?;
            let next = page.metadata.continue_.filter(|token| !token.is_empty());
            for object in page.items {
                found.push(api::live(kind, object)?);
            }
            match next {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found),
            }
        }
    }

    /// The Events of a namespace.
    ///
    /// # Errors
    /// As the server answers.
    pub async fn events(&self, namespace: &str) -> Result<Vec<Live>, ApiError> {
        self.list(EVENT, namespace, "").await
    }

    /// Answers a question about the cluster. Whatever lies outside is not asked.
    pub async fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Object(id) => {
                Ok(Reply::Object(self.server.get(id).await.map_err(|e| e.trouble())?))
            }
            Question::Events { namespace, about } => {
                external::events(&self.server, namespace, about).await
            }
            Question::Reach(_) | Question::Sql(_) | Question::Word(_) | Question::ZooKeeper(_) => {
                Err(Trouble {
                    fate: Fate::WorldMayHeal,
                    reason: "NotAsked".to_owned(),
                    message: "not asked from here".to_owned(),
                })
            }
        }
    }
}

fn id_of(kind: KindRef, live: &Live) -> ObjectId {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    ObjectId::new(kind, text(&live.metadata.namespace), text(&live.metadata.name))
}
