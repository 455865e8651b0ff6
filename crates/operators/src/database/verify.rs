//! What is asked of the server over SQL, and what its answers mean.
//!
//! Must not act: [`super::remedy`] decides what to put right. Unknown is never taken for down
//! (fault catalogue G-74): a server that cannot be reached is waited for, not replaced.

use phased::Question;
use phased::fact::{Access, Answer, Password, Reply, SqlOutcome, SqlRequest, SqlText};
use phased::ladder::Finding;

use super::names::{Names, PORT};
use super::secrets::{self, REPLICATION_ROLE, SUPERUSER_ROLE};
use super::stream::Replication;
use super::{reason, sql};

/// Oldest major version that is supported.
pub const OLDEST_MAJOR: u32 = 14;
/// Newest major version that is supported.
pub const NEWEST_MAJOR: u32 = 18;
/// The first major version that records collation versions of databases.
const COLLATION_MAJOR: u32 = 15;
/// Bound on connecting and on each statement, in seconds.
const TIMEOUT_SECONDS: u32 = 5;

/// The same where a server that was verified a moment ago does not answer in time.
const PATIENT_TIMEOUT_SECONDS: u32 = 15;

/// The same question, asked with more patience: one slow answer is no outage.
pub fn patiently(question: &Question) -> Option<Question> {
    let Question::Sql(request) = question else { return None };
    Some(Question::Sql(SqlRequest { timeout_seconds: PATIENT_TIMEOUT_SECONDS, ..request.clone() }))
}

/// Whether a session did not come to an end for a reason that may have passed already.
pub fn is_late(answer: &Answer) -> bool {
    let no_password = matches!(answer, Ok(Reply::Sql(SqlOutcome::NoPassword { .. })));
    !no_password && matches!(probed(answer), Heard::Later(_))
}

/// Whom to ask, and about what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Names of the Database's objects.
    pub names: Names,
    /// Host of the client Service.
    pub host: String,
    /// DNS domain of the cluster.
    pub domain: String,
    /// The application's database.
    pub database: String,
    /// The application's role.
    pub username: String,
    /// Major version as far as it is known.
    pub major: Option<u32>,
}

/// What the application's own session found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Who the server is.
    pub identity: Identity,
    /// Owner of the database.
    pub owner: Option<String>,
    /// Whether the bootstrap ran to its end.
    pub bootstrapped: bool,
    /// Whether the value that was written was read back.
    pub round_trip: bool,
    /// Recorded and actual collation version, where they differ.
    pub collation: Option<(String, String)>,
}

/// Who a server is and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// PostgreSQL's identifier of the data.
    pub system_identifier: String,
    /// Whose configuration it runs with.
    pub resource: Option<String>,
    /// Digest of that configuration.
    pub config: Option<String>,
    /// Major version.
    pub major: u32,
    /// Version, as it tells it, without the packager's words.
    pub version: String,
    /// Why it takes no writes, if so.
    pub read_only: Option<&'static str>,
}

/// What the superuser's session found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Who the server is.
    pub identity: Identity,
    /// The application's role, if it exists.
    pub role: Option<Role>,
    /// Owner of the database, if it exists.
    pub owner: Option<String>,
    /// Whether the bootstrap ran to its end.
    pub bootstrapped: bool,
    /// What it tells of its standbys.
    pub replication: Replication,
}

/// What the server holds against a role, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Role {
    /// Whether it may log in at all.
    pub may_log_in: bool,
    /// Whether its connection limit is zero, so that no session of it is ever let in.
    pub shut_out: bool,
}

/// How a session went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard<T> {
    /// It ran to its end.
    Clear(T),
    /// Not now; tried again soon.
    Later(Finding),
    /// The server said no; somebody must act or time must pass.
    Refused(Finding),
    /// The login or the session lacks something that the superuser can put right: the SQLSTATE.
    Lacking(String),
}

impl Target {
    /// The application's own session: login by password, then a transaction that is rolled back.
    pub fn probe(&self) -> Question {
        let mut statements =
            vec![sql::identity(), sql::database_owner(&self.database), sql::bootstrap_mark()];
        statements.extend(sql::round_trip());
        if self.major.is_some_and(|m| m >= COLLATION_MAJOR) {
            statements.push(sql::collation());
        }
        let password = Password::Secret(secrets::credentials_password(&self.names));
        self.session(&self.username, password, &self.database, Access::Probe, &statements)
    }

    /// The same login with a wrong password, which must be refused.
    pub fn wrong_password(&self) -> Question {
        let statements = ["SELECT 1".to_owned()];
        self.session(&self.username, Password::Wrong, &self.database, Access::ReadOnly, &statements)
    }

    /// A look around as the superuser. It is part of every verification, so that a login that is
    /// lost is told before it is needed.
    pub fn inspect(&self) -> Question {
        let statements = [
            sql::identity(),
            sql::database_owner(&self.database),
            sql::bootstrap_mark(),
            sql::role(&self.username),
            sql::replication_role(),
            sql::slots(),
            sql::senders(),
        ];
        let password = Password::Secret(secrets::superuser_password(&self.names));
        self.session(SUPERUSER_ROLE, password, SUPERUSER_ROLE, Access::ReadOnly, &statements)
    }

    /// A login with the password of the role of standbys.
    pub fn replication_login(&self) -> Question {
        let password = Password::Secret(secrets::replication_password(&self.names));
        let statements = ["SELECT 1".to_owned()];
        self.session(REPLICATION_ROLE, password, SUPERUSER_ROLE, Access::ReadOnly, &statements)
    }

    /// A look at a standby, as the superuser.
    pub fn standby(&self, ordinal: u32) -> Question {
        let host = format!("{}.{}", self.names.pod_host(ordinal), self.domain);
        let password = Password::Secret(secrets::superuser_password(&self.names));
        let statements = [sql::identity(), sql::standby()];
        let there = Self { host, ..self.clone() };
        there.session(SUPERUSER_ROLE, password, SUPERUSER_ROLE, Access::ReadOnly, &statements)
    }

    fn session(
        &self,
        user: &str,
        password: Password,
        database: &str,
        access: Access,
        statements: &[String],
    ) -> Question {
        Question::Sql(SqlRequest {
            host: self.host.clone(),
            port: PORT,
            user: user.to_owned(),
            password,
            database: database.to_owned(),
            access,
            statements: statements.iter().map(SqlText::plain).collect(),
            timeout_seconds: TIMEOUT_SECONDS,
        })
    }

    /// A change as the superuser.
    pub fn change(&self, statements: Vec<SqlText>) -> SqlRequest {
        SqlRequest {
            host: self.host.clone(),
            port: PORT,
            user: SUPERUSER_ROLE.to_owned(),
            password: Password::Secret(secrets::superuser_password(&self.names)),
            database: SUPERUSER_ROLE.to_owned(),
            access: Access::Change,
            statements,
            timeout_seconds: TIMEOUT_SECONDS,
        }
    }
}

/// Reads the answer to [`Target::probe`].
pub fn probed(answer: &Answer) -> Heard<Evidence> {
    match outcome(answer) {
        Err(finding) => Heard::Later(finding),
        Ok(SqlOutcome::Rows(rows)) => match evidence(rows) {
            Some(evidence) => Heard::Clear(evidence),
            None => Heard::Refused(unexpected()),
        },
        Ok(SqlOutcome::Refused { code, message, statement }) => {
            let login = statement.is_none();
            match code.as_str() {
                "28P01" | "28000" | "3D000" | "42501" if login => Heard::Lacking(code.clone()),
                "42501" if *statement == Some(3) => Heard::Lacking(code.clone()),
                _ => refused(code, message, login),
            }
        }
        Ok(other) => Heard::Later(unanswered(other)),
    }
}

/// Reads the answer to [`Target::wrong_password`]: clear means that the login was refused.
pub fn wrongly_let_in(answer: &Answer) -> Heard<()> {
    match outcome(answer) {
        Err(finding) => Heard::Later(finding),
        Ok(SqlOutcome::Refused { code, statement: None, .. }) if code.starts_with("28") => {
            Heard::Clear(())
        }
        Ok(SqlOutcome::Rows(_)) | Ok(SqlOutcome::Refused { statement: Some(_), .. }) => {
            Heard::Refused(Finding::new(
                &reason::PASSWORD_NOT_CHECKED,
                "a login with a wrong password was let in",
            ))
        }
        Ok(SqlOutcome::Refused { code, message, statement: None }) => refused(code, message, true),
        Ok(other) => Heard::Later(unanswered(other)),
    }
}

/// Why the server does not let the superuser in, by the answer to [`Target::inspect`].
pub fn superuser_refused(answer: &Answer) -> Option<Finding> {
    match inspected(answer) {
        Heard::Refused(finding) if finding.reason == &reason::SUPERUSER_LOGIN_FAILED => {
            Some(finding)
        }
        _ => None,
    }
}

/// Reads the answer to [`Target::inspect`].
pub fn inspected(answer: &Answer) -> Heard<Inspection> {
    match outcome(answer) {
        Err(finding) => Heard::Later(finding),
        Ok(SqlOutcome::Rows(rows)) => match inspection(rows) {
            Some(inspection) => Heard::Clear(inspection),
            None => Heard::Refused(unexpected()),
        },
        Ok(SqlOutcome::Refused { code, message, statement: None }) if code.starts_with("28") => {
            Heard::Refused(superuser_failed(&format!("{message} ({code})")))
        }
        Ok(SqlOutcome::Refused { code, message, statement }) => {
            refused(code, message, statement.is_none())
        }
        Ok(SqlOutcome::NoPassword { message }) => Heard::Refused(superuser_failed(message)),
        Ok(other) => Heard::Later(unanswered(other)),
    }
}

/// What begins the words about a superuser that is refused.
pub const SUPERUSER_REFUSED: &str = "the server does not let the superuser in";

fn superuser_failed(said: &str) -> Finding {
    let message = format!("{SUPERUSER_REFUSED}: {said}");
    Finding::new(&reason::SUPERUSER_LOGIN_FAILED, message)
}

fn outcome(answer: &Answer) -> Result<&SqlOutcome, Finding> {
    match answer {
        Ok(Reply::Sql(outcome)) => Ok(outcome),
        Ok(_) => Err(unexpected()),
        Err(trouble) => Err(Finding::new(&reason::SERVER_UNREACHABLE, trouble.message.clone())),
    }
}

fn unexpected() -> Finding {
    Finding::new(&reason::VERIFICATION_FAILED, "the answer does not have the expected form")
}

/// What a refusal means that the superuser cannot put right.
fn refused<T>(code: &str, message: &str, login: bool) -> Heard<T> {
    let said = format!("the server says: {message} ({code})");
    match code {
        "25006" => Heard::Refused(Finding::new(&reason::READ_ONLY_SERVER, said)),
        "53100" => Heard::Refused(Finding::new(&reason::DISK_FULL, said)),
        "55P03" | "57014" => Heard::Later(Finding::new(&reason::STATEMENT_BLOCKED, said)),
        "53300" => Heard::Later(Finding::new(&reason::SERVER_NOT_ACCEPTING, said)),
        c if c.starts_with("57P") || c.starts_with("08") => {
            Heard::Later(Finding::new(&reason::SERVER_NOT_ACCEPTING, said))
        }
        _ if login => Heard::Refused(Finding::new(
            &reason::VERIFICATION_FAILED,
            format!("the login failed; {said}"),
        )),
        _ => Heard::Refused(Finding::new(&reason::VERIFICATION_FAILED, said)),
    }
}

fn unanswered(outcome: &SqlOutcome) -> Finding {
    match outcome {
        SqlOutcome::Unreachable { message } => {
            Finding::new(&reason::SERVER_UNREACHABLE, message.clone())
        }
        SqlOutcome::NoPassword { message } => {
            Finding::new(&reason::PASSWORD_MISSING, message.clone())
        }
        SqlOutcome::Rows(_) | SqlOutcome::Refused { .. } => unexpected(),
    }
}

pub(super) type Row = [Option<String>];
type Rows = [Vec<Vec<Option<String>>>];

fn evidence(rows: &Rows) -> Option<Evidence> {
    let collation = first(rows, 6).and_then(|row| {
        let (recorded, actual) = (cell(row, 0)?, cell(row, 1)?);
        (recorded != actual).then(|| (recorded.to_owned(), actual.to_owned()))
    });
    Some(Evidence {
        identity: identity(first(rows, 0)?)?,
        owner: single(rows, 1),
        bootstrapped: single(rows, 2).as_deref() == Some(sql::BOOTSTRAP_MARK),
        round_trip: single(rows, 5).as_deref() == Some(sql::ROUND_TRIP_VALUE),
        collation,
    })
}

fn inspection(rows: &Rows) -> Option<Inspection> {
    Some(Inspection {
        identity: identity(first(rows, 0)?)?,
        owner: single(rows, 1),
        bootstrapped: single(rows, 2).as_deref() == Some(sql::BOOTSTRAP_MARK),
        role: first(rows, 3).and_then(|row| {
            let may_log_in = is_true(cell(row, 0)?);
            Some(Role { may_log_in, shut_out: cell(row, 1) == Some("0") })
        }),
        replication: Replication::read(rows.get(4..).unwrap_or_default()),
    })
}

pub(super) fn identity(row: &Row) -> Option<Identity> {
    let version_number: u32 = cell(row, 3)?.parse().ok()?;
    let is = |index| cell(row, index).is_some_and(is_true);
    let read_only = if is(4) {
        Some("it is in recovery")
    } else if is(6) {
        Some("default_transaction_read_only is on")
    } else {
        None
    };
    Some(Identity {
        system_identifier: cell(row, 0)?.to_owned(),
        resource: cell(row, 1).map(str::to_owned),
        config: cell(row, 2).map(str::to_owned),
        major: version_number / 10_000,
        version: cell(row, 5)?.split_whitespace().next()?.to_owned(),
        read_only,
    })
}

pub(super) fn is_true(text: &str) -> bool {
    matches!(text, "t" | "on" | "true")
}

pub(super) fn first(rows: &Rows, statement: usize) -> Option<&Row> {
    rows.get(statement)?.first().map(Vec::as_slice)
}

pub(super) fn cell(row: &Row, column: usize) -> Option<&str> {
    row.get(column)?.as_deref()
}

fn single(rows: &Rows, statement: usize) -> Option<String> {
    first(rows, statement).and_then(|row| cell(row, 0)).map(str::to_owned)
}
