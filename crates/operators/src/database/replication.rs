//! What the superuser puts right on the primary for its standbys: the role, its password, the slots.
//!
//! As with [`super::remedy`], each action is decided anew on what the next look finds.

use phased::fact::SqlText;
use phased::ladder::Verdict;
use phased::step::{Action, Request};
use phased::{Question, Step, Wake};

use super::blueprint::Blueprint;
use super::context::{Context, Tending};
use super::stream::{self, Replication};
use super::verify::Target;
use super::{names, recovery, secrets, sql, standbys, withheld};

use crate::parts::members::Members;

/// Names of the actions, by which their trouble is told from that of others.
pub const ACTIONS: [&str; 4] =
    ["create-replication-role", "set-replication-password", "create-slot", "drop-slot"];

/// Gate of these actions: the primary's pod is ready, and the server proved by its identity that it is
/// this Database's. Unlike [`super::remedy::GATE`] it does not ask for a finished roll, which may be
/// waiting for a standby that cannot start without them.
pub const GATE: &str = "PrimaryAnswers";

/// Makes what standbys start from, the role with its password and the slots, although the primary is
/// not verified: while its StatefulSet rolls, a standby that cannot start for want of them holds the
/// roll up before the primary, which then is never verified.
pub fn prepare(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let context = tending.context;
    let waits = |n: u32| context.pod(n).is_some_and(|pod| !standbys::is_up(pod));
    let serves = !blueprint.may_bootstrap() && context.pod(0).is_some_and(standbys::is_up);
    let Some(target) = context.target() else { return };
    if !serves || !blueprint.standbys().any(waits) || standbys::trouble(context).is_some() {
        return;
    }
    let facts = &context.observed.facts;
    let questions = [target.inspect(), target.replication_login()];
    let open = questions.into_iter().filter(|question| !facts.contains_key(question));
    let open: Vec<Question> = open.collect();
    if !open.is_empty() {
        tending.judgement.asks.extend(open);
        tending.judge(Verdict::Asking);
        return;
    }
    // A server that cannot be asked is told of by the rung itself.
    let Some(found) = context.inspection() else {
        // The rung below lets the superuser in where the application's password hangs on it.
        let asked = context.heard(&target.inspect());
        if let Some(answer) = asked.filter(|_| !withheld::is_lost(context)) {
            recovery::aside(tending, blueprint, answer);
        }
        return;
    };
    let actions = actions(context, blueprint, &target, &found.replication);
    if !actions.is_empty() {
        tending.judgement.wake = Wake::Now;
    }
    tending.judgement.steps.extend(actions.into_iter().map(Step::Act));
}

/// The actions that what was found asks for.
pub fn actions(
    context: &Context,
    blueprint: &Blueprint,
    target: &Target,
    found: &Replication,
) -> Vec<Action> {
    let mut all = Vec::new();
    if !blueprint.standbys().is_empty() {
        all.extend(role(context, target, found));
    }
    for ordinal in blueprint.standbys() {
        let slot = found.slot(ordinal);
        if slot.is_some_and(|slot| slot.is_lost() && blueprint.reseed.contains_key(&ordinal)) {
            let why = "the primary gave up what it was to keep";
            all.push(drop_slot(target, ordinal, why));
        }
        if slot.is_none_or(|slot| slot.is_lost() && blueprint.reseed.contains_key(&ordinal)) {
            let name = names::slot(ordinal);
            let why = format!("{} needs the slot {name}", context.names.pod(ordinal).name);
            all.push(action(target, ACTIONS[2], why, SqlText::plain(sql::create_slot(ordinal))));
        }
    }
    let left = found.slots.iter().filter(|slot| !blueprint.standbys().contains(&slot.ordinal));
    for slot in left.filter(|slot| !slot.active && context.pod(slot.ordinal).is_none()) {
        all.push(drop_slot(target, slot.ordinal, "its standby is gone"));
    }
    all
}

fn role(context: &Context, target: &Target, found: &Replication) -> Option<Action> {
    let password = secrets::replication_password(&context.names);
    let login = context.heard(&target.replication_login());
    let role = secrets::REPLICATION_ROLE;
    match found.role {
        None => {
            let why = format!("role {role:?} does not exist");
            Some(action(target, ACTIONS[0], why, sql::create_replication_role(password)))
        }
        Some(able) if !able || login.is_some_and(stream::password_refused) => {
            let why = format!("role {role:?} does not log in with the Secret's password");
            Some(action(target, ACTIONS[1], why, sql::set_replication_password(password)))
        }
        Some(_) => None,
    }
}

fn drop_slot(target: &Target, ordinal: u32, why: &str) -> Action {
    let why = format!("slot {}: {why}", names::slot(ordinal));
    action(target, ACTIONS[3], why, SqlText::plain(sql::drop_slot(ordinal)))
}

fn action(target: &Target, name: &'static str, why: String, statement: SqlText) -> Action {
    Action { name, gate: GATE, request: Request::Sql(target.change(vec![statement])), why }
}
