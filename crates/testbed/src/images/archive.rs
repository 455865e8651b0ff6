//! The archive that containerd imports: layers, settings and names, in the form of `docker save`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Recipe, build};

/// Packs layers into an image's archive.
pub(super) fn write(recipe: &Recipe, layers: &[PathBuf], path: &Path) -> Result<()> {
    let parent = path.parent().context("an archive lies in a folder")?;
    let folder = tempfile::tempdir_in(parent).context("make a folder for the archive")?;
    let mut names = Vec::new();
    let mut digests = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let name = format!("{index}.tar");
        // Not a copy: layers are large, and the folder is on the layers' own disk.
        fs::hard_link(layer, folder.path().join(&name)).context("link a layer")?;
        digests.push(format!("sha256:{}", file_digest(layer)?));
        names.push(name);
    }
    let manifest = json!([{"Config": "config.json", "RepoTags": recipe.names, "Layers": names}]);
    save(folder.path(), "config.json", &config(recipe, &digests)?)?;
    save(folder.path(), "manifest.json", &manifest)?;
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder.path()).arg("-cf").arg(path).args(["manifest.json", "config.json"]);
    build::run(tar.args(&names))
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

fn file_digest(path: &Path) -> Result<String> {
    let mut digest = Sha256::new();
    let mut file = fs::File::open(path).context("open a layer")?;
    io::copy(&mut file, &mut digest).context("read a layer")?;
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
