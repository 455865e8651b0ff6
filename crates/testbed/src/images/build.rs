//! Carries a recipe out with mmdebstrap, a C compiler and tar. Layers are kept too: a changed entry point needs no
//! new packages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{Base, File, Recipe, archive, folder};

/// What every image of Debian packages is made with; part of a recipe's digest.
pub(super) const OPTIONS: [&str; 8] = [
    "--quiet",
    "--mode=root",
    "--variant=essential",
    "--aptopt=Apt::Install-Recommends \"false\"",
    // The folders of sockets and locks there are part of the official images.
    "--skip=cleanup/run",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
];

/// Builds an image and puts it in place when it is whole.
pub(super) fn build(recipe: &Recipe) -> Result<PathBuf> {
    let folder = folder()?;
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    // The lock lives as long as the open file; a killed build leaves no stale lock behind.
    let lock = fs::File::create(folder.join(".lock")).context("create the images' lock file")?;
    lock.lock().context("wait for another process's build")?;
    if let Some(path) = recipe.built() {
        return Ok(path);
    }
    eprintln!("testbed: building image {} (a minute or two)", recipe.name());
    let work = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(&folder);
    let work = work.context("make a folder for the build")?;
    let base = base_layer(recipe, &folder, work.path())?;
    let mut layers = vec![base];
    if !recipe.files.is_empty() {
        layers.push(file_layer(recipe.files, work.path())?);
    }
    let unfinished = work.path().join("image");
    archive::write(recipe, &layers, &unfinished)?;
    let path = recipe.place()?;
    fs::rename(&unfinished, &path).context("put the image in place")?;
    Ok(path)
}

fn base_layer(recipe: &Recipe, folder: &Path, work: &Path) -> Result<PathBuf> {
    let path = folder.join(format!("layer-{}-{}.tar", recipe.label(), recipe.base.digest()));
    if !path.is_file() {
        let unfinished = work.join("base.tar");
        match recipe.base {
            Base::Debian { suite, packages, prepare, finish } => {
                fs::write(work.join("prepare.sh"), prepare).context("write a script")?;
                fs::write(work.join("finish.sh"), finish).context("write a script")?;
                debian(suite, packages, work, &unfinished)?;
            }
            Base::Program { path, source } => program(path, source, work, &unfinished)?,
        }
        fs::rename(&unfinished, &path).context("put a layer in place")?;
    }
    Ok(path)
}

fn debian(suite: &str, packages: &[&str], work: &Path, layer: &Path) -> Result<()> {
    // In the image's own root: an absolute link there must not lead out to this machine.
    let script = |name: &str| format!("chroot \"$1\" /bin/sh <'{}'", work.join(name).display());
    let mut command = Command::new("mmdebstrap");
    command
        .args(OPTIONS)
        .arg(format!("--include={}", packages.join(",")))
        .arg(format!("--essential-hook={}", script("prepare.sh")))
        .arg(format!("--customize-hook={}", script("finish.sh")))
        .arg(suite)
        .arg(layer);
    run(&mut command)
}

fn program(path: &str, source: &str, work: &Path, layer: &Path) -> Result<()> {
    let (code, root) = (work.join("program.c"), work.join("program"));
    fs::write(&code, source).context("write a program's source")?;
    fs::create_dir_all(&root).context("make a folder")?;
    let mut compile = Command::new("cc");
    run(compile.args(["-Os", "-static", "-s", "-o"]).arg(root.join(path)).arg(&code))?;
    pack(&root, layer)
}

fn file_layer(files: &[File], work: &Path) -> Result<PathBuf> {
    let root = work.join("files");
    for file in files {
        let path = root.join(file.path);
        fs::create_dir_all(path.parent().context("a file lies in a folder")?)
            .context("make a folder")?;
        fs::write(&path, file.text).with_context(|| format!("write {}", file.path))?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).context("set permissions")?;
    }
    let layer = work.join("files.tar");
    pack(&root, &layer)?;
    Ok(layer)
}

/// Packs what lies in a folder, as root's. The folder itself is left out: it would change the root's permissions.
fn pack(root: &Path, layer: &Path) -> Result<()> {
    let names = fs::read_dir(root).context("list a folder")?.map_while(Result::ok);
    let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
    let mut tar = Command::new("tar");
    // Whatever our own file mask is, everybody in the container may read.
    tar.args(["--sort=name", "--mtime=@0", "--mode=a+rX", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "-C"]);
    run(tar.arg(root).arg("-cf").arg(layer).args(names))
}

/// Runs a step; its complaints go to standard error.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("run {}", command.get_program().to_string_lossy()))?;
    ensure!(status.success(), "{command:?} ended with {status}; its output is above");
    Ok(())
}
