//! Puts a container together from its template: programs, mounts, environment, command. Makes the
//! container's folder; starts nothing.

use crate::context::Context;
use crate::downward::PodFacts;
use crate::environment::{self, ConfigError, Variables};
use crate::expansion::expand;
use crate::image::entry_script::{INIT_FOLDER, SOCKET_FOLDER};
use crate::image::postgres::Surroundings;
use crate::image::{self, Image, PullError, settings};
use crate::log_file::LogFile;
use crate::process::{Exit, Program};
use crate::programs::PostgresPrograms;
use crate::sources::Sources;
use crate::stop::StopListener;
use crate::translate::{PathMap, translate_loopback, translate_names};
use crate::volume::place::PodVolumes;
use crate::volume::writer::create_folder;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// Why a container cannot be put together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssemblyError {
    /// Its image cannot be had.
    #[error("{}", .0.message())]
    Image(PullError),
    /// Its configuration is incomplete (`CreateContainerConfigError`).
    #[error(transparent)]
    Configuration(#[from] ConfigError),
    /// The machine refuses (`CreateContainerError`).
    #[error("cannot make the container's folder: {0}")]
    Machine(#[from] std::io::Error),
}

/// A container ready to run.
pub(crate) struct Assembly {
    surroundings: Surroundings,
    command: Command,
    pod: Pod,
    paths: PathMap,
    /// Where the container may leave its termination message.
    pub(crate) message_file: PathBuf,
    /// The programs that stand in for the image.
    pub(crate) programs: PostgresPrograms,
    /// The version that the template asked for.
    pub(crate) image: Image,
}

enum Command {
    EntryPoint(Vec<String>),
    Words(Vec<String>),
}

/// The pieces that a container is made of.
pub(crate) struct Pieces<'a> {
    /// Its pod.
    pub(crate) pod: &'a Pod,
    /// Its template.
    pub(crate) container: &'a Container,
    /// The pod's volumes.
    pub(crate) volumes: &'a PodVolumes,
    /// The objects it reads.
    pub(crate) sources: &'a Sources,
    /// Its own folder, made anew.
    pub(crate) root: &'a Path,
    /// The pod's address.
    pub(crate) address: Option<Ipv4Addr>,
}

/// The programs for an image, or why it cannot be "pulled".
pub(crate) fn programs_for<'a>(
    context: &'a Context,
    reference: &str,
) -> Result<(Image, &'a PostgresPrograms), PullError> {
    let image = image::recognise(reference)?;
    match context.programs.postgres_for(image.major) {
        Some(programs) => Ok((image, programs)),
        None => Err(PullError::NoPrograms(format!(
            "this node runs {reference} with PostgreSQL's programs of this machine, and there are none: install \
             PostgreSQL (postgres, initdb, psql) so that they are in PATH or /usr/lib/postgresql"
        ))),
    }
}

/// Puts a container together and makes its folder.
pub(crate) fn assemble(
    context: &Context,
    pieces: &Pieces<'_>,
    log: &LogFile,
) -> Result<Assembly, AssemblyError> {
    let reference = pieces.container.image.as_deref().unwrap_or_default();
    let (image, programs) = programs_for(context, reference).map_err(AssemblyError::Image)?;
    let facts = PodFacts::of(pieces.pod, pieces.address);
    let mut variables = environment::variables(pieces.container, &facts, pieces.sources)?;
    let owner = context.starter.user.as_ref();
    let root = pieces.root;
    match fs::remove_dir_all(root) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    create_folder(root, 0o700, owner)?;
    let major = image.major.unwrap_or(programs.major);
    let data = variables
        .values
        .entry("PGDATA".to_owned())
        .or_insert_with(|| settings::default_data_folder(major))
        .clone();
    let paths = pieces.volumes.mounts_of(pieces.container, &variables.values, root, owner)?;
    let host = |path: &str| paths.host_path(path).unwrap_or_else(|| root.join("data"));
    let translator =
        Translator { context, pod: pieces.pod, paths: &paths, address: pieces.address };
    let environment = full_environment(
        pieces,
        programs,
        &variables,
        &translator,
        owner.map(|user| user.name.as_str()),
    );
    let surroundings = Surroundings {
        starter: context.starter.clone(),
        log: log.clone(),
        bin_dir: programs.bin_dir.clone(),
        environment,
        folder: root.to_path_buf(),
        sockets: host(SOCKET_FOLDER),
        init_folder: host(INIT_FOLDER),
        data: host(&data),
        address: pieces.address,
    };
    surroundings.write_shims()?;
    let words = |list: &Option<Vec<String>>| -> Vec<String> {
        list.iter()
            .flatten()
            .map(|word| translator.words(&expand(word, &variables.values)))
            .collect()
    };
    Ok(Assembly {
        command: command(words(&pieces.container.command), words(&pieces.container.args)),
        message_file: root.join("t"),
        programs: programs.clone(),
        pod: pieces.pod.clone(),
        surroundings,
        image,
        paths: paths.clone(),
    })
}

/// No command, or the image's entry point by name, means the entry point.
fn command(command: Vec<String>, arguments: Vec<String>) -> Command {
    match command.split_first() {
        None => Command::EntryPoint(arguments),
        Some((first, rest)) if first.rsplit('/').next() == Some("docker-entrypoint.sh") => {
            Command::EntryPoint(rest.iter().cloned().chain(arguments).collect())
        }
        Some(_) => Command::Words(command.into_iter().chain(arguments).collect()),
    }
}

struct Translator<'a> {
    context: &'a Context,
    pod: &'a Pod,
    paths: &'a PathMap,
    address: Option<Ipv4Addr>,
}

impl Translator<'_> {
    fn words(&self, text: &str) -> String {
        let text = translate_names(text, |name| self.context.resolve(self.pod, name));
        let text = match self.address {
            Some(address) => translate_loopback(&text, address),
            None => text,
        };
        self.paths.translate(&text)
    }
}

/// The base of every container, then the template's variables with translated values.
fn full_environment(
    pieces: &Pieces<'_>,
    programs: &PostgresPrograms,
    variables: &Variables,
    translator: &Translator<'_>,
    user: Option<&str>,
) -> BTreeMap<String, String> {
    let own = pieces.root.join("bin");
    let path = format!(
        "{}:{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        own.display(),
        programs.bin_dir.display()
    );
    let hostname = pieces.pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let mut result: BTreeMap<String, String> = [
        ("PATH", path),
        ("LANG", "C.UTF-8".to_owned()),
        ("LC_ALL", "C.UTF-8".to_owned()),
        ("HOSTNAME", hostname.or_else(|| pieces.pod.metadata.name.clone()).unwrap_or_default()),
        ("HOME", translator.words("/var/lib/postgresql")),
        ("USER", user.unwrap_or("postgres").to_owned()),
        ("PG_MAJOR", programs.major.to_string()),
        ("PGHOST", translator.words(SOCKET_FOLDER)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for (name, value) in &variables.values {
        let verbatim = variables.verbatim.contains(name);
        result.insert(name.clone(), if verbatim { value.clone() } else { translator.words(value) });
    }
    result
}

impl Assembly {
    /// Runs the container to its end. `Err` is why it could not be started at all.
    pub(crate) async fn run(&self, stop: &mut StopListener) -> Result<Exit, String> {
        match &self.command {
            Command::EntryPoint(arguments) => Ok(self.surroundings.enter(arguments, stop).await),
            Command::Words(words) => {
                let program = self.surroundings.resolve(words)?;
                let exit = self.surroundings.run(&program, "", stop).await;
                match self.surroundings.handed_over() {
                    Some((arguments, surroundings)) => {
                        Ok(surroundings.enter(&arguments, stop).await)
                    }
                    None => Ok(exit),
                }
            }
        }
    }

    /// A program to run beside the container, as a probe or `exec` does.
    pub(crate) fn beside(
        &self,
        context: &Context,
        words: &[String],
    ) -> Result<(Program, crate::process::Starter), String> {
        let translator = Translator {
            context,
            pod: &self.pod,
            paths: &self.paths,
            address: self.surroundings.address,
        };
        let words: Vec<String> = words.iter().map(|word| translator.words(word)).collect();
        Ok((self.surroundings.resolve(&words)?, self.surroundings.starter.clone()))
    }

    /// The pod's address.
    pub(crate) fn address(&self) -> Option<Ipv4Addr> {
        self.surroundings.address
    }
}
