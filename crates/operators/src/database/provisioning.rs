//! The rungs `Pending`, `Provisioning` and `Configuring`: acceptance, and the children in the order
//! in which they need each other.

use phased::child::Desired;
use phased::fact::{Answer, Question, Reply};
use phased::ladder::{Finding, Judgement, Verdict};
use phased::step::{Delete, Finalizer};
use phased::{ObjectId, Step};

use super::api::Phase;
use super::blueprint::Blueprint;
use super::context::Tending;
use super::context::{Context, Sight};
use super::dependencies::{self, Dependency};
use super::held::Recorded;
use super::secrets::{self, Derived, Judged};
use super::verify::{self, Heard};
use super::{FINALIZER, config, growth, names, reason, record, roles, servers, services, valid};
use crate::parts::hidden;
use crate::parts::members::Members;
use crate::parts::scene::Scene;
use crate::parts::tending::Tended;

/// How often a dependency that does not answer is tried again, in seconds.
const DEPENDENCY_RETRY_SECONDS: i64 = 30;

/// `Pending`: finalizer present, spec valid, nothing held back.
pub fn accept(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    let metadata = &context.observed.root.metadata;
    if context.paused() && matches!(context.status.phase, None | Some(Phase::Pending)) {
        let message = "the annotation steadfast.dev/paused is \"true\"; remove it to go on";
        tending.judge(Verdict::Blocked(Finding::new(&reason::PAUSED, message)));
        return tending.judgement;
    }
    if !context.refusals.is_empty() {
        let message = valid::sentence(&context.refusals);
        tending.judge(Verdict::Blocked(Finding::new(&reason::INVALID_SPEC, message)));
        return tending.judgement;
    }
    record::await_known(&mut tending);
    for finding in &context.held {
        tending.note(None, finding.clone());
        tending.judge(Verdict::Blocked(finding.clone()));
    }
    growth::judge(&mut tending);
    let resource = super::resource_id(&context.names);
    let finalizer_trouble =
        context.observed.troubles.iter().find(|t| t.id == resource && t.verb == "patch");
    if let Some(trouble) = finalizer_trouble {
        tending.refused(trouble);
    } else if !metadata.finalizers.iter().flatten().any(|f| f == FINALIZER) {
        tending.judgement.steps.push(Step::Finalizer(Finalizer::Add(FINALIZER)));
        tending.work(
            &reason::ACCEPTING,
            "the finalizer is put on before anything is created",
            "the finalizer is not put on",
        );
    }
    // Asked here when the next rung merely tends, and so gets no answers.
    if tending.judgement.verdict != Verdict::Done
        && let Some(question) = superuser_question(context)
        && !context.observed.facts.contains_key(&question)
    {
        tending.ask(question);
    }
    tending.judgement
}

/// `Provisioning`: dependencies answer, Secrets and configuration exist before the StatefulSet
/// that reads them.
pub fn provision(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    let Some(blueprint) = &context.blueprint else { return tending.judgement };
    if record::unknown(context).is_some() || is_kept_out(context) {
        return tending.judgement;
    }
    await_dependencies(&mut tending, blueprint);
    if blueprint.identifier.is_none() && !tending.may_go_on() {
        return tending.judgement;
    }
    provide_role(&mut tending, &secrets::superuser(blueprint), secrets::SUPERUSER_ROLE);
    provide_role(&mut tending, &secrets::replication(blueprint), secrets::REPLICATION_ROLE);
    let withheld = ask_superuser(&mut tending);
    if withheld == Withheld::No {
        provide_credentials(&mut tending, blueprint);
    }
    tending.apply(&config::config_map(blueprint));
    await_storage_class(&mut tending, blueprint);
    provide_servers(&mut tending, blueprint);
    if context
        .seen(&context.names.stateful_set())
        .is_some_and(|set| phased::child::foreign(&set, &blueprint.owner()).is_none())
    {
        hidden::ask(&mut tending, blueprint.count);
        growth::tend_claims(&mut tending, blueprint);
        growth::drop_claims(&mut tending, blueprint);
    }
    // Told last: the servers do not read the application's Secret, and the way out needs them.
    if let Withheld::Because(finding) = withheld {
        tending.judge(Verdict::Blocked(finding));
        tending.wake_after(DEPENDENCY_RETRY_SECONDS);
    }
    tending.judgement
}

/// Whether the data of a former Database refuse this one, which has nothing of its own yet: then it makes
/// and marks nothing, so that its deletion takes nothing that those data need (fault catalogue R4).
fn is_kept_out(context: &Context) -> bool {
    !context.held.is_empty() && !context.has_served() && !context.records.has_begun()
}

/// The question whether the superuser may log in, when a password hangs on it: the application's
/// Secret of a Database that has served is lost, and a new password must be put in force.
fn superuser_question(context: &Context) -> Option<Question> {
    let blueprint = context.blueprint.as_ref()?;
    let lost = context.seen(&context.names.credentials_secret()).is_none();
    if !lost || blueprint.may_bootstrap() {
        return None;
    }
    context.target().map(|target| target.inspect())
}

/// Whether a new password for the application is held back.
#[derive(PartialEq)]
enum Withheld {
    /// It is not, or none is needed.
    No,
    /// Not known before a question is answered.
    Asking,
    /// It could not be put in force.
    Because(Finding),
}

fn ask_superuser(tending: &mut Tending<'_>) -> Withheld {
    let context = tending.context;
    let Some(question) = superuser_question(context) else { return Withheld::No };
    if let Some(answer) = context.observed.facts.get(&question) {
        return withheld(context, answer).map_or(Withheld::No, Withheld::Because);
    }
    if !matches!(context.sight(&context.names.credentials_secret()), Sight::Absent) {
        return Withheld::No;
    }
    tending.ask(question);
    Withheld::Asking
}

/// Why no new password is made for the application: the server refuses the superuser, or did when
/// it was last heard, so that the password could not be put in force.
fn withheld(context: &Context, answer: &Answer) -> Option<Finding> {
    let refused = &reason::SUPERUSER_LOGIN_FAILED;
    let told = context
        .status
        .conditions
        .iter()
        .any(|c| c.type_ == "Degraded" && c.status == "True" && c.reason == refused.name);
    let why = match verify::inspected(answer) {
        Heard::Clear(_) => return None,
        Heard::Refused(finding) if finding.reason == refused => finding.message,
        _ if told => "the server last refused the superuser".to_owned(),
        _ => return None,
    };
    let message = format!(
        "{} does not exist, and no new password is made, since it could not be put in force: {why}",
        context.names.credentials_secret()
    );
    Some(context.with_way_out(Finding::new(refused, message)))
}

/// `Configuring`: the Services.
pub fn configure(context: &Context) -> Judgement {
    let mut tending = Tending::new(context);
    if let Some(blueprint) = &context.blueprint {
        // Roles come before the Service that leads by them.
        roles::assign(&mut tending);
        tending.apply(&services::headless(blueprint));
        tending.apply(&services::client(blueprint));
        if blueprint.valid.replicas > 1 {
            tending.apply_quietly(&services::read_only(blueprint));
            tending.apply_quietly(&services::budget(blueprint));
        } else if !blueprint.several {
            remove(&mut tending, blueprint, services::read_only(blueprint).id);
            remove(&mut tending, blueprint, services::budget(blueprint).id);
        }
    }
    tending.judgement
}

/// Removes a child that goes with the last standby.
fn remove(tending: &mut Tending<'_>, blueprint: &Blueprint, id: ObjectId) {
    let Some(live) = tending.context.observed.object(&id) else { return };
    if !live.is_owned_by(&blueprint.uid) || live.deletion_time().is_some() {
        return;
    }
    if let Some(trouble) = tending.context.observed.trouble_of(&id) {
        tending.refused(trouble);
        return;
    }
    let why = "there are no standbys any more";
    tending.judgement.steps.push(Step::Delete(Delete::of(id, live, why)));
}

fn await_dependencies(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let context = tending.context;
    for (dependency, reach) in blueprint.valid.reaches() {
        if !dependencies::permits(&context.observed.settings.allow_dependencies, &dependency.host) {
            let message = format!(
                "spec.externalDependencies[{}]: the operator may not try {}; its option \
                 --allow-dependency says which hosts it may",
                dependency.name, dependency.host
            );
            tending.judge(Verdict::Blocked(Finding::new(&reason::DEPENDENCY_REFUSED, message)));
            continue;
        }
        let question = Question::Reach(reach.clone());
        match context.observed.facts.get(&question) {
            None => {
                tending.ask(question);
            }
            Some(answer) => await_answer(tending, dependency, answer),
        }
    }
}

fn await_answer(tending: &mut Tending<'_>, dependency: &Dependency, answer: &Answer) {
    let Err(trouble) = answer else { return };
    let message = format!("{} ({}): {}", dependency.name, dependency.host, trouble.message);
    let finding = Finding::new(&reason::EXTERNAL_DEPENDENCY_UNAVAILABLE, message);
    tending.wait(finding, "DependenciesAnswer", DEPENDENCY_RETRY_SECONDS);
}

fn provide_role(tending: &mut Tending<'_>, desired: &Desired, role: &str) {
    provide_secret(tending, desired, secrets::derived_of_role(role));
}

/// The application's Secret. One that somebody else made is used as it is and never written
/// (fault catalogue PG-09).
fn provide_credentials(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let desired = secrets::credentials(blueprint);
    if let Some(live) = tending.context.seen(&desired.id)
        && phased::child::foreign(&live, &blueprint.owner()).is_some()
        && !tending.context.is_former(&live)
    {
        judge_password(tending, &desired.id, &secrets::judge(&live));
        return;
    }
    provide_secret(tending, &desired, secrets::derived(blueprint));
}

/// A Secret of ours: made once, and its derived keys kept up to date.
fn provide_secret(tending: &mut Tending<'_>, desired: &Desired, keys: Vec<Derived>) {
    let before = (tending.judgement.steps.len(), tending.judgement.events.len());
    match tending.child(desired) {
        Tended::Missing => tending.create(&desired.id, secrets::create(desired, &keys)),
        Tended::Kept(live) => {
            // The derived keys are among what we apply, so every write must declare them all: a
            // plain apply would take them away. They follow from the password, so without one that
            // can be used nothing is written, and nothing is told as taken back.
            let outdated = tending.judgement.steps.len() > before.0;
            tending.judgement.steps.truncate(before.0);
            let reverted = tending.judgement.events.split_off(before.1);
            let judged = secrets::judge(&live);
            judge_password(tending, &desired.id, &judged);
            let troubled = tending.context.observed.trouble_of(&desired.id).is_some();
            if judged == Judged::Usable
                && !troubled
                && let Some((step, drifts)) = secrets::follow(&live, desired, keys, outdated)
            {
                tending.judgement.events.extend(reverted);
                for drift in &drifts {
                    tending.reverted(&desired.id, drift);
                }
                tending.judgement.steps.push(step);
            }
        }
        Tended::Held => {}
    }
}

fn judge_password(tending: &mut Tending<'_>, id: &ObjectId, judged: &Judged) {
    let key = secrets::PASSWORD_KEY;
    let finding = match judged {
        Judged::Usable => return,
        Judged::Absent => Finding::new(
            &reason::PASSWORD_MISSING,
            format!("{id}: the key {key} is absent; put it back"),
        ),
        Judged::Empty => Finding::new(
            &reason::PASSWORD_MISSING,
            format!("{id}: the key {key} is empty; put the password back"),
        ),
        Judged::Unusable(why) => Finding::new(
            &reason::PASSWORD_UNUSABLE,
            format!(
                "{id}: the password {why}; write it again without that, the old one stays in force"
            ),
        ),
    };
    tending.judge(Verdict::Blocked(finding));
    tending.wake_after(DEPENDENCY_RETRY_SECONDS);
}

/// A class that does not exist is said before a claim waits for it for ever.
fn await_storage_class(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let context = tending.context;
    let Some(class) = &blueprint.valid.storage_class else { return };
    if context.volume_exists() {
        return;
    }
    let id = ObjectId::new(names::storage_class_kind(), "", class.clone());
    let question = Question::Object(id);
    match context.observed.facts.get(&question) {
        None => {
            tending.ask(question);
        }
        Some(Ok(Reply::Object(None))) => {
            let message = format!(
                "spec.storage.storageClass: there is no storage class {class:?}; create it, or name \
                 another one"
            );
            tending
                .judge(Verdict::Blocked(Finding::new(&reason::STORAGE_CLASS_NOT_FOUND, message)));
            tending.wake_after(5);
        }
        // What cannot be read is not known to be missing: the claim's Events will tell.
        Some(Ok(_) | Err(_)) => {}
    }
}

fn provide_servers(tending: &mut Tending<'_>, blueprint: &Blueprint) {
    let context = tending.context;
    let desired = servers::stateful_set(blueprint);
    if let Some(live) = context.seen(&desired.id)
        && live.deletion_time().is_none()
        && phased::child::foreign(&live, &blueprint.owner()).is_none()
        && outgrown(&Recorded::read(&context.records), blueprint, context)
    {
        // The watch may be late: that there is no volume is read before anything rests on it.
        if let Sight::Unasked(question) = context.sight(&context.names.data_claim()) {
            tending.ask(question);
            return;
        }
        tending.judgement.steps.push(Step::Delete(Delete {
            resource_version: Some(live.resource_version().to_owned()),
            ..Delete::of(
                desired.id.clone(),
                &live,
                "spec.storage changed before any volume was made; the set is made anew",
            )
        }));
        let id = &desired.id;
        tending.work(
            &reason::ROLLING_OUT,
            &format!("{id} is made anew, since spec.storage changed"),
            &format!("{id} is not made anew, although spec.storage changed"),
        );
        return;
    }
    if let Some(live) = context.seen(&desired.id)
        && live.deletion_time().is_none()
        && phased::child::foreign(&live, &blueprint.owner()).is_none()
        && growth::replace_set(tending, blueprint, &live)
    {
        return;
    }
    let claim_going = context.claim(0).is_some_and(|c| c.deletion_time().is_some());
    if tending.child(&desired) != Tended::Missing {
        return;
    }
    if claim_going {
        let message =
            format!("{} of a former Database is being deleted", context.names.data_claim());
        tending.wait(Finding::new(&reason::CHILD_TERMINATING, message), "Gone", 5);
    } else if tending.may_go_on() {
        tending.apply(&desired);
    }
}

/// Whether the claim template differs while no volume exists: it cannot be changed in place.
fn outgrown(recorded: &Recorded, blueprint: &Blueprint, context: &Context) -> bool {
    let same_size = match (&recorded.size, &blueprint.valid.size) {
        (Some(was), wanted) => {
            let read = |text: &String| text.parse::<phased::quantity::Quantity>().ok();
            read(was) == read(wanted)
        }
        (None, _) => true,
    };
    let class = recorded.storage_class.as_ref();
    let same_class = class.is_none_or(|c| *c == blueprint.valid.storage_class);
    !(context.volume_exists() || same_size && same_class)
}
