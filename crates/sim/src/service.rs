//! The tower service that a `kube::Client` plugs into, and the handles that can crash.
//!
//! Everything a request changes happens between two awaits, so that a dropped future can't leave
//! half a change behind.

mod collection;
mod dispatch;
mod object;
mod pod;
mod review;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};

use crate::cluster::{Cluster, Core};
use crate::exec;
use crate::faults::{ClientId, Crash, Effect, Entry, Life, RuleId, digest};
use crate::reply::{self, Broken, Reply, ReplyBody};
use crate::request::Call;
use crate::status::Failure;
use crate::stream::{self, Dial};
use crate::watch::{Disturbance, Watching};

/// One incarnation of a client: an operator between its start and its crash.
#[derive(Clone)]
pub struct Handle {
    cluster: Cluster,
    id: ClientId,
}

impl Handle {
    /// The service to build a `kube::Client` from.
    pub fn service(&self) -> ApiService {
        ApiService { cluster: self.cluster.clone(), client: self.id, dial: None }
    }

    /// Its number in the request log.
    pub fn id(&self) -> ClientId {
        self.id
    }

    /// Lets it crash at one of its writes; none takes that back.
    pub fn crash_at(&self, crash: Option<Crash>) {
        self.cluster.with(|core| core.faults.crash_at(self.id, crash));
    }

    /// Crashes it now: every request, also those under way, fails from here on for ever.
    pub fn crash(&self) {
        self.cluster.with(|core| core.faults.kill(self.id));
        self.cluster.changed().notify_waiters();
    }

    /// Whether it has crashed.
    pub fn crashed(&self) -> bool {
        self.cluster.with(|core| core.faults.dead(self.id))
    }

    /// Returns once it has crashed.
    pub async fn until_crashed(&self) {
        let changed = self.cluster.changed();
        loop {
            let notified = changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.crashed() {
                return;
            }
            notified.await;
        }
    }

    /// How many write requests it has sent.
    pub fn writes(&self) -> u64 {
        self.cluster.with(|core| core.faults.writes(self.id))
    }
}

impl Cluster {
    /// Opens a client handle; `name` is its user name and what fault rules call it.
    pub fn client(&self, name: &str) -> Handle {
        let id = self.with(|core| core.faults.open(name));
        Handle { cluster: self.clone(), id }
    }

    /// A service for a client that never crashes: a user with a console, a test.
    pub fn service(&self) -> ApiService {
        self.client("kubernetes-admin").service()
    }

    /// Breaks every open watch.
    pub fn cut_watches(&self) {
        self.with(|core| core.faults.cut());
        self.changed().notify_waiters();
    }
}

/// The API as a tower service.
#[derive(Clone)]
pub struct ApiService {
    cluster: Cluster,
    client: ClientId,
    dial: Option<Arc<dyn Dial>>,
}

impl ApiService {
    /// The same service with a way to reach the ports of pods, for port-forward.
    pub fn dialing(mut self, dial: Arc<dyn Dial>) -> ApiService {
        self.dial = Some(dial);
        self
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<ReplyBody>;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Broken>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            let upgrade = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
            let body = body.collect().await.map_err(|_| Broken("request body ended early"))?;
            let call = Call::new(&parts, body.to_bytes());
            if let Some(pod) = stream::forward_target(&call) {
                return stream::forward(
                    &service.cluster,
                    service.dial.clone(),
                    pod,
                    parts,
                    upgrade,
                )
                .await;
            }
            if exec::is_exec(&call) {
                return service.run(call, parts, upgrade).await;
            }
            service.answer(call).await
        })
    }
}

/// What the faults make of one request.
struct Fate {
    life: Life,
    wait: Option<Duration>,
    lost: Option<&'static str>,
    refused: Option<Failure>,
    stale: u64,
    gone: bool,
    disturbance: Disturbance,
}

impl ApiService {
    async fn answer(self, call: Call) -> Result<Response<ReplyBody>, Broken> {
        let fate = self.meet(&call).await?;
        self.carry_out(call, &fate)
    }

    /// What the faults make of a call, once they have let it through.
    async fn meet(&self, call: &Call) -> Result<Fate, Broken> {
        let fate = self.cluster.with(|core| {
            let asked = call.asked(core.faults.client_name(self.client));
            let life = core.faults.live(self.client, call.verb());
            if life == Life::Dead {
                return fate(life, Vec::new(), call);
            }
            fate(life, core.faults.draw(&asked), call)
        });
        if let Some(wait) = fate.wait {
            tokio::time::sleep(wait).await;
        }
        let dead = self.cluster.with(|core| core.faults.dead(self.client));
        if fate.life == Life::Dead || (dead && fate.life == Life::Lives) {
            self.cluster.with(|core| self.log(core, call, 0));
            self.cluster.changed().notify_waiters();
            return Err(Broken("the client has crashed"));
        }
        if let Some(why) = fate.lost.filter(|why| *why == TIMED_OUT) {
            self.cluster.with(|core| self.log(core, call, 0));
            return Err(Broken(why));
        }
        Ok(fate)
    }

    /// Runs a command in a container. A fault after the fact takes hold when the command has ended: a
    /// reply that is lost is its outcome.
    async fn run(
        self,
        call: Call,
        parts: http::request::Parts,
        upgrade: Option<hyper::upgrade::OnUpgrade>,
    ) -> Result<Response<ReplyBody>, Broken> {
        let fate = self.meet(&call).await?;
        let found = self.cluster.with(|core| {
            let found = match &fate.refused {
                Some(failure) => Err(failure.clone()),
                None => exec::target(core, &call).and_then(|target| {
                    let refused = || Failure::not_implemented("pods/exec");
                    core.exec.clone().ok_or_else(refused).map(|exec| (exec, target))
                }),
            };
            let seen = fate.life == Life::Lives && fate.lost.is_none();
            let code = found.as_ref().map_or_else(|failure| failure.code, |_| 101);
            self.log(core, &call, if seen { code } else { 0 });
            if found.is_ok() && fate.life == Life::DiesAfter {
                core.faults.put_off(self.client);
            }
            found
        });
        let (exec, (pod, container)) = match found {
            Ok(found) => found,
            Err(failure) if fate.life == Life::Lives && fate.lost.is_none() => {
                return Ok(reply::refusal(&failure));
            }
            Err(_) => {
                self.cluster.changed().notify_waiters();
                return Err(Broken("the client has crashed, or the reply was lost"));
            }
        };
        let dies = fate.life == Life::DiesAfter;
        let handle = Handle { cluster: self.cluster.clone(), id: self.client };
        let epilogue: exec::Epilogue = Box::new(move || {
            if dies {
                handle.crash();
            }
        });
        let epilogue = (dies || fate.lost.is_some()).then_some(epilogue);
        exec::serve(parts, upgrade, exec, (pod, container, exec::words(&call)), epilogue).await
    }

    fn carry_out(&self, call: Call, fate: &Fate) -> Result<Response<ReplyBody>, Broken> {
        let (result, warnings) = self.cluster.with(|core| {
            let result = match &fate.refused {
                Some(failure) => Err(failure.clone()),
                None => dispatch::serve(
                    core,
                    &call,
                    self.client,
                    &dispatch::Mood {
                        stale: fate.stale,
                        gone: fate.gone,
                        disturbance: fate.disturbance.clone(),
                    },
                ),
            };
            let seen = fate.life == Life::Lives && fate.lost.is_none();
            let code = match &result {
                _ if !seen => 0,
                Ok(Reply::Json { code, .. }) => *code,
                Ok(Reply::NoPage) => 404,
                Ok(_) => 200,
                Err(failure) => failure.code,
            };
            self.log(core, &call, code);
            (result, std::mem::take(&mut core.warnings))
        });
        if fate.life == Life::DiesAfter {
            self.cluster.changed().notify_waiters();
            return Err(Broken("the client has crashed"));
        }
        if let Some(why) = fate.lost {
            return Err(Broken(why));
        }
        let mut response = match result {
            Ok(reply) => self.render(reply),
            Err(failure) => reply::refusal(&failure),
        };
        reply::warn(&mut response, &warnings);
        Ok(response)
    }

    fn render(&self, reply: Reply) -> Response<ReplyBody> {
        match reply {
            Reply::Json { code, value } => reply::json(code, "application/json", &value),
            Reply::Typed { value, content_type } => reply::json(200, &content_type, &value),
            Reply::Text(text) => reply::text(&text),
            Reply::NoPage => reply::no_page(),
            Reply::Watch(plan) => {
                let watching = Watching::new(self.cluster.clone(), *plan);
                let stream = futures::stream::unfold(watching, |mut watching| async move {
                    let chunk = watching.next().await?;
                    Some((chunk.map(http_body::Frame::data), watching))
                });
                let mut response = Response::new(StreamBody::new(stream).boxed_unsync());
                response.headers_mut().insert(
                    http::header::CONTENT_TYPE,
                    http::HeaderValue::from_static("application/json"),
                );
                response
            }
        }
    }

    fn log(&self, core: &mut Core, call: &Call, code: u16) {
        let micros = core.clock.elapsed().as_micros();
        let entry = Entry {
            micros: i64::try_from(micros).unwrap_or(i64::MAX),
            client: self.client,
            verb: call.verb(),
            method: call.method.to_string(),
            path: call.target.clone(),
            agent: call.agent.clone(),
            code,
            digest: digest(&call.body),
        };
        core.faults.record(entry);
    }
}

const TIMED_OUT: &str = "timed out before anything was done";

fn fate(life: Life, effects: Vec<(RuleId, Effect)>, call: &Call) -> Fate {
    let mut fate = Fate {
        life,
        wait: None,
        lost: None,
        refused: None,
        stale: 0,
        gone: false,
        disturbance: Disturbance::default(),
    };
    for (rule, effect) in effects {
        match effect {
            Effect::Respond { code, retry_after } => {
                fate.refused.get_or_insert(refusal(call, code, retry_after));
            }
            Effect::LostReply => fate.lost = fate.lost.or(Some("the reply was lost")),
            Effect::Timeout(after) => {
                fate.wait = fate.wait.max(Some(after));
                fate.lost = Some(TIMED_OUT);
            }
            Effect::Slow(after) => fate.wait = fate.wait.max(Some(after)),
            Effect::Deny { message } => {
                fate.refused.get_or_insert(dispatch::denial(call, &message));
            }
            Effect::Stale(by) => fate.stale = fate.stale.max(by),
            Effect::CutWatch(after) => {
                fate.disturbance.cut_after.get_or_insert((rule, after));
            }
            Effect::SilentWatch(after) => {
                fate.disturbance.silent_after.get_or_insert((rule, after));
            }
            Effect::LoseEvents(nth) => fate.disturbance.lose = Some((rule, nth)),
            Effect::DuplicateEvents => fate.disturbance.duplicate = Some(rule),
            Effect::DelayEvents(by) => fate.disturbance.delay = Some((rule, by)),
            Effect::Gone => fate.gone = true,
        }
    }
    fate
}

/// The error a rule asks for, worded as the real server words errors of that code.
fn refusal(call: &Call, code: u16, retry_after: Option<u32>) -> Failure {
    let mut failure = match code {
        409 => Failure::conflict(format!(
            "Operation cannot be fulfilled on {} \"{}\": the object has been modified; please apply your changes to the latest version and try again",
            call.place.as_ref().map_or(String::new(), dispatch::resource),
            call.place.as_ref().map_or("", |place| place.name.as_str()),
        )),
        410 => Failure::gone("The resourceVersion for the provided list is too old."),
        413 => {
            Failure::new(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
        }
        429 => Failure::too_many(
            "the server has received too many requests and has asked us to try again later",
            None,
        ),
        500 => Failure::internal("etcdserver: request timed out"),
        503 => Failure::new(
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
        ),
        504 => Failure::timeout("Timeout: request did not complete within the allotted timeout"),
        other => Failure::new(other, "", "an error was ordered by a fault rule"),
    };
    if let Some(seconds) = retry_after {
        failure = failure.with(serde_json::json!({ "retryAfterSeconds": seconds }));
    }
    failure
}
