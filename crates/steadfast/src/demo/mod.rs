//! `steadfast demo`: an embedded cluster, a manifest, and its way to Ready as it happens.
//!
//! Must not decide anything about the resource: it shows what the status says.

mod apply;
mod show;
pub mod stage;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;

use crate::args::Demo;
use crate::run::told_to_stop;
use show::Outcome;
use stage::Stage;

/// The manifest of the exercise that `Database` comes from.
const TEST_DB: &str = include_str!("../../../../examples/test-db.yaml");

/// Exit code for a manifest that cannot be applied.
const BAD_MANIFEST: u8 = 3;

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
    let stage = Stage::build(options, &stop).await?;
    stage.introduce();
    let outcome = tokio::select! {
        biased;
        () = told_to_stop() => Ok(ExitCode::from(130)),
        outcome = perform(options, &stage, &manifest) => outcome,
    };
    stop.cancel();
    stage.strike().await;
    outcome
}

async fn perform(options: &Demo, stage: &Stage, manifest: &str) -> anyhow::Result<ExitCode> {
    let applied = match apply::manifest(&stage.client, manifest).await {
        Ok(applied) => applied,
        Err(error) => {
            eprintln!("steadfast: the manifest was refused: {error:#}");
            return Ok(ExitCode::from(BAD_MANIFEST));
        }
    };
    let limit = options.once.then(|| Duration::from_secs(u64::from(options.timeout)));
    let outcome = show::until_ready(&stage.client, &applied, limit).await?;
    if options.once {
        return Ok(match outcome {
            Outcome::Ready => ExitCode::SUCCESS,
            Outcome::NotReady => ExitCode::FAILURE,
        });
    }
    println!("\nThe cluster stays open until Ctrl-C. In another terminal:\n");
    println!("export KUBECONFIG={}", stage.kubeconfig.display());
    println!("kubectl get databases --watch\n");
    show::for_ever(&stage.client, &applied).await?;
    Ok(ExitCode::SUCCESS)
}
