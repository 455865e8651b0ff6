//! Reasons that every controller gives, with their meaning and what ends them.
//!
//! Names are API: scripts match on them. Must hold nothing but data, and name no custom resource.

/// Declares reasons as statics of one name each.
macro_rules! declare {
    ($($constant:ident = $name:literal, $meaning:literal, $remedy:literal;)*) => {
        $(
            #[doc = $meaning]
            pub static $constant: phased::Reason =
                phased::Reason { name: $name, meaning: $meaning, remedy: $remedy };
        )*
    };
}
pub(crate) use declare;

declare! {
    RECONCILIATION_COMPLETE = "ReconciliationComplete",
        "Nothing is left to do for this generation.",
        "Nothing to do.";
    ADVANCING = "Advancing",
        "This phase is done; the next status write moves to the next phase.",
        "Passes by itself at once, or when the time set with --phase-dwell is over.";
    ACCEPTING = "Accepting",
        "The finalizer is being put on the resource before anything is created.",
        "Passes by itself.";
    INVALID_SPEC = "InvalidSpec",
        "The spec cannot be carried out; the message names each wrong field. What runs already is left as it is.",
        "Correct the named fields.";
    UNREADABLE = "Unreadable",
        "The stored resource does not fit the types of this release. What runs already is left as it is.",
        "Correct the field that the message names, or install the CRD of this release and apply the manifest again.";
    PAUSED = "Paused",
        "The annotation steadfast.dev/paused is \"true\": nothing but the status is written.",
        "Remove the annotation.";
    NAME_CONFLICT = "NameConflict",
        "A name that this resource needs belongs to somebody else; that object is never touched.",
        "Hand the object over with the labels app.kubernetes.io/managed-by=steadfast and app.kubernetes.io/instance=<name>, which also brings one of our own back whose labels were changed; or give the resource another name, or remove the object if nobody needs what it holds.";
    READ_FAILED = "ReadFailed",
        "Something could not be read. A failed read is never taken for absence, so nothing was decided on it.",
        "Passes when the read succeeds; the message says what the API server answered.";
    WRITE_REFUSED = "WriteRefused",
        "The API server refused a write: permissions, quota, admission or an invalid field.",
        "Change what the message names; the write is tried again by itself.";
    WRITE_FAILED = "WriteFailed",
        "A write did not succeed and is tried again.",
        "Passes by itself when the API server answers again.";
    CHILD_MISSING = "ChildMissing",
        "A part of the resource does not exist and is being created.",
        "Passes by itself.";
    CHILD_TERMINATING = "ChildTerminating",
        "A part of the resource is being deleted; it is made anew once it is gone.",
        "Passes when the old object is gone; the message names its finalizers.";
    ROLLOUT_WAITING = "RolloutWaiting",
        "The StatefulSet has not rolled out the generation that was written.",
        "Passes by itself; without progress within spec.progressDeadlineSeconds the phase becomes Failed with the causes.";
    ROLLING_OUT = "RollingOut",
        "The StatefulSet is being changed.",
        "Passes by itself.";
    BLOCKING_POD_REPLACED = "BlockingPodReplaced",
        "A pod of a superseded revision was not ready and held up the rollout; it is deleted once.",
        "Passes by itself.";
    POD_UNSCHEDULABLE = "PodUnschedulable",
        "No node can take the pod.",
        "Make room, or change what the spec asks of nodes and volumes, as the message says.";
    NODE_LOST = "NodeLost",
        "The node of the pod is not heard from. The server may still run there, so nothing is started in its place.",
        "Bring the node back. If its machine is off for certain, taint the node with node.kubernetes.io/out-of-service; a volume that lies on that machine alone is then lost with it.";
    IMAGE_PULL_FAILED = "ImagePullFailed",
        "The image cannot be pulled.",
        "Correct the image or the Secrets for pulling it in the spec.";
    CONTAINER_CRASHING = "ContainerCrashing",
        "A container ends again and again; the message holds its last words.",
        "Correct what the message names, often a setting or the image.";
    CONTAINER_CONFIG_ERROR = "ContainerConfigError",
        "A container cannot be started as declared.",
        "Correct what the message names.";
    PROBE_FAILING = "ProbeFailing",
        "The server's container runs and does not become ready: its probe fails.",
        "Look at the server's log and at what the message says; a server that hangs is restarted by its liveness probe.";
    QUOTA_EXCEEDED = "QuotaExceeded",
        "A resource quota of the namespace stands in the way.",
        "Raise the quota, free some of it, or ask for less in the spec.";
    ADMISSION_REFUSED = "AdmissionRefused",
        "The cluster refuses to create the pod or its claim.",
        "Change what the message names, in the spec or in the namespace's policy.";
    VOLUME_PENDING = "VolumePending",
        "The volume is not there yet.",
        "The message holds the provisioner's words; correct the storage class or its provisioner.";
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded",
        "The rollout made no progress for spec.progressDeadlineSeconds; the message holds the causes.",
        "Remove the cause; a corrected spec is taken up at once.";
    ACTION_FAILED = "ActionFailed",
        "A change inside the server did not succeed; the message holds its words.",
        "Correct what the message names; it is tried again by itself.";
    MANAGERS_FIGHT = "ManagersFight",
        "Another manager edits declared fields again and again; each time they are taken back.",
        "Let only one of the two declare the fields. It ends ten minutes after the last edit.";
    DELETING = "Deleting",
        "The resource is being deleted.",
        "Passes by itself; the message says what is waited for.";
    OBSERVATION_FAILED = "ObservationFailed",
        "The operator could not look at the cluster, so nothing was decided; the message says why.",
        "Passes when reading succeeds again; otherwise look at the operator's permissions and log.";
    PHASE_CHANGED = "PhaseChanged",
        "Event: the phase moved.",
        "Nothing to do.";
    EDIT_REVERTED = "EditReverted",
        "Event: a declared field that another manager had set was taken back.",
        "Change the resource instead of its parts.";
}
