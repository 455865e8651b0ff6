//! What a pod's containers call for next, and the pod's phase. Pure: `worker` does it.

use crate::record::{ContainerRecord, Ending, Role, Situation};
use jiff::Timestamp;

/// When a container is started again (API documentation of `restartPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartPolicy {
    /// Whatever its exit code.
    Always,
    /// After a failure.
    OnFailure,
    /// Never.
    Never,
}

impl RestartPolicy {
    /// Reads the API's word; the default is `Always`.
    pub(crate) fn parse(word: Option<&str>) -> Self {
        match word {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }

    /// Whether a container that ended so is started again.
    pub(crate) fn restarts(self, role: Role, ending: &Ending) -> bool {
        let failed = ending.exit.code != 0;
        match (role, self) {
            (Role::Sidecar, _) | (Role::App, Self::Always) => true,
            (Role::Init | Role::App, Self::OnFailure) | (Role::Init, Self::Always) => failed,
            (Role::Init | Role::App, Self::Never) => false,
        }
    }
}

/// The containers to start now, by index. Init containers come first in `containers`.
pub(crate) fn to_start(
    policy: RestartPolicy,
    containers: &[ContainerRecord],
    now: Timestamp,
) -> Vec<usize> {
    let mut due = Vec::new();
    for (index, container) in containers.iter().enumerate() {
        let wants_start = match &container.situation {
            Situation::Waiting { .. } => true,
            Situation::Running { .. } => false,
            Situation::Ended(ending) => policy.restarts(container.role, ending),
        };
        if wants_start && container.is_due(now) {
            due.push(index);
        }
        if container.role != Role::App && !init_is_done(container) {
            break;
        }
    }
    due
}

/// An init container that lets the next one start.
pub(crate) fn init_is_done(container: &ContainerRecord) -> bool {
    match (&container.situation, container.role) {
        (Situation::Running { started, .. }, Role::Sidecar) => *started,
        (Situation::Ended(ending), Role::Init) => ending.exit.code == 0,
        _ => false,
    }
}

/// A pod's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not everything has run yet.
    Pending,
    /// Something runs or will run again.
    Running,
    /// Everything ended well and nothing runs again.
    Succeeded,
    /// Something ended badly and nothing runs again.
    Failed,
}

impl Phase {
    /// The API's word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// Whether nothing will run again.
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The phase that the containers make.
pub(crate) fn phase(policy: RestartPolicy, containers: &[ContainerRecord]) -> Phase {
    let (apps, inits): (Vec<_>, Vec<_>) = containers.iter().partition(|c| c.role == Role::App);
    let begun = apps.iter().any(|c| c.run > 0);
    let stuck = inits.iter().any(|c| match &c.situation {
        Situation::Ended(ending) => ending.exit.code != 0 && !policy.restarts(c.role, ending),
        Situation::Waiting { .. } | Situation::Running { .. } => false,
    });
    if stuck {
        return Phase::Failed;
    }
    if !begun && inits.iter().any(|c| !init_is_done(c)) {
        return Phase::Pending;
    }
    let never_ran =
        |c: &&ContainerRecord| matches!(c.situation, Situation::Waiting { .. }) && c.last.is_none();
    if apps.iter().any(never_ran) {
        return Phase::Pending;
    }
    let over = |c: &&ContainerRecord| match &c.situation {
        Situation::Ended(ending) => !policy.restarts(c.role, ending),
        Situation::Waiting { .. } | Situation::Running { .. } => false,
    };
    if !apps.iter().all(over) {
        return Phase::Running;
    }
    let failed =
        |c: &ContainerRecord| matches!(&c.situation, Situation::Ended(e) if e.exit.code != 0);
    if apps.into_iter().any(failed) { Phase::Failed } else { Phase::Succeeded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Exit;

    fn container(text: &str) -> ContainerRecord {
        let (role, state) = text.split_once(' ').expect("role and state");
        let role = match role {
            "init" => Role::Init,
            "side" => Role::Sidecar,
            _ => Role::App,
        };
        let mut record = ContainerRecord::new(text, role);
        let ending = |code| Ending {
            exit: Exit::with_code(code),
            reason: "",
            message: String::new(),
            started: Timestamp::UNIX_EPOCH,
            finished: Timestamp::UNIX_EPOCH,
            run: 1,
        };
        if state != "new" {
            record.run = 1;
        }
        match state {
            "up" | "starting" => {
                let started = state == "up";
                record.situation =
                    Situation::Running { since: Timestamp::UNIX_EPOCH, started, ready: started };
            }
            "ok" => record.situation = Situation::Ended(ending(0)),
            "failed" => record.situation = Situation::Ended(ending(1)),
            "backoff" => {
                record.last = Some(ending(1));
                record.not_before = Some(Timestamp::MAX);
            }
            _ => {}
        }
        record
    }

    #[test]
    fn starts_and_phases_follow_the_lifecycle() {
        use Phase::{Failed, Pending, Running, Succeeded};
        use RestartPolicy::{Always, Never, OnFailure};
        for (policy, containers, starts, expected) in [
            (Always, vec!["init new", "init new", "app new"], vec![0], Pending),
            (Always, vec!["init up", "init new", "app new"], vec![], Pending),
            (Always, vec!["init ok", "init new", "app new"], vec![1], Pending),
            (Always, vec!["init failed", "app new"], vec![0], Pending),
            (Always, vec!["init backoff", "app new"], vec![], Pending),
            (Never, vec!["init failed", "app new"], vec![], Failed),
            (Always, vec!["side starting", "app new"], vec![], Pending),
            (Always, vec!["side up", "app new", "app new"], vec![1, 2], Pending),
            (Always, vec!["init ok", "app up", "app up"], vec![], Running),
            (Always, vec!["init ok", "app ok"], vec![1], Running),
            (Always, vec!["app backoff"], vec![], Running),
            (OnFailure, vec!["app ok", "app failed"], vec![1], Running),
            (OnFailure, vec!["app ok"], vec![], Succeeded),
            (Never, vec!["app ok", "app failed"], vec![], Failed),
            (Never, vec!["app ok", "app up"], vec![], Running),
        ] {
            let records: Vec<_> = containers.iter().map(|text| container(text)).collect();
            assert_eq!(
                to_start(policy, &records, Timestamp::UNIX_EPOCH),
                starts,
                "{policy:?} {containers:?}"
            );
            assert_eq!(phase(policy, &records), expected, "{policy:?} {containers:?}");
        }
    }
}
