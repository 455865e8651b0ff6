//! What a forecast supposes that the server answers: what the plan hopes for.
//!
//! Before the first verification the role and the database are missing, as after the image's own
//! bootstrap; once the actions are done, or for a Database that has served, all is well. Must stay
//! in step with what [`super::verify`] reads.

use phased::Question;
use phased::fact::{Reply, SqlOutcome};

use super::blueprint::Blueprint;
use super::context::Context;
use super::held;
use super::verify::Target;
use super::{config, image, names, replication, sql};

/// System identifier of data that do not exist yet.
const NEW_IDENTIFIER: &str = "0";

type Rows = Vec<Vec<Option<String>>>;

/// The reply that is hoped for; `None` for questions that are not of the verification.
pub(super) fn reply(context: &Context, question: &Question, done: &[&str]) -> Option<Reply> {
    let (blueprint, target) = (context.blueprint.as_ref()?, context.target()?);
    let served = context.status.system_identifier.is_some();
    let has = |action: &str| served || done.contains(&action);
    let (role, database) = (has("create-role"), has("create-database"));
    let identity = identity(context, blueprint);
    let owner = row(database.then(|| target.username.clone()).into_iter().map(Some));
    let mark = row([Some(sql::BOOTSTRAP_MARK.to_owned())]);
    let outcome = if *question == target.wrong_password() {
        refused("28P01")
    } else if *question == target.inspect() {
        let role =
            row(role.then(|| [Some("t".to_owned()), Some("-1".to_owned())]).into_iter().flatten());
        let mut rows = vec![identity, owner, mark, role];
        rows.extend(replication(context, blueprint, done));
        SqlOutcome::Rows(rows)
    } else if *question == target.replication_login() {
        refused("42501")
    } else if blueprint.standbys().any(|n| *question == target.standby(n)) {
        SqlOutcome::Rows(vec![identity, row([None, Some("f".to_owned())])])
    } else if *question == target.probe() {
        match (role, database) {
            (false, _) => refused("28P01"),
            (true, false) => refused("3D000"),
            (true, true) => probed(&target, vec![identity, owner, mark]),
        }
    } else {
        return None;
    };
    Some(Reply::Sql(outcome))
}

/// Role, slots and senders: what was there for the servers of the last status, and what was made since.
/// A standby whose pod is there streams.
fn replication(context: &Context, blueprint: &Blueprint, done: &[&str]) -> [Rows; 3] {
    let recorded = context.status.replicas.and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    let served = context.status.system_identifier.is_some();
    let yes = || Some("t".to_owned());
    let role = served && recorded > 1 || done.contains(&replication::ACTIONS[0]);
    let slot = |n: &u32| served && recorded > *n || done.contains(&replication::ACTIONS[2]);
    let slots = blueprint.standbys().filter(slot);
    let senders = blueprint.standbys().filter(|n| context.pod(*n).is_some());
    [
        if role { row([yes(), yes()]) } else { Vec::new() },
        slots.map(|n| vec![Some(names::slot(n)), yes(), Some("reserved".to_owned())]).collect(),
        senders
            .map(|n| vec![Some(context.names.pod(n).name), Some("streaming".to_owned())])
            .collect(),
    ]
}

fn probed(target: &Target, mut rows: Vec<Rows>) -> SqlOutcome {
    rows.extend([Vec::new(), Vec::new(), row([Some(sql::ROUND_TRIP_VALUE.to_owned())])]);
    if target.major.is_some() {
        rows.push(Vec::new());
    }
    SqlOutcome::Rows(rows)
}

/// The server runs with today's configuration and the recorded data.
fn identity(context: &Context, blueprint: &Blueprint) -> Rows {
    let recorded = context.status.server_version.clone();
    let named = || image::major_hint(&blueprint.valid.image).map(|major| major.to_string());
    let version = recorded.or_else(named).unwrap_or_else(|| "17".to_owned());
    let major = held::major_of(&version).unwrap_or_default();
    let identifier = blueprint.identifier.clone();
    row([
        Some(identifier.unwrap_or_else(|| NEW_IDENTIFIER.to_owned())),
        Some(blueprint.identity.clone()),
        Some(config::restart_digest(blueprint)),
        Some((major * 10_000).to_string()),
        Some("f".to_owned()),
        Some(version),
        Some("off".to_owned()),
    ])
}

/// One row, or none for no cells.
fn row(cells: impl IntoIterator<Item = Option<String>>) -> Rows {
    let cells: Vec<Option<String>> = cells.into_iter().collect();
    if cells.is_empty() { Vec::new() } else { vec![cells] }
}

fn refused(code: &str) -> SqlOutcome {
    SqlOutcome::Refused { code: code.to_owned(), message: "supposed".to_owned(), statement: None }
}
