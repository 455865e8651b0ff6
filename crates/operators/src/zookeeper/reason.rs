//! Every reason of the ZookeeperCluster controller, with its meaning and what ends it.
//!
//! Names are API: scripts match on them. Must hold nothing but data; `docs/` is generated from it.

use phased::Reason;

use crate::parts::reason::declare;
pub use crate::parts::reason::{
    ACCEPTING, ADMISSION_REFUSED, ADVANCING, BLOCKING_POD_REPLACED, CHILD_MISSING,
    CHILD_TERMINATING, CONTAINER_CONFIG_ERROR, CONTAINER_CRASHING, DELETING, EDIT_REVERTED,
    IMAGE_PULL_FAILED, INVALID_SPEC, MANAGERS_FIGHT, NAME_CONFLICT, NODE_LOST, OBSERVATION_FAILED,
    PAUSED, PHASE_CHANGED, POD_UNSCHEDULABLE, PROBE_FAILING, PROGRESS_DEADLINE_EXCEEDED,
    QUOTA_EXCEEDED, READ_FAILED, RECONCILIATION_COMPLETE, ROLLING_OUT, ROLLOUT_WAITING, UNREADABLE,
    VOLUME_PENDING, WRITE_FAILED, WRITE_REFUSED,
};

declare! {
    ALL_CHECKS_PASSED = "AllChecksPassed",
        "Every rung of the ladder holds: the servers run the written generation and are one ensemble of the wanted members.",
        "Nothing to do.";
    IMAGE_FAMILY_CHANGE_REFUSED = "ImageFamilyChangeRefused",
        "spec.image names an image of the other family (with or without scripts of its own) than the running servers'. The running image stays, and the rest of the spec is in force.",
        "Restore the image, or set spec.image.scripts if the new image belongs to the same family.";
    PORT_CHANGE_REFUSED = "PortChangeRefused",
        "spec.ports changes a port that the members' registered addresses hold. The rest of the spec is in force.",
        "Restore the old number.";
    STORAGE_CHANGE_REFUSED = "StorageChangeRefused",
        "The spec asks for other storage than the existing volumes'. The rest of the spec is in force.",
        "Restore the old values, or create a new ZookeeperCluster and move the data.";
    ACCOUNT_NOT_OURS = "AccountNotOurs",
        "The service account belongs to somebody else, so the Secrets for pulling images are not put on it.",
        "Put them on it by hand, or name another service account.";
    SIZE_NOT_RECORDED = "SizeNotRecorded",
        "The wanted size is not confirmed inside ZooKeeper, so the number of servers stays as it is.",
        "Passes when the servers answer; the message says what they lack.";
    MEMBER_LEAVING = "MemberLeaving",
        "A member is on its way out; the next one follows when it is gone.",
        "Passes by itself.";
    FORMER_VOLUME = "FormerVolume",
        "Growth would take up the volume of a member that left. It holds that member's configuration, with which a server does not join again, so the number of servers stays.",
        "Delete the claim that the message names, or set spec.persistence.reclaimPolicy: Delete.";
    QUORUM_AT_RISK = "QuorumAtRisk",
        "Taking the next member down would leave no quorum that serves, so it stays.",
        "Bring the members back that do not serve; the message counts them.";
    MEMBER_REJOINING = "MemberRejoining",
        "A pod was made anew and has not rejoined the ensemble; the next one waits for it.",
        "Passes by itself; otherwise look at the pod's log.";
    UPGRADE_FAILED = "UpgradeFailed",
        "An upgrade made no progress for spec.progressDeadlineSeconds. The StatefulSet and its configuration are left as they are, and edits of them are held.",
        "Write the former image, or another one: it is applied at once, with the edits that were held. It also ends by itself when the roll does.";
    EDIT_HELD = "EditHeld",
        "An edit waits for the end of a failed upgrade.",
        "See UpgradeFailed.";
    PREPARING_ENSEMBLE = "PreparingEnsemble",
        "The size record or the membership is being put right.",
        "Passes by itself.";
    NO_QUORUM = "NoQuorum",
        "No server leads, or none grants a session.",
        "Bring a majority of the servers back; look at their logs and at network policies.";
    MEMBER_MISSING = "MemberMissing",
        "A server is not part of the ensemble, although its pod may be ready.",
        "Mostly passes by itself; the message names the server and what it lacks.";
    CONFIGURATION_NOT_IN_FORCE = "ConfigurationNotInForce",
        "A server runs with other settings than those written; the message names the first.",
        "After a change it passes when the pods have restarted; a cluster that was taken over takes the settings up at its next restart.";
    MEMBERS_UNAVAILABLE = "MembersUnavailable",
        "The cluster has served, and something is lacking; the message holds what.",
        "See the reason of the condition Ready.";
    NOT_YET_SERVING = "NotYetServing",
        "The cluster has not been Ready yet.",
        "See the reason of the condition Progressing.";
}

/// All reasons, in the order of the ladder.
pub static ALL: &[&Reason] = &[
    &ALL_CHECKS_PASSED,
    &RECONCILIATION_COMPLETE,
    &ADVANCING,
    &ACCEPTING,
    &INVALID_SPEC,
    &UNREADABLE,
    &IMAGE_FAMILY_CHANGE_REFUSED,
    &PORT_CHANGE_REFUSED,
    &STORAGE_CHANGE_REFUSED,
    &PAUSED,
    &NAME_CONFLICT,
    &ACCOUNT_NOT_OURS,
    &READ_FAILED,
    &WRITE_REFUSED,
    &WRITE_FAILED,
    &CHILD_MISSING,
    &CHILD_TERMINATING,
    &SIZE_NOT_RECORDED,
    &MEMBER_LEAVING,
    &FORMER_VOLUME,
    &QUORUM_AT_RISK,
    &ROLLOUT_WAITING,
    &ROLLING_OUT,
    &MEMBER_REJOINING,
    &UPGRADE_FAILED,
    &EDIT_HELD,
    &BLOCKING_POD_REPLACED,
    &POD_UNSCHEDULABLE,
    &NODE_LOST,
    &IMAGE_PULL_FAILED,
    &CONTAINER_CRASHING,
    &CONTAINER_CONFIG_ERROR,
    &PROBE_FAILING,
    &QUOTA_EXCEEDED,
    &ADMISSION_REFUSED,
    &VOLUME_PENDING,
    &PROGRESS_DEADLINE_EXCEEDED,
    &PREPARING_ENSEMBLE,
    &NO_QUORUM,
    &MEMBER_MISSING,
    &CONFIGURATION_NOT_IN_FORCE,
    &MEMBERS_UNAVAILABLE,
    &NOT_YET_SERVING,
    &MANAGERS_FIGHT,
    &DELETING,
    &OBSERVATION_FAILED,
    &PHASE_CHANGED,
    &EDIT_REVERTED,
];
