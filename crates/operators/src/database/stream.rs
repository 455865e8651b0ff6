//! What servers tell of replication: the role, the slots, who receives the log, how a standby stands.
//!
//! Must not act; [`super::replication`] does.

use phased::fact::{Answer, Reply, SqlOutcome};

use super::names;
use super::verify::{Identity, Row, cell, first, identity, is_true};

/// What the superuser found about replication on the primary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replication {
    /// The role of standbys, if it exists: whether it may log in and replicate.
    pub role: Option<bool>,
    /// Slots of our standbys.
    pub slots: Vec<Slot>,
    /// Who receives the log, by name.
    pub senders: Vec<Sender>,
}

/// A physical slot of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Whose it is.
    pub ordinal: u32,
    /// Whether somebody uses it now.
    pub active: bool,
    /// How much of the log it still keeps, as PostgreSQL words it; `None` before its first use.
    pub status: Option<String>,
}

/// A receiver of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// `application_name`: the pod's name for our standbys.
    pub name: String,
    /// `streaming`, `catchup`, `backup`, …
    pub state: String,
}

/// How a standby says that it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is a standby.
    Standby {
        /// Who it is.
        identity: Identity,
        /// Whether its guard raised settings above those of the file.
        raised: bool,
        /// Whether its replay is paused.
        paused: bool,
    },
    /// It follows nobody: somebody promoted it.
    Promoted,
    /// It could not be asked; the words say why.
    Unknown(String),
}

impl Slot {
    /// Whether the primary gave up what this slot was to keep.
    pub fn is_lost(&self) -> bool {
        self.status.as_deref() == Some("lost")
    }

    /// Whether the primary is about to give it up.
    pub fn is_endangered(&self) -> bool {
        self.status.as_deref() == Some("unreserved")
    }
}

impl Replication {
    /// Reads the rows of role, slots and senders.
    pub fn read(rows: &[Vec<Vec<Option<String>>>]) -> Self {
        let all = |index: usize| rows.get(index).map(Vec::as_slice).unwrap_or_default();
        let role =
            first(rows, 0).map(|row| [0, 1].iter().all(|i| cell(row, *i).is_some_and(is_true)));
        let slot = |row: &Vec<Option<String>>| {
            Some(Slot {
                ordinal: names::ordinal_of_slot(cell(row, 0)?)?,
                active: cell(row, 1).is_some_and(is_true),
                status: cell(row, 2).map(str::to_owned),
            })
        };
        let sender = |row: &Vec<Option<String>>| {
            Some(Sender { name: cell(row, 0)?.to_owned(), state: cell(row, 1)?.to_owned() })
        };
        Self {
            role,
            slots: all(1).iter().filter_map(slot).collect(),
            senders: all(2).iter().filter_map(sender).collect(),
        }
    }

    /// The slot of an ordinal.
    pub fn slot(&self, ordinal: u32) -> Option<&Slot> {
        self.slots.iter().find(|slot| slot.ordinal == ordinal)
    }

    /// The sender to a pod.
    pub fn sender(&self, pod: &str) -> Option<&Sender> {
        self.senders.iter().find(|sender| sender.name == pod)
    }
}

/// Whether the server refuses the password of the role of standbys. The role may connect to no
/// database, so that a right password is refused as well, but for another reason.
pub fn password_refused(answer: &Answer) -> bool {
    matches!(
        answer,
        Ok(Reply::Sql(SqlOutcome::Refused { code, statement: None, .. })) if code == "28P01"
    )
}

/// Reads the answer of a standby.
pub fn told(answer: &Answer) -> Told {
    match answer {
        Ok(Reply::Sql(SqlOutcome::Rows(rows))) => standby(rows).unwrap_or(Told::Promoted),
        Ok(Reply::Sql(SqlOutcome::Refused { statement: Some(1), .. })) => Told::Promoted,
        Ok(Reply::Sql(SqlOutcome::Refused { message, .. })) => Told::Unknown(message.clone()),
        Ok(Reply::Sql(
            SqlOutcome::Unreachable { message } | SqlOutcome::NoPassword { message },
        )) => Told::Unknown(message.clone()),
        Ok(_) => Told::Unknown("the answer does not have the expected form".to_owned()),
        Err(trouble) => Told::Unknown(trouble.message.clone()),
    }
}

fn standby(rows: &[Vec<Vec<Option<String>>>]) -> Option<Told> {
    let identity = identity(first(rows, 0)?)?;
    let row: &Row = first(rows, 1)?;
    let is = |index| cell(row, index).is_some_and(is_true);
    Some(Told::Standby { identity, raised: is(0), paused: is(1) })
}
