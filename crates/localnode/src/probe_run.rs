//! Carries probes out: commands beside the container, TCP connections and HTTP requests to the pod's
//! address. What the results mean is `probe`'s to say.

use crate::assembly::Assembly;
use crate::context::Context;
use crate::probe::{ProbeHistory, ProbeKind, Schedule, Verdict};
use k8s_openapi::api::core::v1::{Container, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One thing a probe found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeReport {
    /// Which probe.
    pub(crate) kind: ProbeKind,
    /// What its history says now.
    pub(crate) verdict: Verdict,
    /// What went wrong this time, if something did.
    pub(crate) failure: Option<String>,
}

/// Probes one container as long as it is awaited: the startup probe first, then the other two.
pub(crate) async fn watch(
    context: Arc<Context>,
    assembly: Arc<Assembly>,
    container: Container,
    report: impl Fn(ProbeReport) + Send + Sync,
) {
    let subject = Subject { context: &context, assembly: &assembly, container: &container };
    if let Some(probe) = &container.startup_probe {
        subject.repeat(ProbeKind::Startup, probe, &report, true).await;
    }
    let readiness = async {
        if let Some(probe) = &container.readiness_probe {
            subject.repeat(ProbeKind::Readiness, probe, &report, false).await;
        }
    };
    let liveness = async {
        if let Some(probe) = &container.liveness_probe {
            subject.repeat(ProbeKind::Liveness, probe, &report, false).await;
        }
    };
    tokio::join!(readiness, liveness);
}

struct Subject<'a> {
    context: &'a Context,
    assembly: &'a Assembly,
    container: &'a Container,
}

impl Subject<'_> {
    async fn repeat(
        &self,
        kind: ProbeKind,
        probe: &Probe,
        report: &impl Fn(ProbeReport),
        until_healthy: bool,
    ) {
        let schedule = Schedule::of(probe);
        let mut history = ProbeHistory::new(schedule);
        let mut before = Verdict::Unknown;
        tokio::time::sleep(schedule.initial_delay).await;
        loop {
            let failure = self.attempt(probe, schedule.timeout).await.err();
            let verdict = history.observe(failure.is_none());
            if failure.is_some() || verdict != before {
                report(ProbeReport { kind, verdict, failure });
            }
            before = verdict;
            if until_healthy && verdict == Verdict::Healthy {
                return;
            }
            tokio::time::sleep(schedule.period).await;
        }
    }

    async fn attempt(&self, probe: &Probe, limit: Duration) -> Result<(), String> {
        if let Some(exec) = &probe.exec {
            return execute(
                self.context,
                self.assembly,
                exec.command.as_deref().unwrap_or_default(),
                limit,
            )
            .await;
        }
        let network = async {
            if let Some(tcp) = &probe.tcp_socket {
                let target = self.target(tcp.host.as_deref(), &tcp.port)?;
                return connect(target).await.map(drop);
            }
            match &probe.http_get {
                Some(get) => self.http(get).await,
                None => Err("this node runs exec, tcpSocket and httpGet probes only".to_owned()),
            }
        };
        tokio::time::timeout(limit, network).await.unwrap_or_else(|_| {
            Err("context deadline exceeded (timeout while waiting for an answer)".to_owned())
        })
    }

    async fn http(&self, get: &HTTPGetAction) -> Result<(), String> {
        if get.scheme.as_deref() == Some("HTTPS") {
            return Err("this node does not speak HTTPS to probes".to_owned());
        }
        let target = self.target(get.host.as_deref(), &get.port)?;
        let path = get.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("/");
        let mut headers =
            format!("GET {path} HTTP/1.1\r\nConnection: close\r\nUser-Agent: kube-probe\r\n");
        let own_host =
            get.http_headers.iter().flatten().any(|h| h.name.eq_ignore_ascii_case("host"));
        if !own_host {
            headers.push_str(&format!("Host: {target}\r\n"));
        }
        for header in get.http_headers.iter().flatten() {
            headers.push_str(&format!("{}: {}\r\n", header.name, header.value));
        }
        headers.push_str("\r\n");
        let mut stream = connect(target).await?;
        stream
            .write_all(headers.as_bytes())
            .await
            .map_err(|error| format!("Get \"http://{target}{path}\": {error}"))?;
        let mut answer = Vec::new();
        // The first line is judged as far as it came.
        let _ = (&mut stream).take(64).read_to_end(&mut answer).await;
        judge_http(&String::from_utf8_lossy(&answer))
    }

    fn target(&self, host: Option<&str>, port: &IntOrString) -> Result<SocketAddrV4, String> {
        let address = match host
            .filter(|host| !host.is_empty() && !matches!(*host, "127.0.0.1" | "localhost"))
        {
            Some(host) => host.parse::<Ipv4Addr>().map_err(|_| format!("cannot resolve {host}"))?,
            None => self.assembly.address().unwrap_or(Ipv4Addr::LOCALHOST),
        };
        Ok(SocketAddrV4::new(address, port_number(self.container, port)?))
    }
}

/// Runs a command in a container's surroundings; the error is its output, as a kubelet reports it.
pub(crate) async fn execute(
    context: &Context,
    assembly: &Assembly,
    words: &[String],
    limit: Duration,
) -> Result<(), String> {
    let (program, starter) = assembly.beside(context, words)?;
    match starter.output(&program, "", limit).await {
        Ok(Some((exit, _))) if exit.code == 0 => Ok(()),
        Ok(Some((_, output))) => Err(output),
        Ok(None) => Err(format!(
            "command timed out: {:?} timed out after {}s",
            words.join(" "),
            limit.as_secs()
        )),
        Err(error) => Err(format!("cannot run {:?}: {error}", words.join(" "))),
    }
}

async fn connect(target: SocketAddrV4) -> Result<TcpStream, String> {
    TcpStream::connect(target).await.map_err(|error| {
        let cause = match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {target}: connect: {cause}")
    })
}

fn judge_http(answer: &str) -> Result<(), String> {
    let code: Option<u16> = answer
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.split_whitespace().nth(1))
        .and_then(|code| code.parse().ok());
    match code {
        Some(200..=399) => Ok(()),
        Some(code) => Err(format!("HTTP probe failed with statuscode: {code}")),
        None => Err("HTTP probe failed: the answer is not HTTP".to_owned()),
    }
}

fn port_number(container: &Container, port: &IntOrString) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => name.parse().ok().or_else(|| {
            let ports = container.ports.iter().flatten();
            ports
                .into_iter()
                .find(|port| port.name.as_deref() == Some(name))
                .map(|port| port.container_port)
        }),
    };
    number
        .and_then(|number| u16::try_from(number).ok())
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("couldn't find port: {port:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_below_400_are_healthy() {
        for (answer, healthy) in [
            ("HTTP/1.1 200 OK\r\n", true),
            ("HTTP/1.0 302 Found\r\n", true),
            ("HTTP/1.1 404 Not Found\r\n", false),
            ("SSH-2.0", false),
            ("", false),
        ] {
            assert_eq!(judge_http(answer).is_ok(), healthy, "{answer:?}");
        }
    }

    #[test]
    fn ports_are_found_by_number_and_name() {
        let container: Container = serde_json::from_value(serde_json::json!({"name": "m",
            "ports": [{"name": "postgres", "containerPort": 5432}]}))
        .expect("a container");
        let named = |name: &str| port_number(&container, &IntOrString::String(name.to_owned()));
        assert_eq!(named("postgres"), Ok(5432));
        assert_eq!(named("80"), Ok(80));
        assert!(named("none").is_err());
        assert_eq!(port_number(&container, &IntOrString::Int(1)), Ok(1));
        assert!(port_number(&container, &IntOrString::Int(70_000)).is_err());
    }
}
