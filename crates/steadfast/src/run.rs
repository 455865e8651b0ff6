//! `steadfast run`: the controllers against a cluster.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use runner::clock::SystemClock;
use runner::external::dial::{Dialer, Dns, EndpointSlices};
use runner::random::SystemRandom;
use runner::{Config, Environment, Limits, Runner, health};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{Reach, Run};
use crate::controllers;

/// How long running passes may take to end after a signal.
const GRACE: std::time::Duration = std::time::Duration::from_secs(25);

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// When no cluster is configured, or the health address cannot be bound.
pub fn run(options: &Run) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(serve(options))?;
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(code)
}

/// A client without the retry layer, which would repeat a POST behind our back.
async fn client() -> anyhow::Result<kube::Client> {
    let mut config = kube::Config::infer()
        .await
        .context("no cluster: set KUBECONFIG, or run in a pod with a service account")?;
    config.default_retry = false;
    kube::Client::try_from(config).context("the cluster's address or certificates are unusable")
}

async fn serve(options: &Run) -> anyhow::Result<ExitCode> {
    let client = client().await?;
    let dialer: Arc<dyn Dialer> = match options.reach {
        Reach::Dns => Arc::new(Dns),
        Reach::Endpoints => Arc::new(EndpointSlices::new(client.clone())),
    };
    let environment = Environment {
        client,
        clock: Arc::new(SystemClock),
        random: Arc::new(SystemRandom),
        dialer,
    };
    let config = Config {
        settings: options.decisions.settings(),
        namespaces: options.namespaces.clone(),
        limits: Limits { concurrency: usize::from(options.concurrency), ..Limits::default() },
        instance: std::env::var("HOSTNAME").unwrap_or_else(|_| "steadfast".to_owned()),
        ..Config::default()
    };
    let runner = controllers::all(Runner::new(environment, config));
    let stop = CancellationToken::new();
    let http = options.http.0.map(|address| {
        let served = health::serve(address, runner.health(), runner.metrics(), stop.clone());
        tokio::spawn(async move {
            served.await.with_context(|| format!("--http {address} cannot be bound"))
        })
    });
    let mut running = tokio::spawn(runner.run(stop.clone()));
    tokio::select! {
        biased;
        ended = &mut running => anyhow::bail!("the controllers ended by themselves: {ended:?}"),
        failed = first_failure(http) => return failed.map(|()| ExitCode::SUCCESS),
        () = told_to_stop() => {}
    }
    tracing::info!("stopping: running passes end first");
    stop.cancel();
    if tokio::time::timeout(GRACE, running).await.is_err() {
        tracing::warn!("passes did not end in time; whatever they left is taken up again");
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends only when the health server could not be served.
async fn first_failure(
    http: Option<tokio::task::JoinHandle<anyhow::Result<()>>>,
) -> anyhow::Result<()> {
    match http {
        Some(task) => match task.await {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) | Err(_) => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// Ends at SIGTERM or SIGINT.
pub(crate) async fn told_to_stop() {
    let interrupt = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                biased;
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => {
            let _ = interrupt.await;
        }
    }
}
