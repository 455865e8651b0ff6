//! A new password for the application is held back while nobody could put it in force: the server of a
//! Database that has served refuses the superuser.
//!
//! What lets the superuser in again is in [`super::recovery`].

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use phased::Question;
use phased::fact::Answer;
use phased::ladder::{Finding, Verdict};

use super::blueprint::Blueprint;
use super::context::{Context, Sight, Tending};
use super::reason;
use super::recovery::{self, Recovery};
use super::verify::{self, Heard};
use crate::parts::scene::Scene;

/// How often the server is asked again, in seconds.
const RETRY_SECONDS: i64 = 30;

/// The question whether the superuser may log in, when a password hangs on it: the application's
/// Secret of a Database that has served is lost, and a new password must be put in force.
pub fn question(context: &Context) -> Option<Question> {
    let blueprint = context.blueprint.as_ref()?;
    if !is_lost(context) || blueprint.may_bootstrap() {
        return None;
    }
    context.target().map(|target| target.inspect())
}

/// Whether the application's Secret is not there.
pub fn is_lost(context: &Context) -> bool {
    context.seen(&context.names.credentials_secret()).is_none()
}

/// Whether a new password for the application is held back.
#[derive(PartialEq)]
pub enum Withheld {
    /// It is not, or none is needed.
    No,
    /// Not known before a question is answered.
    Asking,
    /// It could not be put in force; whether the server itself says so.
    Because(Finding, bool),
}

/// Finds out whether it is.
pub fn ask(tending: &mut Tending<'_>) -> Withheld {
    let context = tending.context;
    let Some(question) = question(context) else { return Withheld::No };
    if let Some(answer) = context.observed.facts.get(&question) {
        return judge(context, answer).unwrap_or(Withheld::No);
    }
    if !matches!(context.sight(&context.names.credentials_secret()), Sight::Absent) {
        return Withheld::No;
    }
    tending.judgement.asks.push(question);
    tending.judge(Verdict::Asking);
    Withheld::Asking
}

/// Why no new password is made for the application: the server refuses the superuser, or did when
/// it was last heard, so that the password could not be put in force.
fn judge(context: &Context, answer: &Answer) -> Option<Withheld> {
    let refused = &reason::SUPERUSER_LOGIN_FAILED;
    let told = context
        .status
        .conditions
        .iter()
        .any(|c| c.type_ == "Degraded" && c.status == "True" && tells_refusal(c));
    let (why, now) = match verify::inspected(answer) {
        Heard::Clear(_) => return None,
        Heard::Refused(finding) if finding.reason == refused => (finding.message, true),
        _ if told => ("the server last refused the superuser".to_owned(), false),
        _ => return None,
    };
    let message = format!(
        "{} does not exist, and no new password is made, since it could not be put in force: {why}",
        context.names.credentials_secret()
    );
    Some(Withheld::Because(Finding::new(refused, message), now))
}

/// Whether a condition says that the superuser is refused, or that letting it in failed.
fn tells_refusal(condition: &Condition) -> bool {
    condition.reason == reason::SUPERUSER_LOGIN_FAILED.name
        || condition.message.contains(verify::SUPERUSER_REFUSED)
}

/// Lets the superuser in if the server refuses it now; a server that does not answer is waited for.
pub fn tell(tending: &mut Tending<'_>, blueprint: &Blueprint, finding: Finding, refused: bool) {
    if !refused {
        let finding = tending.context.with_way_out(finding);
        tending.judge(Verdict::Blocked(finding));
        tending.wake_after(RETRY_SECONDS);
        return;
    }
    match recovery::recover(tending, blueprint, finding) {
        Recovery::Acting(finding) => tending.judge(Verdict::Working(finding)),
        Recovery::Lacking(finding) => {
            tending.judge(Verdict::Blocked(finding));
            tending.wake_after(RETRY_SECONDS);
        }
    }
}
