//! Facts and actions outside the watched objects: answers questions, carries actions out.
//!
//! Speaks protocols and decides nothing; what to ask and to say is the plan's. Must not show a
//! secret in any error.

pub mod dial;
mod exec;
pub mod reach;
pub mod sql;
pub(crate) mod word;
pub(crate) mod zookeeper;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use phased::fact::{
    Fate, Password, SecretKey, SeenEvent, SqlOutcome, SqlPiece, SqlRequest, ZooKeeperOutcome,
};
use phased::step::{Action, ExecRequest, Request};
use phased::{Answer, KindRef, ObjectId, Question, Reply, Trouble};
use serde_json::Value;

use crate::api::Server;
use crate::random::{Random, password};
use dial::Dialer;

/// Whatever answers questions and carries out actions.
pub trait Outside: Send + Sync + 'static {
    /// Answers one question.
    fn answer<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer>;

    /// Carries out one action. What the server refuses is a trouble.
    fn act<'a>(&'a self, action: &'a Action) -> BoxFuture<'a, Result<(), Trouble>>;
}

/// The real outside: the API server for live reads, and connections through a dialer.
pub struct World {
    /// Live reads.
    pub server: Server,
    /// Connections.
    pub dialer: Arc<dyn Dialer>,
    /// Wrong passwords.
    pub random: Arc<dyn Random>,
}

const SECRET: KindRef =
    KindRef { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true };
/// Events, by their older API, which every cluster has.
pub(crate) const EVENT: KindRef =
    KindRef { group: "", version: "v1", kind: "Event", plural: "events", namespaced: true };

/// How many Events about one object are looked at.
const EVENTS_EACH: usize = 20;

/// A credential that could not be read.
enum Missing {
    Absent(String),
    Unread(Trouble),
}

impl Outside for World {
    fn answer<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        Box::pin(async move {
            match question {
                Question::Object(id) => {
                    let found = self.server.get(id).await.map_err(|e| e.trouble())?;
                    Ok(Reply::Object(found))
                }
                Question::Events { namespace, about } => {
                    events(&self.server, namespace, about).await
                }
                Question::Reach(reach) => reach::attempt(self.dialer.as_ref(), reach).await,
                Question::Sql(request) => self.sql(request).await.map(Reply::Sql),
                Question::Word(request) => {
                    Ok(Reply::Word(word::say(self.dialer.as_ref(), request).await))
                }
                Question::ZooKeeper(request) if request.only_reads() => {
                    Ok(Reply::ZooKeeper(zookeeper::run(self.dialer.as_ref(), request).await))
                }
                Question::ZooKeeper(_) => Err(Trouble {
                    fate: Fate::WeAreWrong,
                    reason: "QuestionChanges".to_owned(),
                    message: "a question to ZooKeeper would change something".to_owned(),
                }),
            }
        })
    }

    fn act<'a>(&'a self, action: &'a Action) -> BoxFuture<'a, Result<(), Trouble>> {
        Box::pin(async move {
            match &action.request {
                Request::Sql(request) => sql_done(action, self.sql(request).await?),
                Request::ZooKeeper(request) => {
                    let outcome = zookeeper::run(self.dialer.as_ref(), request).await;
                    zookeeper_done(action, outcome)
                }
                Request::Exec(request) => self.exec(action, request).await,
            }
        })
    }
}

impl World {
    async fn sql(&self, request: &SqlRequest) -> Result<SqlOutcome, Trouble> {
        let secret = match &request.password {
            Password::Wrong => Ok(password(self.random.as_ref(), 32).into_bytes()),
            Password::Secret(key) => self.value(key).await,
        };
        let secret = match secret {
            Ok(value) => value,
            Err(Missing::Absent(message)) => return Ok(SqlOutcome::NoPassword { message }),
            Err(Missing::Unread(trouble)) => return Err(trouble),
        };
        let mut statements = Vec::new();
        for text in &request.statements {
            match self.resolve(&text.0).await {
                Ok(statement) => statements.push(statement),
                Err(Missing::Absent(message)) => return Ok(SqlOutcome::NoPassword { message }),
                Err(Missing::Unread(trouble)) => return Err(trouble),
            }
        }
        let session = sql::Session { request, password: &secret, statements: &statements };
        let bound = Duration::from_secs(u64::from(request.timeout_seconds) * 3);
        let outcome = tokio::time::timeout(bound, session.run(self.dialer.as_ref())).await;
        Ok(outcome.unwrap_or_else(|_| SqlOutcome::Unreachable {
            message: format!("no answer from {}:{} in time", request.host, request.port),
        }))
    }

    async fn exec(&self, action: &Action, request: &ExecRequest) -> Result<(), Trouble> {
        let mut input = String::new();
        for line in &request.input {
            let line = self.resolve(&line.0).await.map_err(|missing| match missing {
                Missing::Absent(message) => world("PasswordMissing", message),
                Missing::Unread(trouble) => trouble,
            })?;
            input.push_str(&line);
            input.push('\n');
        }
        let found = exec::run(&self.server, request, &input).await;
        found.map_err(|trouble| Trouble {
            message: format!("{}: {}", action.name, trouble.message),
            ..trouble
        })
    }

    async fn resolve(&self, pieces: &[SqlPiece]) -> Result<String, Missing> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                SqlPiece::Text(part) => text.push_str(part),
                SqlPiece::Verifier(key) => {
                    let value = self.value(key).await?;
                    text.push('\'');
                    text.push_str(&postgres_protocol::password::scram_sha_256(&value));
                    text.push('\'');
                }
            }
        }
        Ok(text)
    }

    async fn value(&self, key: &SecretKey) -> Result<Vec<u8>, Missing> {
        let id = ObjectId::new(SECRET, key.namespace.clone(), key.name.clone());
        let found = self.server.get(&id).await.map_err(|e| Missing::Unread(e.trouble()))?;
        let absent =
            |what: &str| Missing::Absent(format!("Secret {}/{}: {what}", key.namespace, key.name));
        let secret = found.ok_or_else(|| absent("does not exist"))?;
        secret_value(&secret.value, &key.key)
            .filter(|value| !value.is_empty())
            .ok_or_else(|| absent(&format!("key {} is missing or empty", key.key)))
    }
}

fn sql_done(action: &Action, outcome: SqlOutcome) -> Result<(), Trouble> {
    match outcome {
        SqlOutcome::Rows(_) => Ok(()),
        SqlOutcome::Refused { code, message, .. } => {
            Err(world(&format!("SQLSTATE {code}"), format!("{}: {message}", action.name)))
        }
        SqlOutcome::Unreachable { message } | SqlOutcome::NoPassword { message } => {
            Err(world("Unreachable", format!("{}: {message}", action.name)))
        }
    }
}

fn zookeeper_done(action: &Action, outcome: ZooKeeperOutcome) -> Result<(), Trouble> {
    match outcome {
        ZooKeeperOutcome::Done(_) => Ok(()),
        ZooKeeperOutcome::Refused { code, call } => {
            let message = format!("{}: call {call} was refused with error {code}", action.name);
            Err(world(&format!("KeeperException {code}"), message))
        }
        ZooKeeperOutcome::Unreachable { message } => {
            Err(world("Unreachable", format!("{}: {message}", action.name)))
        }
    }
}

/// Events about these objects, oldest first, at most [`EVENTS_EACH`] for each.
pub(crate) async fn events(server: &Server, namespace: &str, about: &[String]) -> Answer {
    let mut seen = Vec::new();
    for uid in about {
        let fields = format!("involvedObject.uid={uid}");
        let list = server.list(EVENT, namespace, &fields).await;
        let mut of_one: Vec<SeenEvent> =
            list.map_err(|e| e.trouble())?.iter().filter_map(|e| read_event(&e.value)).collect();
        of_one.sort();
        let skip = of_one.len().saturating_sub(EVENTS_EACH);
        seen.extend(of_one.into_iter().skip(skip));
    }
    seen.sort();
    Ok(Reply::Events(seen))
}

/// The bytes of one key of a Secret's data.
pub(crate) fn secret_value(secret: &Value, key: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    let text = secret.get("data")?.get(key)?.as_str()?;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

fn read_event(event: &Value) -> Option<SeenEvent> {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let seen = ["/lastTimestamp", "/eventTime", "/firstTimestamp", "/metadata/creationTimestamp"]
        .iter()
        .find_map(|path| event.pointer(path)?.as_str()?.parse().ok())?;
    Some(SeenEvent {
        last_seen: seen,
        about: text("/involvedObject/uid").to_owned(),
        object: format!("{}/{}", text("/involvedObject/kind"), text("/involvedObject/name")),
        kind: text("/type").to_owned(),
        reason: text("/reason").to_owned(),
        message: text("/message").to_owned(),
    })
}

/// A trouble of the world.
pub(crate) fn world(reason: &str, message: impl Into<String>) -> Trouble {
    Trouble { fate: Fate::WorldMayHeal, reason: reason.to_owned(), message: message.into() }
}
