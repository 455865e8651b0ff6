//! A superuser whom the server refuses is let in again: over the local socket of the primary, which
//! trusts whoever may run a command in its container, its password is set to the Secret's.
//!
//! Tried once for each version of the Secret. Must not touch the application's role, nor a server that
//! is not proved to be ours: the statements carry the proof themselves.

use k8s_openapi::api::core::v1::Pod;
use phased::child;
use phased::fact::Answer;
use phased::ladder::{Finding, Verdict};
use phased::pause::BECAUSE_PAUSED;
use phased::plan::EventNote;
use phased::step::{Action, ExecRequest, Request};
use phased::{Live, Step, StepTrouble, Wake};

use super::blueprint::Blueprint;
use super::context::{Context, Tending};
use super::secrets::{self, Judged};
use super::servers::SERVER_CONTAINER;
use super::{reason, sql, verify};
use crate::parts::members::{Members, is_ready};
use crate::parts::scene::Scene;

/// Name of the action.
pub const ACTION: &str = "recover-superuser";
/// Gate of the action: the primary's pod is our set's, ready and stays; data are recorded, by which the
/// server is recognised; the Secret holds a usable password.
pub const GATE: &str = "PrimaryPodReady";
/// Bound on the command, in seconds.
const TIMEOUT_SECONDS: u32 = 20;

/// What becomes of a superuser that the server refuses.
pub enum Recovery {
    /// A step of this plan lets it in.
    Acting(Finding),
    /// Nothing is done, and why.
    Lacking(Finding),
}

/// Lets the superuser in that was `refused`, if that can be done now.
pub fn recover(tending: &mut Tending<'_>, blueprint: &Blueprint, refused: Finding) -> Recovery {
    let context = tending.context;
    let lacking = |why: String| {
        let message = format!("{}; {why}", refused.message);
        Recovery::Lacking(context.with_way_out(Finding { message, ..refused.clone() }))
    };
    if let Some(trouble) = trouble(context) {
        let message = format!("{}; {}", refused.message, trouble.trouble.message);
        return Recovery::Lacking(Finding::new(&reason::ACTION_FAILED, message));
    }
    let (pod, version) = match gate(context, blueprint) {
        Ok(open) => open,
        Err(why) => return lacking(format!("it is not let in by itself: {why}")),
    };
    let name = context.names.primary_pod().name;
    let way = format!("over the local socket of pod {name} (Secret of version {version})");
    if context.paused() {
        return lacking(format!("it is not let in by itself, because {BECAUSE_PAUSED}"));
    }
    if was_told(context, &way) {
        return lacking(format!("its password was set {way}, and it did not help"));
    }
    tending.judgement.steps.push(Step::Act(action(context, blueprint, pod, &refused)));
    tending.judgement.events.push(EventNote {
        warning: false,
        reason: reason::SUPERUSER_RECOVERED.name,
        action: "Recover",
        message: format!("the superuser's password was set {way}"),
    });
    tending.judgement.wake = Wake::Now;
    let message = format!("{}; its password is set {way}", refused.message);
    Recovery::Acting(Finding { message, ..refused })
}

/// The same where the superuser is needed and nobody has looked yet whether it is refused; for a rung
/// that tells of something else.
pub fn aside(tending: &mut Tending<'_>, blueprint: &Blueprint, inspected: &Answer) {
    let Some(refused) = verify::superuser_refused(inspected) else { return };
    let (Recovery::Acting(finding) | Recovery::Lacking(finding)) =
        recover(tending, blueprint, refused);
    tending.note(None, finding);
}

/// The same where nothing goes on before the superuser is let in.
pub fn await_recovery(tending: &mut Tending<'_>, blueprint: &Blueprint, refused: Finding) {
    let paused = tending.context.paused();
    let verdict = match recover(tending, blueprint, refused) {
        Recovery::Acting(finding) => Verdict::Working(finding),
        Recovery::Lacking(finding) if paused => Verdict::Blocked(finding),
        Recovery::Lacking(finding) => Verdict::Failed(finding),
    };
    tending.judge(verdict);
}

/// The recovery that met trouble in this pass.
fn trouble(context: &Context) -> Option<&StepTrouble> {
    let resource = super::resource_id(&context.names);
    context.observed.troubles.iter().find(|t| t.id == resource && t.verb == ACTION)
}

/// The pod and the version of the Secret, if the gate is open; else why not.
fn gate<'a>(context: &'a Context, blueprint: &Blueprint) -> Result<(&'a Live, String), String> {
    if blueprint.may_bootstrap() {
        return Err("no data are recorded by which the server could be recognised".to_owned());
    }
    let id = context.names.superuser_secret();
    let secret = context.seen(&id).ok_or_else(|| format!("{id} does not exist"))?;
    if secret.deletion_time().is_some() {
        return Err(format!("{id} is being deleted"));
    }
    if child::foreign(&secret, &blueprint.owner()).is_some() {
        return Err(format!("{id} belongs to somebody else"));
    }
    if secrets::judge(&secret) != Judged::Usable {
        return Err(format!("{id} holds no usable password"));
    }
    let id = context.names.primary_pod();
    let pod = context.pod(0).ok_or_else(|| format!("{id} does not exist"))?;
    let set = context.seen(&context.names.stateful_set());
    let ours =
        set.is_some_and(|set| pod.controller_owner().is_some_and(|owner| owner.uid == set.uid()));
    if !ours {
        return Err(format!("{id} is not controlled by {}", context.names.stateful_set()));
    }
    if pod.deletion_time().is_some() {
        return Err(format!("{id} is being deleted"));
    }
    if !pod.read::<Pod>().is_ok_and(|pod| is_ready(&pod)) {
        return Err(format!("{id} is not ready"));
    }
    Ok((pod, secret.resource_version().to_owned()))
}

/// Whether a status tells that it was done so: it is written after the step.
fn was_told(context: &Context, way: &str) -> bool {
    context.status.conditions.iter().any(|condition| condition.message.contains(way))
}

fn action(context: &Context, blueprint: &Blueprint, pod: &Live, refused: &Finding) -> Action {
    let password = secrets::superuser_password(&context.names);
    let identifier = blueprint.identifier.clone().unwrap_or_default();
    let command = ["psql", "-X", "-q", "-w", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=terse"];
    let whom = ["-U", secrets::SUPERUSER_ROLE, "-d", secrets::SUPERUSER_ROLE];
    Action {
        name: ACTION,
        gate: GATE,
        request: Request::Exec(ExecRequest {
            pod: context.names.primary_pod(),
            uid: pod.uid().to_owned(),
            container: SERVER_CONTAINER.to_owned(),
            command: command.into_iter().chain(whom).map(str::to_owned).collect(),
            input: sql::let_superuser_in(&identifier, &blueprint.identity, password),
            timeout_seconds: TIMEOUT_SECONDS,
        }),
        why: refused.message.clone(),
    }
}
