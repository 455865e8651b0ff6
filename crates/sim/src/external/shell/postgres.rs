//! PostgreSQL's programs in a shell: `postgres --version`, `pg_controldata`, `pg_basebackup`; and
//! `sleep`, which takes time as a copy does.
//!
//! Must not copy anything itself; the model of replication does.

use std::sync::Mutex;
use std::time::Duration;

use super::command::unknown;
use super::{Leave, Said, Shell};
use crate::external::postgres::conninfo::Conninfo;
use crate::external::postgres::{Data, Order, Version, password};

/// A command that takes time.
#[derive(Clone, Debug)]
pub(super) enum Slow {
    Sleep(Duration),
    Copy(Box<Copying>),
}

/// A copy that is to be made.
#[derive(Clone, Debug)]
pub(super) struct Copying {
    pub(super) order: Order,
    /// The volume and path that it goes to.
    pub(super) to: (String, String),
    /// `-R`.
    pub(super) recovery: bool,
}

impl Shell<'_> {
    /// A program that the image brings; none where it does not.
    pub(super) fn program(
        &mut self,
        name: &str,
        arguments: &[String],
    ) -> Result<Option<Said>, Leave> {
        Ok(Some(match name {
            "sleep" => {
                let seconds = arguments.first().and_then(|text| text.parse::<f64>().ok());
                let Some(time) = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok()) else {
                    return Ok(Some(Said::failed(1, "sleep: invalid time interval\n".into())));
                };
                return Err(Leave::Wait(Slow::Sleep(time)));
            }
            "postgres" if arguments == ["--version"] => {
                let version = Version::of_image(self.launch.image());
                Said::out(format!("postgres (PostgreSQL) {}\n", version.shown()))
            }
            "pg_controldata" => self.control_data(arguments),
            "pg_basebackup" => match self.base_backup(arguments) {
                Ok(slow) => return Err(Leave::Wait(slow)),
                Err(said) => said,
            },
            _ => return Ok(None),
        }))
    }

    fn control_data(&self, arguments: &[String]) -> Said {
        let named = arguments.iter().rev().find(|word| !word.starts_with('-'));
        let folder = named.or_else(|| self.variables.get("PGDATA")).cloned().unwrap_or_default();
        let place = self.launch.volume_of(&folder);
        let kept =
            place.and_then(|(volume, path)| self.volumes.state::<Mutex<Data>>(&volume, &path));
        match kept {
            Some(data) => {
                let data = data.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                Said::out(data.control())
            }
            None => Said::failed(
                1,
                format!(
                    "pg_controldata: error: could not open file \"{folder}/global/pg_control\" for \
                     reading: No such file or directory\n"
                ),
            ),
        }
    }

    /// What a copy is asked for, or why the program does not even begin.
    fn base_backup(&self, arguments: &[String]) -> Result<Slow, Said> {
        let told = options(arguments)?;
        let failed = |text: &str| Said::failed(1, format!("pg_basebackup: error: {text}\n"));
        let Some(folder) = told.folder else {
            let hint = "pg_basebackup: hint: Try \"pg_basebackup --help\" for more information.";
            return Err(failed(&format!("no target directory specified\n{hint}")));
        };
        let mut from = told.from.map_err(|text| failed(text.trim_end()))?;
        let variable = |name: &str| self.variables.get(name);
        for (name, variable) in [
            ("host", variable("PGHOST")),
            ("port", variable("PGPORT")),
            ("user", variable("PGUSER")),
            ("application_name", variable("PGAPPNAME")),
            ("passfile", variable("PGPASSFILE")),
            ("password", variable("PGPASSWORD")),
            ("connect_timeout", variable("PGCONNECT_TIMEOUT")),
        ] {
            from.or(name, variable);
        }
        from.or("fallback_application_name", Some(&"pg_basebackup".to_owned()));
        from.retrieve(|path, to| self.password(path, to));
        let Some(to) = self.launch.volume_of(&folder) else {
            let text = format!("could not create directory \"{folder}\": Read-only file system");
            return Err(failed(&text));
        };
        let existed = self.is_folder(&folder);
        if !self.names(&folder).is_empty() {
            return Err(failed(&format!("directory \"{folder}\" exists but is not empty")));
        }
        let order = Order {
            from,
            slot: told.slot,
            create_slot: told.create_slot,
            folder,
            existed,
            address: self.launch.address.clone(),
            takes: Duration::from_millis(1500),
        };
        Ok(Slow::Copy(Box::new(Copying { order, to, recovery: told.recovery })))
    }

    /// The password in a file, unless others may read it, when libpq does not.
    fn password(&self, path: &str, to: &Conninfo) -> Option<String> {
        let (volume, rest) = self.launch.volume_of(path)?;
        let file = self.volumes.file(&volume, &rest)?;
        let private = self.volumes.is_private(&volume, &rest);
        private.then(|| password(file, to)).flatten()
    }
}

struct Told {
    folder: Option<String>,
    from: Result<Conninfo, String>,
    slot: Option<String>,
    create_slot: bool,
    recovery: bool,
}

/// Reads the program's options.
fn options(arguments: &[String]) -> Result<Told, Said> {
    let mut told = Told {
        folder: None,
        from: Ok(Conninfo::default()),
        slot: None,
        create_slot: false,
        recovery: false,
    };
    let mut single = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let (name, joined) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (word.as_str(), None),
        };
        let mut value = || joined.clone().or_else(|| words.next().cloned()).unwrap_or_default();
        match name {
            "-D" | "--pgdata" => told.folder = Some(value()),
            "-d" | "--dbname" => told.from = Conninfo::parse(&value()),
            "-S" | "--slot" => told.slot = Some(value()),
            "-h" | "--host" => single.push(("host", value())),
            "-p" | "--port" => single.push(("port", value())),
            "-U" | "--username" => single.push(("user", value())),
            "-C" | "--create-slot" => told.create_slot = true,
            "-R" | "--write-recovery-conf" => told.recovery = true,
            "-X" | "--wal-method" => match value().as_str() {
                "stream" | "s" => {}
                other => return Err(unknown(&format!("pg_basebackup -X {other}"))),
            },
            "-c" | "--checkpoint" | "-l" | "--label" => drop(value()),
            "-w" | "--no-password" | "-v" | "--verbose" | "-P" | "--progress" | "-N"
            | "--no-sync" => {}
            other => return Err(unknown(&format!("pg_basebackup {other}"))),
        }
    }
    if let Ok(from) = &mut told.from {
        single.iter().for_each(|(name, value)| from.set(name, value));
    }
    Ok(told)
}
