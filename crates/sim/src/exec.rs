//! Commands in containers, over the websocket of `pods/exec` (`v5.channel.k8s.io`, `v4.channel.k8s.io`).
//!
//! Each frame is a channel byte and payload: standard input, output and error, then the outcome as a
//! `Status`; of version 5, a close frame ends standard input. What runs is somebody else's affair: the
//! models', or that of a node outside of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures::{SinkExt, StreamExt};
use http::Response;
use http::request::Parts;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_tungstenite::tungstenite::Message;

use crate::builtin::field;
use crate::cluster::Core;
use crate::reply::{Broken, ReplyBody};
use crate::request::Call;
use crate::status::Failure;
use crate::store::Key;
use crate::upgrade::{self, Socket, Talk};

/// A command to be run.
pub struct Command {
    /// The pod as stored.
    pub pod: Value,
    /// Name of the container.
    pub container: String,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Where the program reads its input, and writes.
    pub streams: Streams,
}

/// The program's ends of its three streams. Dropping them ends them.
pub struct Streams {
    /// Standard input.
    pub input: DuplexStream,
    /// Standard output.
    pub output: DuplexStream,
    /// Standard error.
    pub error: DuplexStream,
}

/// The end of a command: its exit code, or why it could not be run.
pub type Ending = Pin<Box<dyn Future<Output = Result<i32, String>> + Send>>;

/// Runs commands in containers.
pub trait Exec: Send + Sync {
    /// Runs one to its end.
    fn exec(&self, command: Command) -> Ending;
}

/// What becomes of the outcome of a command whose client is hit by a fault.
pub(crate) type Epilogue = Box<dyn FnOnce() + Send>;

const INPUT: u8 = 0;
const OUTPUT: u8 = 1;
const ERROR: u8 = 2;
const OUTCOME: u8 = 3;
const CLOSE: u8 = 255;

/// Whether a call asks for a command.
pub(crate) fn is_exec(call: &Call) -> bool {
    call.place.as_ref().is_some_and(|place| {
        place.group.is_empty() && place.plural == "pods" && place.subresource == "exec"
    })
}

/// The pod and container of a call, if a command can be run there.
pub(crate) fn target(core: &mut Core, call: &Call) -> Result<(Value, String), Failure> {
    let place = call.place.clone().unwrap_or_default();
    let kind = core.kinds.get("", "pods").ok_or_else(Failure::no_such_resource)?;
    let key = Key::new("", "pods", &place.namespace, &place.name);
    let pod = core.read(&kind, &key, 0)?;
    let name = field::name(&pod).to_owned();
    let containers = field::list(&pod, "/spec/containers");
    let asked = call.parameter("container");
    let container = match asked {
        "" => containers.first().map(|one| field::text(one, "/name")),
        asked => containers.iter().map(|one| field::text(one, "/name")).find(|one| *one == asked),
    };
    let Some(container) = container.map(str::to_owned) else {
        let message = format!("container {asked} is not valid for pod {name}");
        return Err(Failure::bad_request(message));
    };
    if field::text(&pod, "/spec/nodeName").is_empty() {
        return Err(Failure::bad_request(format!("pod {name} does not have a host assigned")));
    }
    let statuses = field::list(&pod, "/status/containerStatuses");
    let runs = statuses.iter().any(|status| {
        field::text(status, "/name") == container && status["state"]["running"].is_object()
    });
    if !runs {
        let message =
            format!("unable to upgrade connection: container not found (\"{container}\")");
        return Err(Failure::internal(message));
    }
    Ok((pod, container))
}

/// The words of the command: a query may name them many times.
pub(crate) fn words(call: &Call) -> Vec<String> {
    let query = call.target.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .filter(|(name, _)| *name == "command")
        .map(|(_, word)| crate::request::unescaped(word))
        .collect()
}

/// Switches protocols and runs the command. With an epilogue the outcome is not told, and the epilogue
/// is called when the command has ended.
pub(crate) async fn serve(
    parts: Parts,
    taken: Option<hyper::upgrade::OnUpgrade>,
    exec: Arc<dyn Exec>,
    (pod, container, words): (Value, String, Vec<String>),
    epilogue: Option<Epilogue>,
) -> Result<Response<ReplyBody>, Broken> {
    let fifth = upgrade::offers(&parts, "v5.channel.k8s.io");
    let spoken = if fifth { "v5.channel.k8s.io" } else { "v4.channel.k8s.io" };
    let talk: Talk = Box::new(move |socket| {
        Box::pin(async move {
            let (near_input, input) = tokio::io::duplex(BUFFER);
            let (near_output, output) = tokio::io::duplex(BUFFER);
            let (near_error, error) = tokio::io::duplex(BUFFER);
            let streams = Streams { input, output, error };
            let ending = exec.exec(Command { pod, container, words, streams });
            converse(socket, (near_input, near_output, near_error), ending, epilogue).await;
        })
    });
    upgrade::switch(parts, taken, spoken, talk).await
}

const BUFFER: usize = 64 * 1024;

async fn converse(
    socket: Socket,
    (input, mut output, mut error): (DuplexStream, DuplexStream, DuplexStream),
    mut ending: Ending,
    epilogue: Option<Epilogue>,
) {
    let (mut sink, mut source) = socket.split();
    // Dropped when the client says, or shows, that nothing more comes.
    let mut input = Some(input);
    let (mut told, mut complained) = (vec![0_u8; 4096], vec![0_u8; 4096]);
    let (mut talks, mut complains, mut listens) = (true, true, true);
    let mut ended = None;
    while ended.is_none() || talks || complains {
        let frame = tokio::select! {
            biased;
            read = output.read(&mut told), if talks => {
                framed(OUTPUT, &told, read.unwrap_or(0), &mut talks)
            }
            read = error.read(&mut complained), if complains => {
                framed(ERROR, &complained, read.unwrap_or(0), &mut complains)
            }
            message = source.next(), if listens => {
                match message {
                    Some(Ok(Message::Binary(frame))) => take(&mut input, &frame).await,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => (input, listens) = (None, false),
                    Some(Ok(_)) => {}
                }
                None
            }
            outcome = &mut ending, if ended.is_none() => {
                ended = Some(outcome);
                None
            }
        };
        if let Some(frame) = frame
            && sink.send(Message::Binary(frame.into())).await.is_err()
        {
            (talks, complains, listens) = (false, false, false);
        }
    }
    match (epilogue, ended) {
        (Some(epilogue), _) => epilogue(),
        (None, Some(outcome)) => {
            let mut frame = vec![OUTCOME];
            frame.extend(status(outcome).to_string().into_bytes());
            // A client that is gone needs no outcome.
            let _ = sink.send(Message::Binary(frame.into())).await;
            let _ = sink.close().await;
        }
        (None, None) => {}
    }
}

fn framed(channel: u8, buffer: &[u8], count: usize, open: &mut bool) -> Option<Vec<u8>> {
    *open = count > 0;
    (count > 0).then(|| std::iter::once(channel).chain(buffer[..count].iter().copied()).collect())
}

async fn take(input: &mut Option<DuplexStream>, frame: &[u8]) {
    match frame.split_first() {
        Some((&INPUT, payload)) => {
            if let Some(write) = input
                && write.write_all(payload).await.is_err()
            {
                *input = None;
            }
        }
        Some((&CLOSE, [INPUT, ..])) => *input = None,
        _ => {}
    }
}

/// The outcome, in the words of the kubelet.
fn status(outcome: Result<i32, String>) -> Value {
    match outcome {
        Ok(0) => json!({"metadata": {}, "status": "Success"}),
        Ok(code) => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!(
                "command terminated with non-zero exit code: error executing command, exit code {code}"
            ),
            "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
        }),
        Err(why) => json!({
            "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
            "message": format!("Internal error occurred: {why}"),
            "details": { "causes": [{ "message": why }] },
        }),
    }
}
