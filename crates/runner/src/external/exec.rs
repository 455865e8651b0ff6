//! A command in a container, through the API server's websocket.
//!
//! One run a call, bounded in time and in what is kept of its output. What it is told on standard
//! input is never repeated: neither in an error nor in the log.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{AttachParams, AttachedProcess};
use phased::fact::Fate;
use phased::step::ExecRequest;
use phased::{Live, Trouble};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::world;
use crate::api::Server;
use crate::trouble::{ApiError, classify, root_cause};

/// Bytes of a program's complaints that are kept.
const KEPT: usize = 2048;

/// Runs the command; an error of the program is a trouble with its own words.
pub(super) async fn run(
    server: &Server,
    request: &ExecRequest,
    input: &str,
) -> Result<(), Trouble> {
    let pod = server.get(&request.pod).await.map_err(|e| e.trouble())?;
    may_run(request, pod.as_ref())?;
    let bound = Duration::from_secs(u64::from(request.timeout_seconds));
    let ended = tokio::time::timeout(bound, carry(server, request, input)).await;
    let late = || {
        let message = format!("{}: the command did not end in time", request.pod);
        Err(world("Timeout", message))
    };
    ended.unwrap_or_else(|_| late())
}

/// Whether the pod is still the one that was meant, and its container runs.
fn may_run(request: &ExecRequest, pod: Option<&Live>) -> Result<(), Trouble> {
    let not = |why: &str| world("NotRunning", format!("{} {why}", request.pod));
    let live = pod.ok_or_else(|| not("does not exist"))?;
    if live.uid() != request.uid {
        return Err(not("was made anew"));
    }
    if live.deletion_time().is_some() {
        return Err(not("is being deleted"));
    }
    let read: Pod = live.read().map_err(|e| world("Unreadable", e.to_string()))?;
    let statuses = read.status.and_then(|s| s.container_statuses).unwrap_or_default();
    let runs = statuses.iter().any(|container| {
        container.name == request.container
            && container.state.as_ref().is_some_and(|state| state.running.is_some())
    });
    if runs {
        Ok(())
    } else {
        Err(not(&format!("does not run its container {}", request.container)))
    }
}

async fn carry(server: &Server, request: &ExecRequest, input: &str) -> Result<(), Trouble> {
    let how = AttachParams {
        container: Some(request.container.clone()),
        stdin: true,
        stdout: true,
        stderr: true,
        tty: false,
        max_stdin_buf_size: None,
        max_stdout_buf_size: None,
        max_stderr_buf_size: None,
    };
    let pods = server.pods(&request.pod.namespace);
    let mut process = pods
        .exec(&request.pod.name, &request.command, &how)
        .await
        .map_err(|error| refused(request, error))?;
    let (status, complaints) = converse(&mut process, input).await;
    judge(request, status, &hidden(&complaints, input))
}

/// Says everything, hears everything out, and waits for the end. Standard input stays open until then:
/// an older server can only be told of its end by closing the connection, which loses the outcome.
async fn converse(process: &mut AttachedProcess, input: &str) -> (Option<Status>, String) {
    let (mut stdin, stdout, stderr) = (process.stdin(), process.stdout(), process.stderr());
    let status = process.take_status();
    let say = async {
        if let Some(stdin) = &mut stdin {
            // A program that has ended takes nothing more; its status says why.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let end = async {
        match status {
            Some(status) => status.await,
            None => None,
        }
    };
    let ((), _, complaints, status) = tokio::join!(say, hear(stdout, 0), hear(stderr, KEPT), end);
    (status, complaints)
}

/// Reads to the end and keeps the beginning.
async fn hear(stream: Option<impl AsyncRead + Unpin>, kept: usize) -> String {
    let mut all = Vec::new();
    let mut buffer = [0_u8; 1024];
    if let Some(mut stream) = stream {
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let room = kept.saturating_sub(all.len()).min(count);
            all.extend_from_slice(&buffer[..room]);
        }
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The complaints without any line of the input, should the program repeat one.
fn hidden(complaints: &str, input: &str) -> String {
    let kept = complaints.lines().map(str::trim).filter(|line| !line.is_empty());
    let kept = kept.filter(|line| !quotes(line, input));
    kept.collect::<Vec<_>>().join("; ")
}

/// Whether a line holds a quoted literal of the input, such as a verifier.
fn quotes(line: &str, input: &str) -> bool {
    let literals = input.split('\'').skip(1).step_by(2);
    literals.filter(|literal| literal.len() >= 16).any(|literal| line.contains(&literal[..16]))
}

fn judge(request: &ExecRequest, status: Option<Status>, complaints: &str) -> Result<(), Trouble> {
    let Some(status) = status else {
        let message = format!("{}: the connection broke before the command ended", request.pod);
        return Err(world("ConnectionLost", message));
    };
    if status.status.as_deref() == Some("Success") {
        return Ok(());
    }
    let causes = status.details.and_then(|details| details.causes).unwrap_or_default();
    let exit = causes.into_iter().find(|cause| cause.reason.as_deref() == Some("ExitCode"));
    let program = request.command.first().map_or("the command", String::as_str);
    match exit.and_then(|cause| cause.message) {
        Some(code) if complaints.is_empty() => {
            Err(world(&format!("ExitCode {code}"), format!("{program} ended with {code}")))
        }
        Some(code) => {
            let message = format!("{program} ended with {code}: {complaints}");
            Err(world(&format!("ExitCode {code}"), message))
        }
        None => {
            let said = status.message.unwrap_or_default();
            Err(world("NotRunning", format!("{} does not run {program}: {said}", request.pod)))
        }
    }
}

/// What kept the command from running at all.
fn refused(request: &ExecRequest, error: kube::Error) -> Trouble {
    let said = match error {
        kube::Error::UpgradeConnection(error) => {
            let why = root_cause(&error);
            return world("NotUpgraded", format!("{}: no websocket: {why}", request.pod));
        }
        other => other,
    };
    let code = match &said {
        kube::Error::Api(status) => status.code,
        _ => 0,
    };
    let trouble = classify(said);
    match (code, trouble) {
        (403, ApiError::Trouble { trouble, .. }) => {
            let rule = "the operator needs the verbs get and create of pods/exec (its role in \
                        steadfast manifests has them)";
            Trouble { message: format!("{}; {rule}", trouble.message), ..trouble }
        }
        // A container that is just starting or ending is answered so.
        (400 | 404 | 500, error) => Trouble {
            fate: Fate::WorldMayHeal,
            reason: "NotRunning".to_owned(),
            message: format!("{}: {}", request.pod, error.trouble().message),
        },
        (_, error) => error.trouble(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: &str = "SET a = 'b';\nALTER ROLE p PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a:b';\n";

    #[test]
    fn a_program_that_repeats_its_input_gives_nothing_away() {
        let said = "psql:<stdin>:2: ERROR:  syntax error\n\
                    LINE 1: ALTER ROLE p PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$a\n";
        assert_eq!(hidden(said, INPUT), "psql:<stdin>:2: ERROR:  syntax error");
        assert_eq!(hidden("\nERROR:  b\n", INPUT), "ERROR:  b", "a short literal is no secret");
    }

    #[tokio::test]
    async fn of_an_endless_complaint_the_beginning_is_kept() {
        let endless = tokio::io::repeat(b'x').take(1 << 20);
        assert_eq!(hear(Some(endless), KEPT).await.len(), KEPT);
    }
}
