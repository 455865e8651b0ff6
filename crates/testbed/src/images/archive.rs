//! What containerd imports: layers, settings and names, in the form of `docker save`. Kept as a folder that shares
//! its layers with the cache, and packed only on its way into containerd.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Recipe;

/// Lays an image out in a new folder.
pub(super) fn write(recipe: &Recipe, layers: &[PathBuf], folder: &Path) -> Result<()> {
    fs::create_dir(folder).context("make a folder for the image")?;
    let mut names = Vec::new();
    let mut digests = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let name = format!("{index}.tar");
        // Not a copy: layers are large, and the folder is on the layers' own disk.
        fs::hard_link(layer, folder.join(&name)).context("link a layer")?;
        digests.push(format!("sha256:{}", file_digest(layer)?));
        names.push(name);
    }
    let manifest = json!([{"Config": "config.json", "RepoTags": recipe.names, "Layers": names}]);
    save(folder, "config.json", &config(recipe, &digests)?)?;
    save(folder, "manifest.json", &manifest)
}

/// Packs an image's folder into the standard input of `ctr … images import -`.
pub(crate) fn feed(folder: &Path, import: &mut Command) -> Result<()> {
    let mut tar = Command::new("tar")
        .arg("-C")
        .arg(folder)
        .args(["-cf", "-", "."])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("start tar")?;
    let packed = tar.stdout.take().context("a pipe was asked for")?;
    let output = import.stdin(packed).output();
    let packing = tar.wait().context("wait for tar")?;
    let output = output.with_context(|| format!("run {import:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{import:?} ended with {}: {complaint}", output.status);
    ensure!(packing.success(), "tar ended with {packing}");
    Ok(())
}

fn config(recipe: &Recipe, digests: &[String]) -> Result<Value> {
    let settings: Value = serde_json::from_str(recipe.settings).context("read the settings")?;
    Ok(json!({
        "os": "linux",
        "architecture": architecture(),
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": digests},
    }))
}

/// This machine's architecture by the name that images use.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn save(folder: &Path, name: &str, value: &Value) -> Result<()> {
    fs::write(folder.join(name), value.to_string()).with_context(|| format!("write {name}"))
}

/// Digest of a file's contents, in hexadecimal digits.
pub(super) fn file_digest(path: &Path) -> Result<String> {
    let mut digest = Sha256::new();
    let mut file = fs::File::open(path).context("open a file")?;
    io::copy(&mut file, &mut digest).context("read a file")?;
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
