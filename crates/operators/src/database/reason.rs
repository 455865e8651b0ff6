//! Every reason of the Database controller, with its meaning and what ends it.
//!
//! Names are API: scripts match on them. Must hold nothing but data; `docs/` is generated from it.

use phased::Reason;

use crate::parts::reason::declare;
pub use crate::parts::reason::{
    ACCEPTING, ACTION_FAILED, ADMISSION_REFUSED, ADVANCING, BLOCKING_POD_REPLACED, CHILD_MISSING,
    CHILD_TERMINATING, CONTAINER_CONFIG_ERROR, CONTAINER_CRASHING, DELETING, EDIT_REVERTED,
    IMAGE_PULL_FAILED, INVALID_SPEC, MANAGERS_FIGHT, NAME_CONFLICT, NODE_LOST, OBSERVATION_FAILED,
    PAUSED, PHASE_CHANGED, POD_UNSCHEDULABLE, PROBE_FAILING, PROGRESS_DEADLINE_EXCEEDED,
    QUOTA_EXCEEDED, READ_FAILED, RECONCILIATION_COMPLETE, ROLLING_OUT, ROLLOUT_WAITING, UNREADABLE,
    VOLUME_PENDING, WRITE_FAILED, WRITE_REFUSED,
};

declare! {
    ALL_CHECKS_PASSED = "AllChecksPassed",
        "Every rung of the ladder holds: the server runs the written generation, the application's login works and a wrong password is refused.",
        "Nothing to do.";
    STORAGE_EXPANSION_REFUSED = "StorageExpansionRefused",
        "spec.storage.size is larger than the existing volume, and the storage class of a claim does not allow expansion. The rest of the spec is in force.",
        "Set allowVolumeExpansion on the class, if its provisioner can; or restore the old spec.storage.size, or create a new Database and move the data with pg_dump.";
    STORAGE_SHRINK_REFUSED = "StorageShrinkRefused",
        "spec.storage.size is smaller than the existing volume. The rest of the spec is in force.",
        "Restore the old spec.storage.size, or create a new Database and move the data with pg_dump.";
    STORAGE_CLASS_CHANGE_REFUSED = "StorageClassChangeRefused",
        "spec.storage.storageClass differs from that of the existing volume. The rest of the spec is in force.",
        "Restore the old spec.storage.storageClass, or create a new Database and move the data with pg_dump.";
    RENAME_REFUSED = "RenameRefused",
        "spec.databaseName or spec.username differs from what the data were made with. The rest of the spec is in force.",
        "Restore the old names, or create a new Database and move the data with pg_dump.";
    MAJOR_VERSION_CHANGE_REFUSED = "MajorVersionChangeRefused",
        "spec.image names another major version than the one whose data exist; the server would not open them. The running server is untouched and the rest of the spec is in force.",
        "Restore an image of the old major version, or create a new Database with the new image and move the data with pg_dump.";
    DEPENDENCY_REFUSED = "DependencyRefused",
        "spec.externalDependencies names a host that the operator may not try.",
        "Name a host that --allow-dependency permits, or ask whoever runs the operator to permit it.";
    EXTERNAL_DEPENDENCY_UNAVAILABLE = "ExternalDependencyUnavailable",
        "An external dependency does not answer; it is tried again every 30 seconds. A server that runs is left running.",
        "Bring the dependency up, or remove it from spec.externalDependencies.";
    STORAGE_CLASS_NOT_FOUND = "StorageClassNotFound",
        "The storage class does not exist, so no volume could be made.",
        "Create the class, or name an existing one in spec.storage.storageClass.";
    PASSWORD_MISSING = "PasswordMissing",
        "A Secret exists, but its key password is absent or empty. The role's password is left as it is.",
        "Put the key back; or delete the Secret, if the operator made it, and a new password is made.";
    PASSWORD_UNUSABLE = "PasswordUnusable",
        "The password in the Secret cannot be used as it stands. The old password stays in force.",
        "Write the password again, as text without a line end (printf instead of echo).";
    GROWING_VOLUMES = "GrowingVolumes",
        "Every claim asks for the new size, and the StatefulSet is made anew with it; the pods run on.",
        "Passes by itself.";
    DATA_MISSING = "DataMissing",
        "The volume is empty although data were recorded, or the server runs and the database that it held is gone. Neither is ever made anew by itself.",
        "Restore the volume or the database; or give the data up by the annotation steadfast.dev/accept-data-loss=<status.systemIdentifier>; or delete the Database and create it again.";
    DATA_LOSS_ACCEPTED = "DataLossAccepted",
        "The annotation steadfast.dev/accept-data-loss names the very data that are served, so that their loss would be taken for accepted.",
        "Remove the annotation.";
    DIFFERENT_DATA = "DifferentData",
        "The server holds other data than those recorded: its system identifier differs.",
        "Bring the recorded volume back; or accept the new data by the annotation steadfast.dev/accept-data-loss=<status.systemIdentifier>.";
    HALF_INITIALISED = "HalfInitialised",
        "The data folder holds files but no database; it is never wiped by itself.",
        "Look into the volume; move what is worth keeping and empty the folder pgdata, or delete the claim.";
    NOT_A_STANDBY = "NotAStandby",
        "The data folder of a standby holds a database that follows no primary: it was promoted, or stood alone. It may be the newest copy there is, so it is never wiped by itself.",
        "Look into it; to have the standby copied anew, delete its claim and then its pod.";
    STANDBY_COPY_FAILED = "StandbyCopyFailed",
        "A standby could not copy the data of the primary; the message holds the words of pg_basebackup.",
        "Passes when the copy succeeds; it is tried again with growing delays.";
    DATA_VERSION_MISMATCH = "DataVersionMismatch",
        "The data were made by another major version than the image's.",
        "Restore an image of the data's major version, or move the data with pg_dump.";
    SERVER_UNREACHABLE = "ServerUnreachable",
        "The server cannot be reached through the client Service, or does not answer in time. Unknown is not taken for down: nothing is replaced on this ground.",
        "Look at network policies and at the pod; it is tried again by itself.";
    SERVER_NOT_ACCEPTING = "ServerNotAccepting",
        "The server answers but takes no session now: starting, stopping, or out of connections.",
        "Passes by itself; raise max_connections if it stays.";
    WRONG_SERVER = "WrongServer",
        "Behind the client Service answers a server that is not this Database's, or that runs without its configuration.",
        "Look at what else carries the pods' labels, and whether the image ignores the arguments it is given.";
    CONFIGURATION_NOT_IN_FORCE = "ConfigurationNotInForce",
        "The server runs with an older configuration file than the one written.",
        "Passes when the pod has restarted with the new file; delete the pod if it stays.";
    UNSUPPORTED_SERVER = "UnsupportedServer",
        "The server's major version is not supported (14 to 18 are).",
        "Use an image of a supported version.";
    PREPARING_DATABASE = "PreparingDatabase",
        "Role, password, database or owner are being put right by the superuser.",
        "Passes by itself.";
    SUPERUSER_LOGIN_FAILED = "SuperuserLoginFailed",
        "The server refuses the superuser's password that the Secret holds. The role's password is set to it over the local socket of the primary, once for each version of the Secret. The application goes on meanwhile; until then nothing can be put right inside the server, and no new password is made for the application.",
        "Mostly passes by itself. Where the message says that it does not: restore the Secret <name>-superuser; or set the password by hand: kubectl exec -it -n <namespace> <name>-0 -- psql -U postgres -c '\\password'.";
    SUPERUSER_RECOVERED = "SuperuserRecovered",
        "The superuser's password was set to the Secret's over the local socket of the primary.",
        "None.";
    PASSWORD_NOT_CHECKED = "PasswordNotChecked",
        "The server let a wrong password in: host authentication is not in force.",
        "Use an image that honours the arguments config_file and hba_file.";
    READ_ONLY_SERVER = "ReadOnlyServer",
        "The server takes no writes.",
        "Undo what made it read-only (default_transaction_read_only, a standby signal).";
    DISK_FULL = "DiskFull",
        "The server could not write: no space is left.",
        "Free space on the volume.";
    STATEMENT_BLOCKED = "StatementBlocked",
        "A statement of the operator ran into its time-out, mostly behind a lock; the message says what the server said.",
        "End the transaction that holds the lock; it is tried again by itself.";
    VERIFICATION_FAILED = "VerificationFailed",
        "The server refused a check; the message holds its words.",
        "Correct what the message names; it is tried again by itself.";
    PRIMARY_UNAVAILABLE = "PrimaryUnavailable",
        "The primary is down or not verified.",
        "See the reason of the condition Ready.";
    NOT_YET_SERVING = "NotYetServing",
        "The Database has not been Ready yet.",
        "See the reason of the condition Progressing.";
    STANDBY_UNAVAILABLE = "StandbyUnavailable",
        "The primary serves; a standby is missing, being copied, or does not stream.",
        "Mostly passes by itself; the message names each standby and what it lacks.";
    STANDBY_RESTARTED = "StandbyRestarted",
        "The pod of a standby is made again, so that its guard looks at the data and the settings anew.",
        "Passes by itself.";
    VOLUME_RESIZING = "VolumeResizing",
        "A volume is asked to grow and has not grown yet.",
        "Passes when the provisioner is done; the message holds the claim's own words.";
    COLLATION_VERSION_MISMATCH = "CollationVersionMismatch",
        "The image's C library sorts differently from the one that built the indexes.",
        "Go back to the old image flavour; or rebuild the indexes with REINDEX DATABASE and then run ALTER DATABASE ... REFRESH COLLATION VERSION.";
    VOLUME_TERMINATING = "VolumeTerminating",
        "The claim of the data is marked for deletion and goes when the pod does.",
        "Take a dump now; a deletion cannot be undone.";
}

/// All reasons, in the order of the ladder.
pub static ALL: &[&Reason] = &[
    &ALL_CHECKS_PASSED,
    &RECONCILIATION_COMPLETE,
    &ADVANCING,
    &ACCEPTING,
    &INVALID_SPEC,
    &UNREADABLE,
    &STORAGE_EXPANSION_REFUSED,
    &STORAGE_SHRINK_REFUSED,
    &STORAGE_CLASS_CHANGE_REFUSED,
    &RENAME_REFUSED,
    &MAJOR_VERSION_CHANGE_REFUSED,
    &PAUSED,
    &NAME_CONFLICT,
    &DEPENDENCY_REFUSED,
    &EXTERNAL_DEPENDENCY_UNAVAILABLE,
    &STORAGE_CLASS_NOT_FOUND,
    &READ_FAILED,
    &WRITE_REFUSED,
    &WRITE_FAILED,
    &CHILD_MISSING,
    &CHILD_TERMINATING,
    &PASSWORD_MISSING,
    &PASSWORD_UNUSABLE,
    &ROLLOUT_WAITING,
    &ROLLING_OUT,
    &GROWING_VOLUMES,
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
    &DATA_MISSING,
    &DATA_LOSS_ACCEPTED,
    &DIFFERENT_DATA,
    &HALF_INITIALISED,
    &NOT_A_STANDBY,
    &STANDBY_COPY_FAILED,
    &DATA_VERSION_MISMATCH,
    &SERVER_UNREACHABLE,
    &SERVER_NOT_ACCEPTING,
    &WRONG_SERVER,
    &CONFIGURATION_NOT_IN_FORCE,
    &UNSUPPORTED_SERVER,
    &PREPARING_DATABASE,
    &SUPERUSER_LOGIN_FAILED,
    &SUPERUSER_RECOVERED,
    &PASSWORD_NOT_CHECKED,
    &READ_ONLY_SERVER,
    &DISK_FULL,
    &STATEMENT_BLOCKED,
    &VERIFICATION_FAILED,
    &ACTION_FAILED,
    &PRIMARY_UNAVAILABLE,
    &NOT_YET_SERVING,
    &STANDBY_UNAVAILABLE,
    &STANDBY_RESTARTED,
    &VOLUME_RESIZING,
    &COLLATION_VERSION_MISMATCH,
    &VOLUME_TERMINATING,
    &MANAGERS_FIGHT,
    &DELETING,
    &OBSERVATION_FAILED,
    &PHASE_CHANGED,
    &EDIT_REVERTED,
];
