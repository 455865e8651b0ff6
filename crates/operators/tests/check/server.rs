//! A server of a few facts: roles with passwords, one database, and the statements of
//! `operators::database::sql`, recognised by their exact text.

use std::collections::BTreeMap;

use operators::database::sql;
use phased::ObjectId;
use phased::fact::{Access, Fate, Password, SecretKey, SqlOutcome, SqlPiece, SqlRequest, Trouble};
use phased::step::ExecRequest;
use serde_json::Value;

use super::decode;

/// The server's facts.
#[derive(Clone, Debug)]
pub struct Server {
    pub up: bool,
    pub initialised: bool,
    pub roles: BTreeMap<String, String>,
    pub databases: BTreeMap<String, String>,
    pub marked: bool,
    pub identifier: String,
    pub identity: Option<String>,
    pub config: Option<String>,
    pub version: (u32, String),
    pub read_only: bool,
    pub trusts: bool,
    /// The application's role is past the end of its validity.
    pub expired: bool,
    /// Connection limit of the application's role.
    pub limit: i64,
    pub collation: (String, String),
    /// Answers every session or statement with this SQLSTATE, when set.
    pub refuses: Option<(String, Option<usize>)>,
    /// Answers every change with this SQLSTATE, when set.
    pub refuses_changes: Option<String>,
    /// Name of the Database, by which its pods are called.
    pub name: String,
    /// Slots by ordinal, with `wal_status`.
    pub slots: BTreeMap<u32, Option<String>>,
    /// Standbys that run, by ordinal.
    pub standbys: BTreeMap<u32, Standby>,
    /// Copies made so far.
    pub copies: usize,
    /// Says that a command was done, and does nothing.
    pub deaf: bool,
}

/// A standby that runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Standby {
    pub streams: bool,
    pub identifier: String,
    pub raised: bool,
    pub paused: bool,
    pub promoted: bool,
    /// The request that it was seeded for.
    pub seeded: Option<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            up: false,
            initialised: false,
            roles: BTreeMap::new(),
            databases: BTreeMap::new(),
            marked: false,
            identifier: "7000000000000000001".to_owned(),
            identity: None,
            config: None,
            version: (140_012, "14.12".to_owned()),
            read_only: false,
            trusts: false,
            expired: false,
            limit: -1,
            collation: ("2.36".to_owned(), "2.36".to_owned()),
            refuses: None,
            refuses_changes: None,
            name: "test-db".to_owned(),
            slots: BTreeMap::new(),
            standbys: BTreeMap::new(),
            copies: 0,
            deaf: false,
        }
    }
}

type Objects = BTreeMap<ObjectId, Value>;

impl Server {
    /// Starts with the configuration that is mounted.
    pub fn start(&mut self, config: Option<&Value>) {
        let text = config.map_or("", |c| c["data"]["postgresql.conf"].as_str().unwrap_or(""));
        let setting = |name: &str| {
            text.lines().find_map(|line| {
                let value = line.strip_prefix(name)?.strip_prefix(" = '")?;
                Some(value.trim_end_matches('\'').to_owned())
            })
        };
        self.identity = setting("steadfast.resource_uid");
        self.config = setting("steadfast.config");
        self.up = true;
        if !self.initialised {
            self.initialised = true;
            self.marked = true;
        }
    }

    /// What the guard of a standby does: it keeps a copy that is of use, and else makes one, which
    /// needs the primary, the role and the slot.
    pub fn seeds(&mut self, ordinal: u32, config: Option<&Value>) -> bool {
        let key = format!("reseed-{ordinal}");
        let asked = config.and_then(|c| c["data"][&key].as_str()).map(str::to_owned);
        let able = self.up
            && self.roles.contains_key("steadfast_replication")
            && self.slots.contains_key(&ordinal);
        let identifier = self.identifier.clone();
        let kept = self.standbys.get(&ordinal).is_some_and(|standby| {
            standby.identifier == identifier && (asked.is_none() || standby.seeded == asked)
        });
        if !kept {
            self.standbys.remove(&ordinal);
            if !able {
                return false;
            }
            self.copies += 1;
        }
        let seeded = if kept { self.standbys[&ordinal].seeded.clone() } else { asked };
        let standby = Standby {
            streams: able,
            identifier,
            raised: false,
            paused: false,
            promoted: false,
            seeded,
        };
        self.standbys.insert(ordinal, standby);
        if able {
            self.slots.insert(ordinal, Some("reserved".to_owned()));
        }
        true
    }

    fn password(objects: &Objects, key: &SecretKey) -> Option<String> {
        let (_, secret) = objects.iter().find(|(id, _)| {
            id.kind.kind == "Secret" && id.name == key.name && id.namespace == key.namespace
        })?;
        secret["data"].get(&key.key).map(decode)
    }

    fn log_in(&mut self, objects: &Objects, request: &SqlRequest) -> Result<(), SqlOutcome> {
        if !self.up {
            return Err(SqlOutcome::Unreachable { message: "connection refused".to_owned() });
        }
        if let Some((code, None)) = &self.refuses {
            return Err(refused(code, None));
        }
        let given = match &request.password {
            Password::Secret(key) => match Self::password(objects, key) {
                Some(password) => password,
                None => return Err(SqlOutcome::NoPassword { message: key.name.clone() }),
            },
            Password::Wrong => "certainly-wrong".to_owned(),
        };
        // The bootstrap takes the superuser's password from the Secret of its day.
        if request.user == "postgres" && request.password != Password::Wrong {
            self.roles.entry("postgres".to_owned()).or_insert_with(|| given.clone());
        }
        if !self.trusts && self.roles.get(&request.user) != Some(&given) {
            return Err(refused("28P01", None));
        }
        if request.user == "steadfast_replication" {
            return Err(refused("42501", None));
        }
        if request.user != "postgres" && self.expired {
            return Err(refused("28P01", None));
        }
        if request.user != "postgres" && self.limit == 0 {
            return Err(refused("53300", None));
        }
        if request.database != "postgres" && !self.databases.contains_key(&request.database) {
            return Err(refused("3D000", None));
        }
        Ok(())
    }

    /// Answers a question.
    pub fn session(&mut self, objects: &Objects, request: &SqlRequest) -> SqlOutcome {
        assert_ne!(request.access, Access::Change, "questions change nothing");
        if let Err(outcome) = self.log_in(objects, request) {
            return outcome;
        }
        if let Some(ordinal) = ordinal_of(&request.host) {
            return self.follower(ordinal);
        }
        let mut all = Vec::new();
        for (index, statement) in request.statements.iter().enumerate() {
            if let Some((code, Some(at))) = &self.refuses
                && *at == index
                && request.access == Access::Probe
            {
                return refused(code, Some(index));
            }
            let [SqlPiece::Text(text)] = &statement.0[..] else { unreachable!("plain text") };
            all.push(self.rows(text, request));
        }
        SqlOutcome::Rows(all)
    }

    fn follower(&self, ordinal: u32) -> SqlOutcome {
        let Some(standby) = self.standbys.get(&ordinal) else {
            return SqlOutcome::Unreachable { message: "connection refused".to_owned() };
        };
        if standby.promoted {
            return refused("55000", Some(1));
        }
        let word = |on: bool| Some(if on { "t" } else { "f" }.to_owned());
        let identity = vec![
            Some(standby.identifier.clone()),
            self.identity.clone(),
            self.config.clone(),
            Some(self.version.0.to_string()),
            word(true),
            Some(self.version.1.clone()),
            Some("off".to_owned()),
        ];
        let raised = standby.raised.then(|| "on".to_owned());
        SqlOutcome::Rows(vec![vec![identity], vec![vec![raised, word(standby.paused)]]])
    }

    fn replication(&self, text: &str) -> Option<Vec<Vec<Option<String>>>> {
        let word = |on: bool| Some(if on { "t" } else { "f" }.to_owned());
        if text == sql::replication_role() {
            let exists = self.roles.contains_key("steadfast_replication");
            return Some(if exists { vec![vec![word(true), word(true)]] } else { Vec::new() });
        }
        let streams = |n: &u32| self.standbys.get(n).is_some_and(|s| s.streams);
        if text == sql::slots() {
            let slot = |(n, status): (&u32, &Option<String>)| {
                vec![Some(format!("steadfast_{n}")), word(streams(n)), status.clone()]
            };
            return Some(self.slots.iter().map(slot).collect());
        }
        (text == sql::senders()).then(|| {
            let all = self.standbys.keys().filter(|n| streams(n));
            all.map(|n| vec![Some(format!("{}-{n}", self.name)), Some("streaming".to_owned())])
                .collect()
        })
    }

    fn rows(&self, text: &str, request: &SqlRequest) -> Vec<Vec<Option<String>>> {
        let cells = |cells: Vec<Option<String>>| vec![cells];
        let flag = |on: bool| Some(if on { "on" } else { "off" }.to_owned());
        if text == sql::identity() {
            return cells(vec![
                Some(self.identifier.clone()),
                self.identity.clone(),
                self.config.clone(),
                Some(self.version.0.to_string()),
                Some("f".to_owned()),
                Some(self.version.1.clone()),
                flag(self.read_only),
            ]);
        }
        if let Some(rows) = self.replication(text) {
            return rows;
        }
        if text == sql::bootstrap_mark() {
            return cells(vec![self.marked.then(|| sql::BOOTSTRAP_MARK.to_owned())]);
        }
        if text == sql::collation() {
            let (recorded, actual) = self.collation.clone();
            return cells(vec![Some(recorded), Some(actual)]);
        }
        if let Some((_, owner)) =
            self.databases.iter().find(|(name, _)| text == sql::database_owner(name))
        {
            return cells(vec![Some(owner.clone())]);
        }
        if self.roles.keys().any(|role| text == sql::role(role)) {
            return cells(vec![Some("t".to_owned()), Some(self.limit.to_string())]);
        }
        if text == sql::round_trip()[2] {
            assert_eq!(request.access, Access::Probe);
            return cells(vec![Some(sql::ROUND_TRIP_VALUE.to_owned())]);
        }
        Vec::new()
    }

    /// Carries a change out.
    pub fn change(&mut self, objects: &Objects, request: &SqlRequest) -> Result<(), Trouble> {
        assert_eq!(request.access, Access::Change);
        let trouble = |code: &str| Trouble {
            fate: Fate::WorldMayHeal,
            reason: format!("SQLSTATE {code}"),
            message: format!("refused with {code}"),
        };
        if self.log_in(objects, request).is_err() {
            return Err(trouble("28P01"));
        }
        if let Some(code) = &self.refuses_changes {
            return Err(trouble(code));
        }
        for statement in &request.statements {
            self.execute(objects, &statement.0);
        }
        Ok(())
    }

    /// The superuser's password is another one than the Secret's, and stays so.
    pub fn refuse_superuser_for_good(&mut self) {
        self.roles.insert("postgres".to_owned(), "the-old-one".to_owned());
        self.deaf = true;
    }

    /// Carries out what psql is told over the local socket, which asks for no password.
    pub fn exec(&mut self, objects: &Objects, request: &ExecRequest) -> Result<(), Trouble> {
        let trouble = |code: u32, words: &str| Trouble {
            fate: Fate::WorldMayHeal,
            reason: format!("ExitCode {code}"),
            message: format!("psql ended with {code}: {words}"),
        };
        if !self.up {
            return Err(trouble(2, "no such socket"));
        }
        let verifiers = request.input.iter().flat_map(|line| &line.0);
        let key = verifiers.filter_map(|piece| match piece {
            SqlPiece::Verifier(key) => Some(key.clone()),
            SqlPiece::Text(_) => None,
        });
        let key = key.last().expect("a password is set");
        let identity = self.identity.clone().unwrap_or_default();
        if request.input != sql::let_superuser_in(&self.identifier, &identity, key.clone()) {
            return Err(trouble(3, "another server"));
        }
        let password = Self::password(objects, &key).expect("the Secret exists");
        if !self.deaf {
            self.roles.insert("postgres".to_owned(), password);
        }
        Ok(())
    }

    fn change_slot(&mut self, call: &str) {
        let (function, rest) = call.split_once("('steadfast_").expect("a slot of ours");
        let ordinal: u32 = rest.trim_end_matches("')").parse().unwrap();
        match function.strip_prefix("pg_catalog.").unwrap() {
            "pg_create_physical_replication_slot" => {
                assert!(self.slots.insert(ordinal, None).is_none(), "slot {ordinal} exists");
            }
            "pg_drop_replication_slot" => {
                assert!(self.slots.remove(&ordinal).is_some(), "no slot {ordinal}");
            }
            other => panic!("unknown function {other}"),
        }
    }

    fn execute(&mut self, objects: &Objects, pieces: &[SqlPiece]) {
        let SqlPiece::Text(text) = &pieces[0] else { unreachable!("text comes first") };
        let words: Vec<&str> = text.split_whitespace().collect();
        let name = |word: &str| word.trim_matches('"').to_owned();
        match (&words[..], pieces.get(1)) {
            (["CREATE" | "ALTER", "ROLE", role, ..], Some(SqlPiece::Verifier(key))) => {
                let password = Self::password(objects, key).expect("the Secret exists");
                self.roles.insert(name(role), password);
                if text.contains("VALID UNTIL 'infinity'") {
                    self.expired = false;
                }
                if text.contains("CONNECTION LIMIT -1") {
                    self.limit = -1;
                }
            }
            (["CREATE", "DATABASE", database, "OWNER", owner], None)
            | (["ALTER", "DATABASE", database, "OWNER", "TO", owner], None) => {
                self.databases.insert(name(database), name(owner));
            }
            (["SELECT", call], None) => self.change_slot(call),
            (["COMMENT", ..], None) => self.marked = true,
            (["REVOKE" | "GRANT", ..], None) => {}
            _ => panic!("unknown change: {text}"),
        }
    }
}

fn ordinal_of(host: &str) -> Option<u32> {
    let (pod, rest) = host.split_once('.')?;
    rest.split('.').next()?.strip_suffix("-headless")?;
    pod.rsplit_once('-')?.1.parse().ok()
}

fn refused(code: &str, statement: Option<usize>) -> SqlOutcome {
    SqlOutcome::Refused {
        code: code.to_owned(),
        message: format!("the model refuses with {code}"),
        statement,
    }
}
