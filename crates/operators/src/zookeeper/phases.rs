//! The ladder of a ZookeeperCluster, as data.

use phased::ladder::{Judgement, LadderDoc, RungDoc, Verdict};
use phased::{Ladder, Rung};

use super::context::Context;
use super::{deploying, forming, provisioning, reason, size};

/// The ladder.
pub static LADDER: Ladder<Context> = Ladder { rungs: RUNGS };

static RUNGS: &[Rung<Context>] = &[
    Rung {
        doc: RungDoc {
            phase: "Pending",
            leaves_when: "the spec can be carried out as a whole, the finalizer is present if volumes are to go with the resource, and the resource is not paused",
            effects: &["finalizer cleanUpZookeeperPVC (reclaimPolicy Delete)"],
            gates: &[],
            reasons: &[
                &reason::ACCEPTING,
                &reason::INVALID_SPEC,
                &reason::UNREADABLE,
                &reason::IMAGE_FAMILY_CHANGE_REFUSED,
                &reason::PORT_CHANGE_REFUSED,
                &reason::STORAGE_CHANGE_REFUSED,
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
            leaves_when: "service account, ConfigMap, Services, budget and StatefulSet exist as declared, and the StatefulSet has the wanted size",
            effects: &[
                "ServiceAccount (spec.pod.serviceAccountName)",
                "ConfigMap <name>-configmap",
                "Service <name>-headless",
                "Service <name>-client",
                "Service <name>-admin-server",
                "PodDisruptionBudget <name>",
                "StatefulSet <name>",
                "record-size",
                "remove-member",
                "claims of members that left are deleted (reclaimPolicy Delete)",
            ],
            gates: &["Gone", "Readable", "Writable", size::GATE],
            reasons: &[
                &reason::CHILD_MISSING,
                &reason::CHILD_TERMINATING,
                &reason::NAME_CONFLICT,
                &reason::ACCOUNT_NOT_OURS,
                &reason::EDIT_HELD,
                &reason::SIZE_NOT_RECORDED,
                &reason::MEMBER_LEAVING,
                &reason::FORMER_VOLUME,
                &reason::QUORUM_AT_RISK,
                &reason::READ_FAILED,
                &reason::WRITE_REFUSED,
                &reason::WRITE_FAILED,
                &reason::QUOTA_EXCEEDED,
            ],
            wait: "what waits for the servers is looked at every 5 seconds",
            tends: true,
        },
        judge: provisioning::provision,
    },
    Rung {
        doc: RungDoc {
            phase: "Deploying",
            leaves_when: "the StatefulSet's own status says so for the generation that was written: observedGeneration current, updated, ready and wanted replicas equal, revisions equal",
            effects: &[
                "the partition of the StatefulSet falls to the next pod",
                "a pod of a superseded revision that blocks the rollout is deleted once",
            ],
            gates: &["RolledOut"],
            reasons: &[
                &reason::ROLLOUT_WAITING,
                &reason::ROLLING_OUT,
                &reason::MEMBER_REJOINING,
                &reason::QUORUM_AT_RISK,
                &reason::UPGRADE_FAILED,
                &reason::POD_UNSCHEDULABLE,
                &reason::NODE_LOST,
                &reason::IMAGE_PULL_FAILED,
                &reason::CONTAINER_CRASHING,
                &reason::CONTAINER_CONFIG_ERROR,
                &reason::PROBE_FAILING,
                &reason::QUOTA_EXCEEDED,
                &reason::ADMISSION_REFUSED,
                &reason::VOLUME_PENDING,
                &reason::PROGRESS_DEADLINE_EXCEEDED,
            ],
            wait: "woken by changes, looked at every 5 seconds; without progress for spec.progressDeadlineSeconds (600) the phase is Failed",
            tends: true,
        },
        judge: deploying::deploy,
    },
    Rung {
        doc: RungDoc {
            phase: "Forming",
            leaves_when: "every server is a voter of one ensemble and serves by its own word, nobody else is listed, the size record is right, and after a change of the configuration every server runs it",
            effects: &[
                "record-size",
                "remove-member",
                "add-member",
                "claims of members that left are deleted (reclaimPolicy Delete)",
            ],
            gates: &[size::GATE, "Writable"],
            reasons: &[
                &reason::PREPARING_ENSEMBLE,
                &reason::NO_QUORUM,
                &reason::MEMBER_MISSING,
                &reason::CONFIGURATION_NOT_IN_FORCE,
                &reason::WRITE_FAILED,
            ],
            wait: "asked again every 5 seconds",
            tends: false,
        },
        judge: forming::form,
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
        kind: "ZookeeperCluster",
        rungs: RUNGS.iter().map(|r| r.doc).collect(),
        aside: vec![(
            "Failed",
            "entered when an upgrade or another rollout makes no progress; left to the first rung \
             that is not done when the revisions are equal again, when the roll goes on, or at once \
             when the spec names another image",
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
                "True when a cluster that has served lacks something, or when a person must act",
            ),
            ("PodsReady", "True when as many pods are Ready as spec.replicas says"),
            (
                "Upgrading",
                "True while pods are moved to another image, and after that has failed; the message is the number of updated pods",
            ),
            ("Error", "True with the reason UpgradeFailed when an upgrade made no progress"),
        ],
        historical: vec!["PodsReady", "Upgrading", "Error"],
    }
}
