//! What a forecast supposes that the server answers: what the plan hopes for.
//!
//! Before the first verification the role and the database are missing, as after the image's own
//! bootstrap; once the actions are done, or for a Database that has served, all is well. Must stay
//! in step with what [`super::verify`] reads.

use phased::fact::{Reply, SqlOutcome, SqlText};
use phased::step::Request;
use phased::{Live, Past, Question};

use super::blueprint::Blueprint;
use super::context::Context;
use super::held;
use super::verify::Target;
use super::{config, image, names, recovery, replication, secrets, sql};

use crate::parts::members::Members;
use crate::parts::scene::Scene;

/// System identifier of data that do not exist yet.
const NEW_IDENTIFIER: &str = "0";

type Rows = Vec<Vec<Option<String>>>;

/// The reply that is hoped for; `None` for questions that are not of the verification.
pub(super) fn reply(context: &Context, question: &Question, past: &Past<'_>) -> Option<Reply> {
    let (blueprint, target) = (context.blueprint.as_ref()?, context.target()?);
    let served = context.status.system_identifier.is_some();
    let has = |action: &str| served || past.did(action);
    let (role, database) = (has("create-role"), has("create-database"));
    let identity = identity(context, blueprint);
    let owner = row(database.then(|| target.username.clone()).into_iter().map(Some));
    let mark = row([Some(sql::BOOTSTRAP_MARK.to_owned())]);
    let outcome = if *question == target.wrong_password() {
        refused("28P01")
    } else if *question == target.inspect() && is_locked_out(context, past) {
        refused("28P01")
    } else if *question == target.inspect() {
        let role =
            row(role.then(|| [Some("t".to_owned()), Some("-1".to_owned())]).into_iter().flatten());
        let mut rows = vec![identity, owner, mark, role];
        rows.extend(replication(context, blueprint, past));
        SqlOutcome::Rows(rows)
    } else if *question == target.replication_login() {
        refused("42501")
    } else if let Some(n) = blueprint.standbys().find(|n| *question == target.standby(*n)) {
        let raised = is_raised(context, blueprint, past, n).then(|| "on".to_owned());
        SqlOutcome::Rows(vec![identity, row([raised, Some("f".to_owned())])])
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

/// Whether the superuser is refused: its Secret was lost, or is not what it was, and nobody has let it in
/// since.
fn is_locked_out(context: &Context, past: &Past<'_>) -> bool {
    let served = context.status.system_identifier.is_some();
    let id = context.names.superuser_secret();
    let password = |secret: &Live| secret.value["data"][secrets::PASSWORD_KEY].clone();
    let before = past.seen.object(&id).map(password);
    let now = context.seen(&id).as_ref().map(password);
    served && now.is_some() && before != now && !past.did(recovery::ACTION)
}

/// Role, slots and senders: what was there for the servers that the forecast began with, and what was
/// done since. A standby whose pod is there streams.
fn replication(context: &Context, blueprint: &Blueprint, past: &Past<'_>) -> [Rows; 3] {
    let truth = |holds: bool| Some(if holds { "t" } else { "f" }.to_owned());
    let role = servers(past) > 1 || past.did(replication::ACTIONS[0]);
    let slots = (1..servers(past).max(blueprint.valid.replicas)).filter(|n| has_slot(past, *n));
    let slot = |n: u32| {
        let active = truth(context.pod(n).is_some());
        vec![Some(names::slot(n)), active, Some("reserved".to_owned())]
    };
    let senders = blueprint.standbys().filter(|n| context.pod(*n).is_some());
    [
        if role { row([truth(true), truth(true)]) } else { Vec::new() },
        slots.map(slot).collect(),
        senders
            .map(|n| vec![Some(context.names.pod(n).name), Some("streaming".to_owned())])
            .collect(),
    ]
}

/// How many servers the Database had when the forecast began; none before it has served.
fn servers(past: &Past<'_>) -> u32 {
    let status = &past.seen.root.value["status"];
    let replicas = status["replicas"].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    if status["systemIdentifier"].is_string() { replicas } else { 0 }
}

/// Whether the slot of an ordinal exists: by the last action about it, else by what there was.
fn has_slot(past: &Past<'_>, ordinal: u32) -> bool {
    let made = [SqlText::plain(sql::create_slot(ordinal))];
    let dropped = [SqlText::plain(sql::drop_slot(ordinal))];
    let last = past.done.iter().rev().find_map(|action| match &action.request {
        Request::Sql(request) if request.statements == made => Some(true),
        Request::Sql(request) if request.statements == dropped => Some(false),
        Request::Sql(_) | Request::ZooKeeper(_) | Request::Exec(_) => None,
    });
    last.unwrap_or(ordinal < servers(past))
}

/// Whether a standby runs with settings that its guard raised: it was made on the way, while the primary
/// still ran with higher ones.
fn is_raised(context: &Context, blueprint: &Blueprint, past: &Past<'_>, ordinal: u32) -> bool {
    let (Some(standby), Some(primary)) = (context.pod(ordinal), context.pod(0)) else {
        return false;
    };
    let before = past.seen.object(&context.names.pod(ordinal));
    let is_new = before.is_none_or(|before| before.uid() != standby.uid());
    let made = |pod: &Live| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let config = past.seen.object(&context.names.config_map());
    let old = config.and_then(|config| config.value["data"][config::SETTINGS_KEY].as_str());
    is_new
        && made(standby) < made(primary)
        && old.is_some_and(|old| config::is_lowered(old, &config::server_settings(blueprint)))
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
