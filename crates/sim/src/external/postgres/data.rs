//! What a PostgreSQL cluster keeps on its volume: roles, databases, tables, identity.
//!
//! Plain data; rules are in `run`.

use std::collections::BTreeMap;

use super::scram::Verifier;
use super::wal::{Slot, Wal};

/// A role.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Role {
    pub(super) oid: i64,
    pub(super) superuser: bool,
    pub(super) inherit: bool,
    pub(super) create_role: bool,
    pub(super) create_database: bool,
    pub(super) login: bool,
    pub(super) replication: bool,
    pub(super) bypass_rls: bool,
    pub(super) connection_limit: i64,
    pub(super) valid_until: Option<String>,
    pub(super) verifier: Option<Verifier>,
    pub(super) member_of: Vec<String>,
    pub(super) settings: BTreeMap<String, String>,
}

impl Role {
    pub(super) fn new(oid: i64) -> Role {
        Role {
            oid,
            superuser: false,
            inherit: true,
            create_role: false,
            create_database: false,
            login: false,
            replication: false,
            bypass_rls: false,
            connection_limit: -1,
            valid_until: None,
            verifier: None,
            member_of: Vec::new(),
            settings: BTreeMap::new(),
        }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) oid: i64,
    pub(super) owner: String,
    pub(super) columns: Vec<super::ast::TableColumn>,
    pub(super) rows: Vec<Vec<super::value::Value>>,
    pub(super) next_serial: i64,
    pub(super) grants: Vec<(String, String)>,
}

/// A database.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Database {
    pub(super) oid: i64,
    pub(super) owner: String,
    pub(super) comment: Option<String>,
    pub(super) collation_version: Option<String>,
    pub(super) template: bool,
    pub(super) allow_connections: bool,
    pub(super) connection_limit: i64,
    /// Privileges by grantee, `""` for PUBLIC; none while nothing was granted or revoked.
    pub(super) privileges: Option<BTreeMap<String, Vec<char>>>,
    pub(super) settings: BTreeMap<String, String>,
    /// Schemas by name, with their owners.
    pub(super) schemas: BTreeMap<String, String>,
    pub(super) extensions: Vec<String>,
    pub(super) tables: BTreeMap<(String, String), Table>,
}

impl Database {
    pub(super) fn new(oid: i64, owner: &str, collation_version: Option<String>) -> Database {
        Database {
            oid,
            owner: owner.to_owned(),
            comment: None,
            collation_version,
            template: false,
            allow_connections: true,
            connection_limit: -1,
            privileges: None,
            settings: BTreeMap::new(),
            schemas: BTreeMap::from([("public".to_owned(), "pg_database_owner".to_owned())]),
            extensions: vec!["plpgsql".to_owned()],
            tables: BTreeMap::new(),
        }
    }

    /// Privileges as they hold: what the catalog says, or the defaults (PUBLIC may connect and make
    /// temporary tables, the owner may do everything).
    pub(super) fn holds(&self, grantee: &str, privilege: char) -> bool {
        match &self.privileges {
            Some(held) => held.get(grantee).is_some_and(|held| held.contains(&privilege)),
            None => grantee == self.owner || (grantee.is_empty() && privilege != 'C'),
        }
    }

    /// The stored privileges, made explicit before they change.
    pub(super) fn explicit(&mut self) -> &mut BTreeMap<String, Vec<char>> {
        let owner = self.owner.clone();
        self.privileges.get_or_insert_with(|| {
            BTreeMap::from([(String::new(), vec!['c', 'T']), (owner, vec!['C', 'T', 'c'])])
        })
    }
}

/// A cluster's data folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// PostgreSQL's identifier of the data, drawn when they are made.
    pub identifier: u64,
    /// Major version that made them.
    pub major: u32,
    pub(super) roles: BTreeMap<String, Role>,
    pub(super) databases: BTreeMap<String, Database>,
    pub(super) slots: BTreeMap<String, Slot>,
    /// The folder's own `pg_hba.conf`.
    pub(super) host_rules: String,
    /// The folder's own `postgresql.conf`.
    pub(super) configuration: String,
    /// `postgresql.auto.conf`.
    pub(super) automatic: BTreeMap<String, String>,
    pub(super) next_oid: i64,
    pub(super) wal: Wal,
    /// What a standby must not have less of, as the control file says it.
    pub(super) needs: BTreeMap<String, i64>,
    /// Whether a server of these data follows a primary: `standby.signal` as it last saw it.
    pub(super) follows: bool,
}

/// Settings that a standby must not have lower than its primary, in the order of the checks, with
/// their names in the control file.
pub(super) const NEEDS: [(&str, &str); 5] = [
    ("max_connections", "max_connections"),
    ("max_worker_processes", "max_worker_processes"),
    ("max_wal_senders", "max_wal_senders"),
    ("max_prepared_transactions", "max_prepared_xacts"),
    ("max_locks_per_transaction", "max_locks_per_xact"),
];

/// Roles that every cluster has.
const PREDEFINED: [(&str, i64); 5] = [
    ("pg_database_owner", 6171),
    ("pg_read_all_data", 6181),
    ("pg_write_all_data", 6182),
    ("pg_monitor", 3373),
    ("pg_read_all_settings", 3374),
];

/// What `initdb` says of its databases.
const COMMENTS: [(&str, &str); 3] = [
    ("postgres", "default administrative connection database"),
    ("template1", "default template for new databases"),
    ("template0", "unmodifiable empty database"),
];

impl Data {
    /// What `initdb` makes, with a superuser of this name.
    pub fn initialise(identifier: u64, major: u32, superuser: &str) -> Data {
        let mut roles = BTreeMap::new();
        roles.insert(
            superuser.to_owned(),
            Role {
                superuser: true,
                create_role: true,
                create_database: true,
                login: true,
                replication: true,
                bypass_rls: true,
                ..Role::new(10)
            },
        );
        for (name, oid) in PREDEFINED {
            roles.insert(name.to_owned(), Role::new(oid));
        }
        let version = Some(super::COLLATION_VERSION.to_owned()).filter(|_| major >= 15);
        let template = |oid: i64, connect: bool| Database {
            template: true,
            allow_connections: connect,
            privileges: Some(BTreeMap::from([
                (String::new(), vec!['c']),
                (superuser.to_owned(), vec!['C', 'T', 'c']),
            ])),
            ..Database::new(oid, superuser, version.clone())
        };
        let mut databases = BTreeMap::from([
            ("postgres".to_owned(), Database::new(5, superuser, version.clone())),
            ("template1".to_owned(), template(1, true)),
            ("template0".to_owned(), template(4, false)),
        ]);
        for (name, comment) in COMMENTS {
            if let Some(database) = databases.get_mut(name) {
                database.comment = Some(comment.to_owned());
            }
        }
        Data {
            identifier,
            major,
            roles,
            databases,
            slots: BTreeMap::new(),
            host_rules: String::new(),
            configuration: String::new(),
            automatic: BTreeMap::new(),
            next_oid: 16_384,
            wal: Wal::new(),
            needs: BTreeMap::new(),
            follows: false,
        }
    }

    /// What a base backup brings: everything but the slots.
    pub(super) fn copied(&self) -> Data {
        Data { slots: BTreeMap::new(), ..self.clone() }
    }

    /// What `pg_controldata` prints of it.
    pub(crate) fn control(&self) -> String {
        let state = if self.follows { "in archive recovery" } else { "in production" };
        let mut lines = vec![
            ("Database system identifier:".to_owned(), self.identifier.to_string()),
            ("Database cluster state:".to_owned(), state.to_owned()),
            ("Latest checkpoint's TimeLineID:".to_owned(), self.wal.timeline.to_string()),
        ];
        for (name, shown) in NEEDS {
            let value = self.needs.get(name).copied().unwrap_or(0);
            lines.push((format!("{shown} setting:"), value.to_string()));
        }
        lines.iter().map(|(name, value)| format!("{name:<38}{value}\n")).collect()
    }

    /// What `pg_basebackup -R` writes into `postgresql.auto.conf`.
    pub(crate) fn follow(&mut self, from: &super::conninfo::Conninfo, slot: Option<&str>) {
        self.automatic.insert("primary_conninfo".into(), from.recorded());
        if let Some(slot) = slot {
            self.automatic.insert("primary_slot_name".into(), slot.to_owned());
        }
    }

    /// Takes over what has been replayed; files of the folder stay as they are.
    pub(super) fn replay(&mut self, from: &Data) {
        self.roles.clone_from(&from.roles);
        self.databases.clone_from(&from.databases);
        self.next_oid = from.next_oid;
        let (oldest, redo) = (self.wal.oldest, self.wal.redo);
        self.wal = Wal { oldest, redo, ..from.wal.clone() };
    }

    pub(super) fn oid(&mut self) -> i64 {
        self.next_oid += 1;
        self.next_oid - 1
    }

    /// Whether `role` is `group` or a member of it, directly or through others.
    pub(super) fn is_member(&self, role: &str, group: &str) -> bool {
        let mut open = vec![role];
        let mut seen = Vec::new();
        while let Some(one) = open.pop() {
            if one == group {
                return true;
            }
            if seen.contains(&one) {
                continue;
            }
            seen.push(one);
            let groups = self.roles.get(one).into_iter().flat_map(|role| &role.member_of);
            open.extend(groups.map(String::as_str));
        }
        false
    }

    pub(super) fn is_superuser(&self, role: &str) -> bool {
        self.roles.get(role).is_some_and(|role| role.superuser)
    }

    /// Whether `role` may use a privilege of a database, by itself, a group, or PUBLIC.
    pub(super) fn may(&self, role: &str, database: &Database, privilege: char) -> bool {
        self.is_superuser(role)
            || database.holds("", privilege)
            || self
                .roles
                .keys()
                .any(|group| database.holds(group, privilege) && self.is_member(role, group))
    }
}
