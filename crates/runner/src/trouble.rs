//! Errors of the API sorted into fates (design.md section 2, "Three fates of an error").
//!
//! Must not retry anything itself: the queue does, once the pass is over.

use std::time::Duration;

use kube::core::response::Status;
use phased::Trouble;
use phased::fact::Fate;

/// Why a request to the API server did not do what it was to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// The object does not exist.
    #[error("not found")]
    NotFound,
    /// The object, its version or its name is not what the request was built on: look again.
    #[error("conflict: {0}")]
    LookAgain(String),
    /// Anything else.
    #[error("{}", trouble.message)]
    Trouble {
        /// What is told to the controller.
        trouble: Trouble,
        /// How long the server asked us to stay away.
        retry_after: Option<Duration>,
    },
}

impl ApiError {
    /// An error of ours or of the world, without an answer of the server.
    pub fn of(fate: Fate, reason: &str, message: impl Into<String>) -> Self {
        let trouble = Trouble { fate, reason: reason.to_owned(), message: message.into() };
        Self::Trouble { trouble, retry_after: None }
    }

    /// The request did not end in time.
    pub fn timeout(what: &str) -> Self {
        Self::of(Fate::WorldMayHeal, "Timeout", format!("{what}: no answer from the API server"))
    }

    /// As what the controller sees.
    pub fn trouble(&self) -> Trouble {
        match self {
            Self::NotFound => Trouble {
                fate: Fate::WorldMayHeal,
                reason: "NotFound".to_owned(),
                message: "the object is not there".to_owned(),
            },
            Self::LookAgain(message) => Trouble {
                fate: Fate::WorldMayHeal,
                reason: "Conflict".to_owned(),
                message: message.clone(),
            },
            Self::Trouble { trouble, .. } => trouble.clone(),
        }
    }
}

/// What begins the words of a request that got no answer.
pub const UNREACHED: &str = "the API server cannot be reached: ";

/// The innermost cause, which says what happened, without the number that the system gives it.
pub fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    let text = text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words);
    text.trim_end_matches('.').to_lowercase()
}

/// Sorts an error of the client.
pub fn classify(error: kube::Error) -> ApiError {
    match error {
        kube::Error::Api(status) => from_status(&status),
        kube::Error::SerdeError(e) => {
            ApiError::of(Fate::WeAreWrong, "Unreadable", format!("unreadable answer: {e}"))
        }
        kube::Error::BuildRequest(e) => {
            ApiError::of(Fate::WeAreWrong, "BadRequest", format!("request cannot be built: {e}"))
        }
        other => ApiError::of(
            Fate::WorldMayHeal,
            "Unreachable",
            format!("{UNREACHED}{}", root_cause(&other)),
        ),
    }
}

/// What etcd says of an object over its limit, 1.5 MiB as it comes (fault catalogue G-69).
const TOO_LARGE: &str = "etcdserver: request is too large";

fn from_status(status: &Status) -> ApiError {
    let retry_after = status
        .details
        .as_ref()
        .map(|d| d.retry_after_seconds)
        .filter(|s| *s > 0)
        .map(|s| Duration::from_secs(u64::from(s)));
    let fate = match status.code {
        404 => return ApiError::NotFound,
        409 => return ApiError::LookAgain(status.message.clone()),
        // Quota, RBAC and admission answer 403; schema and validation 422 or 400; size 413.
        400 | 403 | 413 | 422 => Fate::UserMustAct,
        // The database behind the API server takes less than the API server does.
        500 if status.message.contains(TOO_LARGE) => Fate::UserMustAct,
        401 | 408 | 410 | 429 => Fate::WorldMayHeal,
        code if code >= 500 => Fate::WorldMayHeal,
        _ => Fate::WeAreWrong,
    };
    let trouble = Trouble { fate, reason: status.reason.clone(), message: status.message.clone() };
    ApiError::Trouble { trouble, retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_fate() {
        for (code, fate) in [
            (400, Fate::UserMustAct),
            (401, Fate::WorldMayHeal),
            (403, Fate::UserMustAct),
            (405, Fate::WeAreWrong),
            (413, Fate::UserMustAct),
            (422, Fate::UserMustAct),
            (429, Fate::WorldMayHeal),
            (500, Fate::WorldMayHeal),
            (503, Fate::WorldMayHeal),
        ] {
            let mut status = Status::failure("m", "r");
            status.code = code;
            assert_eq!(from_status(&status).trouble().fate, fate, "{code}");
        }
        let mut large = Status::failure("rpc error: etcdserver: request is too large", "");
        large.code = 500;
        assert_eq!(from_status(&large).trouble().fate, Fate::UserMustAct, "size");
        let mut conflict = Status::failure("m", "AlreadyExists");
        conflict.code = 409;
        assert_eq!(from_status(&conflict), ApiError::LookAgain("m".to_owned()));
    }
}
