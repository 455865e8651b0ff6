//! `steadfast demo`: an embedded cluster, a manifest, and its way to Ready as it happens.
//!
//! Must not decide anything about the resource: it shows what the status says.

mod apply;
mod folder;
mod show;
pub mod stage;

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use operators::catalog;
use tokio_util::sync::CancellationToken;

use crate::args::Demo;
use crate::run::told_to_stop;
use show::{Outcome, Screen};
use stage::Stage;

/// The manifest of the exercise that `Database` comes from.
const TEST_DB: &str = include_str!("../../../../examples/test-db.yaml");

/// The kind whose programs the node of the demo runs.
const RUN_FOR_REAL: &str = "Database";

/// Exit code for a manifest that cannot be applied.
const BAD_MANIFEST: u8 = 3;
/// Exit code of a demo that was told to stop before it had shown its outcome: that of SIGINT.
const INTERRUPTED: u8 = 130;

/// Runs the demo until Ctrl-C, or with `--once` until the outcome.
///
/// # Errors
/// When the embedded cluster cannot be started.
pub fn demo(options: &Demo) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(play(options))?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(code)
}

async fn play(options: &Demo) -> anyhow::Result<ExitCode> {
    let manifest = match &options.file {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("{} cannot be read", path.display()))?,
        None => TEST_DB.to_owned(),
    };
    let stop = CancellationToken::new();
    // Listened to from the first moment: whatever was started is taken down again.
    let mut told = pin!(told_to_stop());
    let model = options.model || !runs_for_real(&manifest);
    let stage = tokio::select! {
        biased;
        () = &mut told => return Ok(ExitCode::from(INTERRUPTED)),
        stage = Stage::build(options, model, &stop) => stage?,
    };
    stage.introduce(!options.once);
    let mut screen = Screen::new();
    let shown = tokio::select! {
        biased;
        () = &mut told => Ok(Some(ExitCode::from(INTERRUPTED))),
        shown = perform(options, &stage, &mut screen, &manifest) => shown,
    };
    let code = match shown {
        Ok(None) => {
            // To stop a demo that has shown everything is how it is meant to end.
            tokio::select! {
                biased;
                () = &mut told => Ok(ExitCode::SUCCESS),
                ended = screen.for_ever(&stage.client) => ended.map(|()| ExitCode::SUCCESS),
            }
        }
        Ok(Some(code)) => Ok(code),
        Err(error) => Err(error),
    };
    if !options.once {
        eprintln!("steadfast: stopping; the pods' processes and all files go");
    }
    stop.cancel();
    stage.strike().await;
    code
}

/// Whether this machine's node runs the pods of everything in a manifest that is ours. One that cannot
/// be read is told of when it is applied.
fn runs_for_real(manifest: &str) -> bool {
    let documents: Vec<serde_json::Value> =
        serde_saphyr::from_multiple(manifest).unwrap_or_default();
    let ours = catalog::rows().into_iter().map(|row| row.kind.kind);
    ours.filter(|kind| *kind != RUN_FOR_REAL)
        .all(|kind| documents.iter().all(|document| document["kind"] != kind))
}

/// Applies the manifest and shows it until it is Ready. None: the demo stays open.
async fn perform(
    options: &Demo,
    stage: &Stage,
    screen: &mut Screen,
    manifest: &str,
) -> anyhow::Result<Option<ExitCode>> {
    let applied = match apply::manifest(&stage.client, manifest).await {
        Ok(applied) => applied,
        Err(error) => {
            eprintln!("steadfast: the manifest was refused: {error:#}");
            return Ok(Some(ExitCode::from(BAD_MANIFEST)));
        }
    };
    let limit = options.once.then(|| Duration::from_secs(u64::from(options.timeout)));
    let outcome = screen.until_ready(&stage.client, &applied, limit).await?;
    if options.once {
        return Ok(Some(match outcome {
            Outcome::Ready => ExitCode::SUCCESS,
            Outcome::NotReady => ExitCode::FAILURE,
        }));
    }
    println!("\nThe cluster stays open until Ctrl-C, and shows what happens in it.");
    println!("In another terminal:\n");
    println!("export KUBECONFIG={}", stage.kubeconfig.display());
    for one in applied.iter().filter(|one| show::is_ours(&one.resource.kind)) {
        println!("kubectl get {} --namespace {} --watch", one.resource.plural, one.namespace);
    }
    println!();
    Ok(None)
}
