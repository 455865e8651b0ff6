//! The entry point of the official postgres image, played by the node: first initialisation with all of
//! its settings and scripts, then the server. Where the image's own script would exit with an error, the
//! container ends with that exit code, and a half-initialised data folder is left as the image leaves it.
//! Source of the contract: reference/database.md section 1.

use super::entry_script::{
    INIT_FOLDER, InitFile, Request, host_authentication, init_file, listens, network_arguments,
    request,
};
use super::settings::Settings;
use crate::log_file::LogFile;
use crate::process::{Exit, Program, Running, Starter};
use crate::stop::StopListener;
use crate::user::RunUser;
use crate::volume::writer::{create_folder, write_private};
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest wait for the temporary server (`pg_ctl -w`'s default).
const SERVER_START: Duration = Duration::from_secs(60);
/// Longest time for a question to the server's program.
const QUERY: Duration = Duration::from_secs(10);

/// A container made ready to run: everything the entry point needs to know of its surroundings.
#[derive(Clone)]
pub(crate) struct Surroundings {
    /// Starts processes.
    pub(crate) starter: Starter,
    /// The container's log.
    pub(crate) log: LogFile,
    /// Folder of the server programs.
    pub(crate) bin_dir: PathBuf,
    /// The container's environment, paths translated.
    pub(crate) environment: BTreeMap<String, String>,
    /// The container's own folder: working folder and place of short-lived files.
    pub(crate) folder: PathBuf,
    /// The image's socket folder on this machine.
    pub(crate) sockets: PathBuf,
    /// The image's folder of init scripts on this machine.
    pub(crate) init_folder: PathBuf,
    /// The data folder on this machine.
    pub(crate) data: PathBuf,
    /// The pod's address.
    pub(crate) address: Option<Ipv4Addr>,
}

/// The end of a container before its server ran, for what reason is in the log.
type Ended = Exit;

impl Surroundings {
    /// Runs the entry point with a container's arguments, to the end of the container.
    pub(crate) async fn enter(&self, arguments: &[String], stop: &mut StopListener) -> Exit {
        let program = match request(arguments) {
            Request::Server(options) => match self.prepare(&options, stop).await {
                Ok(program) => program,
                Err(exit) => return exit,
            },
            Request::Other(words) => match self.resolve(&words) {
                Ok(program) => program,
                Err(message) => return self.refuse(&message, 127),
            },
        };
        self.run(&program, "", stop).await
    }

    /// A program by name or path with its arguments; a server is given its address.
    pub(crate) fn resolve(&self, words: &[String]) -> Result<Program, String> {
        let (name, rest) = words.split_first().ok_or_else(|| "no command specified".to_owned())?;
        let path = self.find(name).ok_or_else(|| {
            let place = if name.contains('/') {
                "no such file or directory"
            } else {
                "executable file not found in $PATH"
            };
            format!("exec: \"{name}\": {place}")
        })?;
        let mut arguments = rest.to_vec();
        if path == self.bin_dir.join("postgres") && listens(&arguments) {
            arguments.extend(network_arguments(self.address, self.own_sockets(&arguments)));
        }
        Ok(self.program(&path, &arguments))
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let own = |name: &str| Some(self.bin_dir.join(name)).filter(|path| path.is_file());
        if let Some(file) = name.strip_prefix('/') {
            let path = Path::new(name);
            // The image's own folders of programs are this machine's, whatever version they name.
            let of_image =
                file.starts_with("usr/lib/postgresql/") || file.starts_with("usr/local/bin/");
            let short = file.rsplit('/').next().unwrap_or_default();
            return if of_image && own(short).is_some() {
                own(short)
            } else {
                path.is_file().then(|| path.to_path_buf())
            };
        }
        if name.contains('/') {
            return Some(self.folder.join(name)).filter(|path| path.is_file());
        }
        let search = self.environment.get("PATH").map(String::as_str).unwrap_or_default();
        own(name).or_else(|| {
            std::env::split_paths(search)
                .map(|folder| folder.join(name))
                .find(|path| path.is_file())
        })
    }

    async fn prepare(&self, options: &[String], stop: &mut StopListener) -> Result<Program, Ended> {
        let settings = Settings::read(&self.environment, |path| fs::read_to_string(path))
            .map_err(|message| self.refuse(&message, 1))?;
        self.make_folders(&settings).map_err(|error| self.refuse(&format!("error: {error}"), 1))?;
        if self.data.join("PG_VERSION").exists() {
            self.log.line("\nPostgreSQL Database directory appears to contain a database; Skipping initialization\n");
        } else {
            self.initialise(&settings, options, stop).await?;
        }
        let mut arguments = options.to_vec();
        let sockets = self.sockets_for(options).await;
        arguments.extend(network_arguments(self.address, sockets));
        Ok(self.program(&self.bin_dir.join("postgres"), &arguments))
    }

    fn make_folders(&self, settings: &Settings) -> std::io::Result<()> {
        let owner = self.owner();
        create_folder(&self.data, 0o700, owner)?;
        use std::os::unix::fs::PermissionsExt;
        // A folder that a volume brought has wider permissions than the server accepts.
        fs::set_permissions(&self.data, fs::Permissions::from_mode(0o700))?;
        if let Some(folder) = &settings.wal_folder {
            create_folder(Path::new(folder), 0o700, owner)?;
        }
        Ok(())
    }

    async fn initialise(
        &self,
        settings: &Settings,
        options: &[String],
        stop: &mut StopListener,
    ) -> Result<(), Ended> {
        settings.verify().map_err(|message| self.refuse(&message, 1))?;
        self.create_cluster(settings, stop).await?;
        self.write_host_authentication(settings, options).await?;
        let mut server = self.start_temporary_server(settings, options, stop).await?;
        let outcome = self.fill(settings, stop).await;
        // A failed script leaves the folder as it is: the next start takes it for a whole database,
        // exactly as the image does.
        self.log.line("waiting for server to shut down....");
        server.stop(Signal::SIGINT, SERVER_START).await;
        outcome?;
        self.log.line("\nPostgreSQL init process complete; ready for start up.\n");
        Ok(())
    }

    async fn create_cluster(
        &self,
        settings: &Settings,
        stop: &mut StopListener,
    ) -> Result<(), Ended> {
        let password_file = self.folder.join("pw");
        // One that an earlier try left; usually there is none.
        let _ = fs::remove_file(&password_file);
        write_private(&password_file, format!("{}\n", settings.password).as_bytes(), self.owner())
            .map_err(|error| {
                self.refuse(&format!("error: cannot write the password file: {error}"), 1)
            })?;
        let mut arguments = vec![
            format!("--username={}", settings.user),
            format!("--pwfile={}", password_file.display()),
        ];
        arguments.extend(settings.initdb_arguments.iter().cloned());
        arguments.extend(
            settings.wal_folder.iter().flat_map(|folder| ["--waldir".to_owned(), folder.clone()]),
        );
        let exit =
            self.run(&self.program(&self.bin_dir.join("initdb"), &arguments), "", stop).await;
        if let Err(error) = fs::remove_file(&password_file) {
            tracing::warn!(%error, "the password file of initdb could not be removed");
        }
        ok_or_ended(exit)
    }

    async fn write_host_authentication(
        &self,
        settings: &Settings,
        options: &[String],
    ) -> Result<(), Ended> {
        let default = self
            .ask("password_encryption", options)
            .await
            .map_err(|message| self.refuse(&message, 1))?;
        let method = settings.auth_method.as_deref().unwrap_or(&default);
        let file = self.data.join("pg_hba.conf");
        let written = fs::read_to_string(&file).and_then(|initial| {
            fs::write(&file, host_authentication(&initial, self.address, method))
        });
        written.map_err(|error| self.refuse(&format!("error: pg_hba.conf: {error}"), 1))
    }

    async fn start_temporary_server(
        &self,
        settings: &Settings,
        options: &[String],
        stop: &mut StopListener,
    ) -> Result<Running, Ended> {
        let mut arguments = options.to_vec();
        arguments.extend(network_arguments(None, self.sockets_for(options).await));
        let port = self.environment.get("PGPORT").map_or("5432", String::as_str);
        arguments.extend(["-p".to_owned(), port.to_owned()]);
        let mut program = self.program(&self.bin_dir.join("postgres"), &arguments);
        settings.export(&mut program.environment);
        let mut server = self
            .starter
            .start(&program, &self.log, "")
            .map_err(|error| self.refuse(&format!("pg_ctl: could not start server: {error}"), 1))?;
        let up = async {
            while !self.server_is_up() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            () = up => return Ok(server),
            _ = server.wait() => {}
            () = tokio::time::sleep(SERVER_START) => {}
            grace = stop.wanted() => return Err(server.stop(Signal::SIGINT, grace).await),
        }
        server.stop(Signal::SIGINT, Duration::ZERO).await;
        Err(self.refuse("pg_ctl: could not start server\nExamine the log output.", 1))
    }

    /// Line 8 of `postmaster.pid` says when a server takes connections; `pg_ctl -w` reads it too.
    fn server_is_up(&self) -> bool {
        fs::read_to_string(self.data.join("postmaster.pid"))
            .is_ok_and(|text| text.lines().nth(7).is_some_and(|state| state.trim_end() == "ready"))
    }

    async fn fill(&self, settings: &Settings, stop: &mut StopListener) -> Result<(), Ended> {
        if settings.database != "postgres" {
            let create = "SELECT format('CREATE DATABASE %I', :'db') \
                WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'db') \\gexec\n";
            let arguments = ["--dbname", "postgres", "--set", &format!("db={}", settings.database)];
            let exit = self.run(&self.psql(settings, &arguments), create, stop).await;
            ok_or_ended(exit)?;
        }
        let mut names: Vec<String> = fs::read_dir(&self.init_folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort();
        for name in names {
            ok_or_ended(self.run_init_file(&name, settings, stop).await)?;
        }
        Ok(())
    }

    async fn run_init_file(
        &self,
        name: &str,
        settings: &Settings,
        stop: &mut StopListener,
    ) -> Exit {
        let path = self.init_folder.join(name).to_string_lossy().into_owned();
        let kind = init_file(name, is_executable(Path::new(&path)));
        let verb = match kind {
            InitFile::Source => "sourcing",
            InitFile::Ignored => "ignoring",
            InitFile::Run | InitFile::Sql | InitFile::Packed(_) => "running",
        };
        self.log.line(&format!("docker-entrypoint.sh: {verb} {INIT_FOLDER}/{name}"));
        let program = match kind {
            InitFile::Ignored => return Exit::with_code(0),
            InitFile::Run => self.script_program(settings, Path::new(&path), &[]),
            InitFile::Sql => self.psql(settings, &["--dbname", &settings.database, "-f", &path]),
            InitFile::Source => self.shell(settings, "set -Ee\n. \"$1\"", &path),
            InitFile::Packed(unpack) => {
                self.shell(settings, &format!("{unpack} \"$1\" | docker_process_sql"), &path)
            }
        };
        self.run(&program, "", stop).await
    }

    /// A shell as the image's entry point sets it up, with the function that its scripts may call.
    fn shell(&self, settings: &Settings, text: &str, path: &str) -> Program {
        let bash = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
        let found = bash.into_iter().find(|shell| Path::new(shell).exists());
        let options = if found.is_some() { "set -o pipefail\n" } else { "" };
        let prelude = "docker_process_sql() { psql -v ON_ERROR_STOP=1 --username \"$POSTGRES_USER\" \
            --no-password --no-psqlrc --dbname \"$POSTGRES_DB\" \"$@\"; }\n";
        let script = format!("{options}{prelude}{text}\n");
        let shell = Path::new(found.unwrap_or("/bin/sh"));
        self.script_program(settings, shell, &["-c", &script, "docker-entrypoint.sh", path])
    }

    fn psql(&self, settings: &Settings, rest: &[&str]) -> Program {
        let mut arguments = vec!["-v", "ON_ERROR_STOP=1", "--username", &settings.user];
        arguments.extend(["--no-password", "--no-psqlrc"]);
        arguments.extend(rest);
        let mut program = self.script_program(settings, &self.bin_dir.join("psql"), &arguments);
        let sockets = self.sockets.to_string_lossy().into_owned();
        program.environment.insert("PGHOST".to_owned(), sockets);
        program
    }

    fn script_program(&self, settings: &Settings, path: &Path, arguments: &[&str]) -> Program {
        let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let mut program = self.program(path, &arguments);
        settings.export(&mut program.environment);
        program
    }

    fn program(&self, path: &Path, arguments: &[String]) -> Program {
        Program {
            path: path.to_path_buf(),
            arguments: arguments.to_vec(),
            environment: self.environment.clone(),
            folder: self.folder.clone(),
        }
    }

    /// The socket folder to add to a server's arguments: none if its configuration chose one itself.
    async fn sockets_for(&self, options: &[String]) -> Option<&Path> {
        self.own_sockets(options)?;
        match self.ask("unix_socket_directories", options).await.as_deref() {
            Ok("/var/run/postgresql" | "/run/postgresql" | "/tmp" | "") | Err(_) => {
                Some(&self.sockets)
            }
            Ok(_) => None,
        }
    }

    fn own_sockets(&self, options: &[String]) -> Option<&Path> {
        let chosen = options.iter().any(|option| option.contains("unix_socket_directories"));
        (!chosen).then_some(self.sockets.as_path())
    }

    /// Asks the server's program for the value that a setting would have.
    async fn ask(&self, setting: &str, options: &[String]) -> Result<String, String> {
        let mut arguments = vec!["-C".to_owned(), setting.to_owned()];
        arguments.extend(options.iter().cloned());
        let program = self.program(&self.bin_dir.join("postgres"), &arguments);
        match self.starter.output(&program, "", QUERY).await {
            Ok(Some((Exit { code: 0, .. }, text))) => Ok(answer(&text).to_owned()),
            Ok(Some((_, text))) => Err(text.trim_end().to_owned()),
            Ok(None) => Err("postgres did not answer in time".to_owned()),
            Err(error) => Err(format!("postgres could not be started: {error}")),
        }
    }

    /// Runs a program to its end, or stops it when the order comes.
    pub(crate) async fn run(
        &self,
        program: &Program,
        input: &str,
        stop: &mut StopListener,
    ) -> Exit {
        let mut running = match self.starter.start(program, &self.log, input) {
            Ok(running) => running,
            Err(error) => {
                return self
                    .refuse(&format!("cannot run {}: {error}", program.path.display()), 126);
            }
        };
        tokio::select! {
            exit = running.wait() => exit,
            // SIGINT is the image's STOPSIGNAL: a fast shutdown.
            grace = stop.wanted() => running.stop(Signal::SIGINT, grace).await,
        }
    }

    fn refuse(&self, message: &str, code: i32) -> Exit {
        self.log.line(message);
        Exit::with_code(code)
    }

    fn owner(&self) -> Option<&RunUser> {
        self.starter.user.as_ref()
    }
}

/// The value among what the program prints: it also logs, for instance that an included file is missing.
fn answer(text: &str) -> &str {
    text.lines().rev().find(|line| !line.contains(" LOG:  ")).unwrap_or_default().trim()
}

fn ok_or_ended(exit: Exit) -> Result<(), Ended> {
    if exit.code == 0 { Ok(()) } else { Err(exit) }
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_no_answers() {
        let log =
            "2026-01-01 00:00:00.000 GMT [1] LOG:  skipping missing configuration file \"/x\"";
        for (text, expected) in [
            ("/tmp\n".to_owned(), "/tmp"),
            (format!("{log}\n/tmp\n"), "/tmp"),
            (format!("/tmp\n{log}\n"), "/tmp"),
            (format!("{log}\n"), ""),
        ] {
            assert_eq!(answer(&text), expected, "{text}");
        }
    }
}
