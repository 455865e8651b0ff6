//! The official image's entry point: first start, later starts, and how a start fails.
//!
//! Must not be kinder than the image: what is missing is missing, and the words are its own.

mod bootstrap;
mod running;
mod startup;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;

use super::conf;
use super::data::Data;
use super::refusal::Refusal;
use super::scram::Verifier;
use super::server::{Server, Start, Version};
use super::settings;
use crate::builtin::after;
use crate::builtin::field;
use crate::builtin::pods::program::{Exit, Launch, Plain, Program, Surroundings};
use crate::quantity::Quantity;
use running::Running;

/// Milliseconds that `initdb` and the bootstrap take.
const INITIALISE_MILLIS: i64 = 2500;
/// Milliseconds from the start of the server to its first connection.
const START_MILLIS: i64 = 300;

const NO_PASSWORD: &str = "\
Error: Database is uninitialized and superuser password is not specified.
       You must specify POSTGRES_PASSWORD to a non-empty value for the
       superuser. For example, \"-e POSTGRES_PASSWORD=password\" on \"docker run\".

       You may also use \"POSTGRES_HOST_AUTH_METHOD=trust\" to allow all
       connections without a password. This is *not* recommended.

       See PostgreSQL documentation about \"trust\":
       https://www.postgresql.org/docs/current/auth-trust.html
";

/// What the server would write on the first start.
const SAMPLE_CONFIGURATION: &str = "listen_addresses = '*'\nmax_connections = 100\nshared_buffers = \
     128MB\ndynamic_shared_memory_type = posix\nmax_wal_size = 1GB\nmin_wal_size = 80MB\n\
     log_timezone = 'Etc/UTC'\ndatestyle = 'iso, mdy'\ntimezone = 'Etc/UTC'\n\
     default_text_search_config = 'pg_catalog.english'\n";

/// A start that failed: exit code and what was printed last.
type Failed = Exit;

/// Starts the model where a container means PostgreSQL's server.
pub(crate) fn start(launch: &Launch, around: &mut Surroundings) -> Option<Box<dyn Program>> {
    let name = launch.image().rsplit('/').next().unwrap_or("");
    let name = name.split([':', '@']).next().unwrap_or("");
    let words = launch.arguments();
    let server = words.first().is_none_or(|word| {
        word.starts_with('-') || matches!(*word, "postgres" | "docker-entrypoint.sh")
    });
    if launch.init || !name.contains("postgres") || !server {
        return None;
    }
    let mut entry = Entry::new(launch, around.random);
    match entry.run(around) {
        Ok(running) => Some(Box::new(running)),
        Err(exit) => {
            let at = after(launch.now, 200);
            Some(Box::new(Plain { ends: Some((at, exit)), ready: false }))
        }
    }
}

struct Entry<'a> {
    launch: &'a Launch,
    version: Version,
    folder: String,
    place: Option<(String, String)>,
    random: fastrand::Rng,
    log: String,
}

impl<'a> Entry<'a> {
    fn new(launch: &'a Launch, random: u64) -> Entry<'a> {
        let version = Version::of_image(launch.image());
        let default = match version.major {
            ..=17 => "/var/lib/postgresql/data".to_owned(),
            major => format!("/var/lib/postgresql/{major}/docker"),
        };
        let folder = launch.environment.get("PGDATA").cloned().unwrap_or(default);
        let place = launch.volume_of(&folder);
        let random = fastrand::Rng::with_seed(random);
        Entry { launch, version, folder, place, random, log: String::new() }
    }

    fn variable(&self, name: &str) -> &str {
        self.launch.environment.get(name).map_or("", String::as_str)
    }

    fn say(&mut self, level: &str, text: &str) {
        let at = format!("{:.3}", self.launch.now).replace('T', " ");
        self.log.push_str(&format!("{} UTC [1] {level}:  {text}\n", at.trim_end_matches('Z')));
    }

    fn fail(&self, code: i64) -> Failed {
        Exit { code, message: self.log.clone() }
    }

    fn run(&mut self, around: &mut Surroundings) -> Result<Running, Failed> {
        let kept = self.place.as_ref();
        let kept =
            kept.and_then(|(volume, path)| around.volumes.state::<Mutex<Data>>(volume, path));
        let (data, wait) = match kept {
            Some(data) => (data, START_MILLIS),
            None if self.file(around, "PG_VERSION") => return Err(self.headless()),
            None => (self.initialise(around)?, INITIALISE_MILLIS),
        };
        let fresh = wait == INITIALISE_MILLIS;
        let ready_at = after(self.launch.now, wait);
        let server = Arc::new(self.server(&data, around, ready_at)?);
        if fresh {
            self.bootstrap(&server)?;
        }
        let standby = self.file(around, "standby.signal");
        self.begin(&server, standby)?;
        let addresses = server.setting("listen_addresses").unwrap_or_default();
        let port = server.setting("port").and_then(|text| text.parse().ok()).unwrap_or(5432);
        let mut running = Running {
            server: server.clone(),
            address: self.launch.address.clone(),
            port,
            ready_at,
            log: self.log.clone(),
            place: self.place.clone(),
            receiver: None,
        };
        running.listen(around, &addresses);
        running.follow(around);
        Ok(running)
    }

    /// First start: `initdb`, the superuser's password, the host rules.
    fn initialise(&mut self, around: &mut Surroundings) -> Result<Arc<Mutex<Data>>, Failed> {
        let (plain, file) =
            (self.variable("POSTGRES_PASSWORD"), self.variable("POSTGRES_PASSWORD_FILE"));
        if !plain.is_empty() && !file.is_empty() {
            self.log = "error: both POSTGRES_PASSWORD and POSTGRES_PASSWORD_FILE are set (but are \
                        exclusive)\n"
                .to_owned();
            return Err(self.fail(1));
        }
        let password = match file {
            "" => plain.to_owned(),
            path => self.launch.files.get(path).cloned().unwrap_or_default(),
        };
        let method = self.variable("POSTGRES_HOST_AUTH_METHOD").to_owned();
        if password.is_empty() && method != "trust" {
            NO_PASSWORD.clone_into(&mut self.log);
            return Err(self.fail(1));
        }
        if let Some((volume, path)) = &self.place
            && around.volumes.holds_below(volume, path)
        {
            let folder = &self.folder;
            self.log = format!(
                "initdb: error: directory \"{folder}\" exists but is not empty\ninitdb: hint: If \
                 you want to create a new database system, either remove or empty the directory \
                 \"{folder}\" or run initdb with an argument other than \"{folder}\".\n"
            );
            return Err(self.fail(1));
        }
        let superuser = self.superuser();
        let identifier = self.random.u64(7_000_000_000_000_000_000..7_700_000_000_000_000_000);
        let mut data = Data::initialise(identifier, self.version.major, &superuser);
        data.configuration = SAMPLE_CONFIGURATION.to_owned();
        data.host_rules = self.host_rules(&method);
        if !password.is_empty()
            && let Some(role) = data.roles.get_mut(&superuser)
        {
            role.verifier = Some(Verifier::of(
                password.trim_end_matches('\n'),
                self.random.u128(..).to_be_bytes(),
            ));
        }
        let data = Arc::new(Mutex::new(data));
        if let Some((volume, path)) = &self.place {
            around.volumes.keep(volume, path, data.clone());
            let file = format!("{path}/PG_VERSION");
            let major = format!("{}\n", self.version.major);
            around.volumes.write(volume, file.trim_start_matches('/'), &major);
        }
        Ok(data)
    }

    fn superuser(&self) -> String {
        match self.variable("POSTGRES_USER") {
            "" => "postgres".to_owned(),
            user => user.to_owned(),
        }
    }

    fn host_rules(&self, method: &str) -> String {
        let (mut local, mut host) = ("trust".to_owned(), "trust".to_owned());
        for word in self.variable("POSTGRES_INITDB_ARGS").split_whitespace() {
            if let Some(value) = word.strip_prefix("--auth-local=") {
                value.clone_into(&mut local);
            } else if let Some(value) = word.strip_prefix("--auth-host=") {
                value.clone_into(&mut host);
            } else if let Some(value) = word.strip_prefix("--auth=").or(word.strip_prefix("-A")) {
                value.clone_into(&mut local);
                value.clone_into(&mut host);
            }
        }
        let network = if method.is_empty() { "scram-sha-256" } else { method };
        format!(
            "local all all {local}\nhost all all 127.0.0.1/32 {host}\nhost all all ::1/128 {host}\n\
             host all all all {network}\n"
        )
    }

    /// The server over its data, or why it does not start.
    fn server(
        &mut self,
        data: &Arc<Mutex<Data>>,
        around: &Surroundings,
        ready_at: Timestamp,
    ) -> Result<Server, Failed> {
        let (major, configuration, rules, automatic) = {
            let data = data.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            (
                data.major,
                data.configuration.clone(),
                data.host_rules.clone(),
                data.automatic.clone(),
            )
        };
        if major != self.version.major {
            return Err(self.incompatible(major));
        }
        let (mut files, passwords) = self.files(around);
        files.insert(format!("{}/postgresql.conf", self.folder), configuration);
        files.insert(format!("{}/pg_hba.conf", self.folder), rules);
        let all = self.settings(&files, automatic)?;
        self.check(&all)?;
        let rules = self.rules(&files, &all)?;
        Ok(Server::new(Start {
            version: self.version,
            data: data.clone(),
            now: self.launch.now,
            settings: all,
            rules,
            files,
            random: self.random.u64(..),
            ready_at,
            passwords,
        }))
    }

    fn incompatible(&mut self, major: u32) -> Failed {
        self.say("FATAL", "database files are incompatible with server");
        let detail = format!(
            "The data directory was initialized by PostgreSQL version {major}, which is not \
                 compatible with this version {}.",
            self.version.shown()
        );
        self.say("DETAIL", &detail);
        self.fail(1)
    }

    /// All settings: file, then `ALTER SYSTEM`, then the command line.
    fn settings(
        &mut self,
        files: &BTreeMap<String, String>,
        automatic: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Failed> {
        let line = self.command_line();
        let file = |name: &str, default: &str| {
            let said = line.iter().rev().find(|entry| entry.0 == name).map(|entry| entry.1.clone());
            said.unwrap_or_else(|| format!("{}/{default}", self.folder))
        };
        let path = file("config_file", "postgresql.conf");
        let Some(text) = files.get(&path) else {
            self.log.push_str(&format!(
                "postgres: could not access the server configuration file \"{path}\": No such file \
                 or directory\n"
            ));
            return Err(self.fail(2));
        };
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        match conf::parse_with(&path, text, self.version.major, files) {
            Ok(entries) => all.extend(entries),
            Err(complaints) => return Err(self.complain(&complaints)),
        }
        all.extend(automatic);
        for (name, value) in line.clone() {
            match settings::find(&name, self.version.major) {
                Some(setting) => match setting.parse(&value) {
                    Ok(kept) => drop(all.insert(setting.name.to_owned(), kept)),
                    Err(refusal) => return Err(self.complain(&[fatal(refusal)])),
                },
                None if settings::is_custom(&name) => drop(all.insert(name, value)),
                None => return Err(self.complain(&[fatal(settings::unknown(&name))])),
            }
        }
        let rules_path =
            all.get("hba_file").cloned().unwrap_or_else(|| file("hba_file", "pg_hba.conf"));
        all.insert("config_file".into(), path);
        all.insert("hba_file".into(), rules_path);
        all.insert("data_directory".into(), self.folder.clone());
        Ok(all)
    }

    fn complain(&mut self, complaints: &[Refusal]) -> Failed {
        for complaint in complaints {
            let level = if complaint.fatal { "FATAL" } else { "LOG" };
            self.say(level, &complaint.message);
            for (level, text) in [("DETAIL", &complaint.detail), ("HINT", &complaint.hint)] {
                if let Some(text) = text {
                    self.say(level, text);
                }
            }
        }
        self.fail(1)
    }

    /// `-c name=value` and `--name=value` of the container's command.
    fn command_line(&self) -> Vec<(String, String)> {
        let words = self.launch.arguments();
        let mut found = Vec::new();
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            let pair = match *word {
                "-c" => words.next().copied(),
                word if word.starts_with("--") => word.strip_prefix("--"),
                word => word.strip_prefix("-c"),
            };
            let pair = pair.and_then(|pair| pair.split_once('='));
            found.extend(pair.map(|(name, value)| (name.replace('-', "_"), value.to_owned())));
        }
        found
    }

    /// What the server checks of its settings together.
    fn check(&mut self, all: &BTreeMap<String, String>) -> Result<(), Failed> {
        let major = self.version.major;
        let number = |name: &str| -> i64 {
            let kept = all.get(name).map(String::as_str);
            let boot = settings::find(name, major).map_or("0", |setting| setting.boot);
            kept.unwrap_or(boot).parse().unwrap_or(0)
        };
        let text = |name: &str| all.get(name).map(String::as_str).unwrap_or_default().to_owned();
        let (reserved, most) =
            (number("superuser_reserved_connections"), number("max_connections"));
        let minimal = text("wal_level") == "minimal";
        let memory = self.memory_limit();
        let fatal = if reserved >= most {
            Some(format!(
                "superuser_reserved_connections ({reserved}) must be less than max_connections ({most})"
            ))
        } else if minimal && number("max_wal_senders") > 0 {
            let message = "WAL streaming (max_wal_senders > 0) requires wal_level \"replica\" or \
                           \"logical\"";
            Some(message.to_owned())
        } else if memory.is_some_and(|limit| i128::from(number("shared_buffers")) * 8192 > limit) {
            Some("could not map anonymous shared memory: Cannot allocate memory".to_owned())
        } else {
            let libraries = text("shared_preload_libraries");
            let mut names = libraries.split(',').map(str::trim).filter(|name| !name.is_empty());
            let known = ["pg_stat_statements", "auto_explain", "pg_prewarm", "passwordcheck"];
            let unknown = names.find(|name| !known.contains(&name.trim_matches('\'')));
            unknown
                .map(|name| format!("could not access file \"{name}\": No such file or directory"))
        };
        match fatal {
            Some(message) => {
                self.say("FATAL", &message);
                Err(self.fail(1))
            }
            None => Ok(()),
        }
    }

    fn memory_limit(&self) -> Option<i128> {
        let text = field::text(&self.launch.container, "/resources/limits/memory");
        Quantity::parse(text).ok()?.scaled(0)
    }
}

fn fatal(refusal: Refusal) -> Refusal {
    Refusal { fatal: true, ..refusal }
}
