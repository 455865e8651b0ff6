//! Carries a recipe out with mmdebstrap, a C compiler, Maven and tar. Layers are kept too: a changed entry point needs no
//! new packages.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{Base, File, Jars, Recipe, archive, folder, short_digest};

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

/// How files are packed; part of a recipe's digest.
pub(super) const PACKING: &str = "files without their folders";

/// How long an image with a program is kept after one with another program was made, in seconds.
const KEPT_SECONDS: u64 = 24 * 60 * 60;

/// Builds an image and puts it in place when it is whole.
pub(super) fn build(recipe: &Recipe) -> Result<PathBuf> {
    let (folder, _lock) = locked()?;
    if let Some(path) = recipe.built() {
        return Ok(path);
    }
    eprintln!("testbed: building image {} (a minute or two)", recipe.name());
    let path = recipe.place()?;
    put(recipe, &folder, &path, None)?;
    Ok(path)
}

/// Builds the lower layers of an image alone.
pub(super) fn prepare(recipe: &Recipe) -> Result<()> {
    let (folder, _lock) = locked()?;
    let work = work_folder(&folder)?;
    base_layer(recipe, &folder, work.path()).map(drop)
}

/// Builds an image with a program of this machine, and removes old ones with other programs.
pub(super) fn with_program(recipe: &Recipe, program: &Path) -> Result<PathBuf> {
    let (folder, _lock) = locked()?;
    let digest = short_digest([recipe.digest().as_str(), &archive::file_digest(program)?]);
    let prefix = format!("{}-", recipe.label());
    let path = folder.join(format!("{prefix}{digest}"));
    if path.is_dir() {
        return Ok(path);
    }
    ensure!(
        base_path(recipe, &folder).is_file(),
        "its lower layer is not built: run `cargo xtask cluster build --node`"
    );
    for entry in fs::read_dir(&folder).context("list the images")?.map_while(Result::ok) {
        let age = entry.metadata().ok().and_then(|found| found.modified().ok()?.elapsed().ok());
        let old = age.is_some_and(|age| age.as_secs() > KEPT_SECONDS);
        if old && entry.file_name().to_string_lossy().starts_with(&prefix) {
            fs::remove_dir_all(entry.path()).context("remove an old image")?;
        }
    }
    put(recipe, &folder, &path, Some(program))?;
    Ok(path)
}

/// The images' folder, and the lock that is held while something is built there. It lives as long as the open file; a
/// killed build leaves no stale lock behind.
fn locked() -> Result<(PathBuf, fs::File)> {
    let folder = folder()?;
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let lock = fs::File::create(folder.join(".lock")).context("create the images' lock file")?;
    lock.lock().context("wait for another process's build")?;
    Ok((folder, lock))
}

fn work_folder(folder: &Path) -> Result<tempfile::TempDir> {
    let work = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(folder);
    work.context("make a folder for the build")
}

/// Makes an image and puts it in place.
fn put(recipe: &Recipe, folder: &Path, path: &Path, program: Option<&Path>) -> Result<()> {
    let work = work_folder(folder)?;
    let mut layers = vec![base_layer(recipe, folder, work.path())?];
    if let Some(jars) = &recipe.jars {
        layers.push(jar_layer(jars, folder, work.path())?);
    }
    if !recipe.files.is_empty() {
        layers.push(file_layer(recipe.files, work.path())?);
    }
    if let Some(program) = program {
        layers.push(program_layer(program, work.path())?);
    }
    let unfinished = work.path().join("image");
    archive::write(recipe, &layers, &unfinished)?;
    fs::rename(&unfinished, path).context("put the image in place")
}

fn base_path(recipe: &Recipe, folder: &Path) -> PathBuf {
    folder.join(format!("layer-{}-{}.tar", recipe.label(), recipe.base.digest()))
}

fn base_layer(recipe: &Recipe, folder: &Path, work: &Path) -> Result<PathBuf> {
    let path = base_path(recipe, folder);
    if !path.is_file() {
        let unfinished = work.join("base.tar");
        match recipe.base {
            Base::Debian { suite, packages, prepare, finish } => {
                fs::write(work.join("prepare.sh"), prepare).context("write a script")?;
                fs::write(work.join("finish.sh"), finish).context("write a script")?;
                debian(suite, packages, work, &unfinished)?;
            }
            Base::Program { path, source } => compile(path, source, work, &unfinished)?,
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

fn compile(path: &str, source: &str, work: &Path, layer: &Path) -> Result<()> {
    let (code, root) = (work.join("program.c"), work.join("program"));
    fs::write(&code, source).context("write a program's source")?;
    fs::create_dir_all(&root).context("make a folder")?;
    let mut compiler = Command::new("cc");
    run(compiler.args(["-Os", "-static", "-s", "-o"]).arg(root.join(path)).arg(&code))?;
    pack(&root, layer)
}

/// The archives that a `pom.xml` asks for, with all that they need.
fn jar_layer(jars: &Jars, folder: &Path, work: &Path) -> Result<PathBuf> {
    let digest = short_digest([jars.pom, jars.folder]);
    let path = folder.join(format!("layer-jars-{digest}.tar"));
    if !path.is_file() {
        let (pom, root, layer) = (work.join("pom.xml"), work.join("jars"), work.join("jars.tar"));
        fs::write(&pom, jars.pom).context("write a pom.xml")?;
        let mut command = Command::new("mvn");
        command.args(["--quiet", "--batch-mode", "--file"]).arg(&pom);
        command.args(["dependency:copy-dependencies", "-DincludeScope=runtime"]);
        let target = root.join(jars.folder);
        run(command.arg(format!("-DoutputDirectory={}", target.display())))?;
        pack(&root, &layer)?;
        fs::rename(&layer, &path).context("put a layer in place")?;
    }
    Ok(path)
}

fn program_layer(program: &Path, work: &Path) -> Result<PathBuf> {
    let (root, layer) = (work.join("with-program"), work.join("program.tar"));
    let place = root.join("usr/local/bin");
    fs::create_dir_all(&place).context("make a folder")?;
    let place = place.join(program.file_name().context("a program has a name")?);
    run(Command::new("strip").arg("-o").arg(&place).arg(program))?;
    pack(&root, &layer)?;
    Ok(layer)
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

/// Packs the files below a folder, as root's. Folders are left out: those that a lower layer has would change their
/// owners and permissions, and the others are made without being told.
fn pack(root: &Path, layer: &Path) -> Result<()> {
    let mut files = Vec::new();
    list(root, Path::new(""), &mut files)?;
    files.sort();
    let mut tar = Command::new("tar");
    // Whatever our own file mask is, everybody in the container may read.
    tar.args(["--mtime=@0", "--mode=a+rX", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "-C"]);
    run(tar.arg(root).arg("-cf").arg(layer).args(files))
}

/// Every file below a folder of the root, by its path from there.
fn list(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).context("list a folder")? {
        let entry = entry.context("list a folder")?;
        let path = folder.join(entry.file_name());
        if entry.file_type().context("look at a file")?.is_dir() {
            list(root, &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
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
