//! The ladder of a Database, as data: rungs, what leads out of them, and what they bring about
//! (reference/database.md section 2).

use phased::ladder::{Judgement, LadderDoc, RungDoc, Verdict};
use phased::{Ladder, Rung};

use super::context::Context;
use super::{deploying, provisioning, reason, verifying};

/// Index of the rung `Deploying`.
pub const DEPLOYING: usize = 3;

/// The ladder.
pub static LADDER: Ladder<Context> = Ladder { rungs: RUNGS };

static RUNGS: &[Rung<Context>] = &[
    Rung {
        doc: RungDoc {
            phase: "Pending",
            leaves_when: "the finalizer is present, the spec can be carried out as a whole, and the resource is not paused",
            effects: &["finalizer database.example.com/finalizer"],
            gates: &[],
            reasons: &[
                &reason::ACCEPTING,
                &reason::INVALID_SPEC,
                &reason::UNREADABLE,
                &reason::STORAGE_EXPANSION_REFUSED,
                &reason::STORAGE_SHRINK_REFUSED,
                &reason::STORAGE_CLASS_CHANGE_REFUSED,
                &reason::RENAME_REFUSED,
                &reason::MAJOR_VERSION_CHANGE_REFUSED,
                &reason::PAUSED,
                &reason::WRITE_REFUSED,
                &reason::WRITE_FAILED,
            ],
            wait: "until the resource is changed",
            tends: false,
        },
        judge: provisioning::accept,
    },
    Rung {
        doc: RungDoc {
            phase: "Provisioning",
            leaves_when: "external dependencies answer, the Secrets and the ConfigMap exist, then the StatefulSet",
            effects: &[
                "Secret <name>-superuser",
                "Secret <name>-replication",
                "Secret <name>-credentials",
                "ConfigMap <name>-config",
                "StatefulSet <name>",
                "size and mark of the claims data-<name>-<ordinal>",
                "recover-superuser, while a new password of the application hangs on it",
            ],
            gates: &["DependenciesAnswer", "Gone", "Readable", "Writable", "PrimaryPodReady"],
            reasons: &[
                &reason::CHILD_MISSING,
                &reason::CHILD_TERMINATING,
                &reason::NAME_CONFLICT,
                &reason::DEPENDENCY_REFUSED,
                &reason::EXTERNAL_DEPENDENCY_UNAVAILABLE,
                &reason::STORAGE_CLASS_NOT_FOUND,
                &reason::PASSWORD_MISSING,
                &reason::PASSWORD_UNUSABLE,
                &reason::SUPERUSER_LOGIN_FAILED,
                &reason::ACTION_FAILED,
                &reason::ROLLING_OUT,
                &reason::GROWING_VOLUMES,
                &reason::READ_FAILED,
                &reason::WRITE_REFUSED,
                &reason::WRITE_FAILED,
                &reason::QUOTA_EXCEEDED,
            ],
            wait: "a dependency that does not answer is tried again every 30 seconds",
            tends: true,
        },
        judge: provisioning::provision,
    },
    Rung {
        doc: RungDoc {
            phase: "Configuring",
            leaves_when: "the Services exist",
            effects: &[
                "label steadfast.dev/role of the pods",
                "Service <name>-headless",
                "Service <name>",
                "Service <name>-ro and PodDisruptionBudget <name> (replicas above 1)",
            ],
            gates: &["Gone", "Readable", "Writable"],
            reasons: &[
                &reason::CHILD_MISSING,
                &reason::CHILD_TERMINATING,
                &reason::NAME_CONFLICT,
                &reason::READ_FAILED,
                &reason::WRITE_REFUSED,
                &reason::WRITE_FAILED,
                &reason::QUOTA_EXCEEDED,
            ],
            wait: "none",
            tends: true,
        },
        judge: provisioning::configure,
    },
    Rung {
        doc: RungDoc {
            phase: "Deploying",
            leaves_when: "the StatefulSet's own status says so for the generation that was written: observedGeneration current, updated, ready and wanted replicas equal, revisions equal; with standbys, the primary's pod is ready, carries its role and is made from the template that was written",
            effects: &[
                "a pod of a superseded revision that blocks the rollout is deleted once",
                "role, password and slots of standbys, while one of them is not ready and the primary is",
                "recover-superuser, where standbys need it",
            ],
            gates: &["RolledOut", "PrimaryAnswers", "PrimaryPodReady"],
            reasons: &[
                &reason::ROLLOUT_WAITING,
                &reason::ROLLING_OUT,
                &reason::POD_UNSCHEDULABLE,
                &reason::NODE_LOST,
                &reason::IMAGE_PULL_FAILED,
                &reason::CONTAINER_CRASHING,
                &reason::CONTAINER_CONFIG_ERROR,
                &reason::PROBE_FAILING,
                &reason::QUOTA_EXCEEDED,
                &reason::ADMISSION_REFUSED,
                &reason::VOLUME_PENDING,
                &reason::DATA_MISSING,
                &reason::HALF_INITIALISED,
                &reason::DATA_VERSION_MISMATCH,
                &reason::NOT_A_STANDBY,
                &reason::STANDBY_COPY_FAILED,
                &reason::PROGRESS_DEADLINE_EXCEEDED,
            ],
            wait: "woken by changes, looked at every 5 seconds; without progress for spec.progressDeadlineSeconds the phase is Failed with the causes",
            tends: true,
        },
        judge: deploying::deploy,
    },
    Rung {
        doc: RungDoc {
            phase: "Verifying",
            leaves_when: "the application's user logs in with the Secret's password, a wrong password is refused, the database exists and is the user's, and a round-trip works; before the first Ready, standbys stream too, or spec.progressDeadlineSeconds are over",
            effects: &[
                "finish-bootstrap",
                "create-role",
                "set-password",
                "create-database",
                "set-owner",
                "grant-connect",
                "create-replication-role",
                "set-replication-password",
                "create-slot",
                "drop-slot",
                "recover-superuser",
                "the pod of a standby is deleted when a fresh start or copy helps",
            ],
            gates: &[
                "ServerAnswers",
                "ServerReady",
                "PrimaryAnswers",
                "PrimaryPodReady",
                "StandbysStream",
                "Writable",
            ],
            reasons: &[
                &reason::PREPARING_DATABASE,
                &reason::SERVER_UNREACHABLE,
                &reason::SERVER_NOT_ACCEPTING,
                &reason::WRONG_SERVER,
                &reason::CONFIGURATION_NOT_IN_FORCE,
                &reason::DIFFERENT_DATA,
                &reason::DATA_MISSING,
                &reason::UNSUPPORTED_SERVER,
                &reason::SUPERUSER_LOGIN_FAILED,
                &reason::PASSWORD_NOT_CHECKED,
                &reason::PASSWORD_MISSING,
                &reason::READ_ONLY_SERVER,
                &reason::DISK_FULL,
                &reason::STATEMENT_BLOCKED,
                &reason::VERIFICATION_FAILED,
                &reason::ACTION_FAILED,
                &reason::STANDBY_UNAVAILABLE,
            ],
            wait: "tried again after 5 to 60 seconds; a definite refusal, or spec.progressDeadlineSeconds without an answer, leads to Failed",
            tends: false,
        },
        judge: verifying::verify,
    },
    Rung {
        doc: RungDoc {
            phase: "Ready",
            leaves_when: "never by itself; any lower rung that no longer holds takes the phase back at once",
            effects: &[],
            gates: &[],
            reasons: &[&reason::ALL_CHECKS_PASSED],
            wait: "verified again on every change and every few minutes",
            tends: false,
        },
        judge: settled,
    },
];

fn settled(_: &Context) -> Judgement {
    Judgement::of(Verdict::Done)
}

/// The ladder with every reason and condition, for `docs/` and for checks.
pub fn documentation() -> LadderDoc {
    LadderDoc {
        kind: "Database",
        rungs: RUNGS.iter().map(|r| r.doc).collect(),
        aside: vec![(
            "Failed",
            "entered when a rung fails for good or makes no progress; left to the first rung that is \
             not done when the cause is gone, when the retry is due (1 minute, doubling to 10), or at \
             once when the spec changes",
        )],
        reasons: reason::ALL.to_vec(),
        conditions: vec![
            (
                "Ready",
                "True when every rung holds; otherwise the reason of the first that does not",
            ),
            (
                "Progressing",
                "True while the operator works or waits; False when it is done, blocked, failed or paused",
            ),
            (
                "Degraded",
                "True when a Database that has served lacks something, or when a person must act",
            ),
        ],
        historical: Vec::new(),
    }
}
