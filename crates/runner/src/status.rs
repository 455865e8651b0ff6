//! The one status write of a pass, and what becomes of it when it is refused.
//!
//! Must not decide what the status says.

use phased::fact::Fate;
use phased::plan::EventNote;
use phased::{ObjectId, Plan, StatusWrite};
use serde_json::json;

use crate::api::{ApplyMode, Part};
use crate::pass::{Means, refresh};
use crate::trouble::ApiError;

/// Writes the status of a plan, if it has one. Returns whether something was written.
pub(crate) async fn write_status(
    means: &Means,
    id: &ObjectId,
    plan: &Plan,
    manager: &str,
) -> Result<bool, ApiError> {
    let Some(StatusWrite { status, uid, resource_version }) = &plan.status else {
        return Ok(false);
    };
    let body = json!({
        "apiVersion": id.kind.api_version(),
        "kind": id.kind.kind,
        "metadata": {
            "name": id.name, "namespace": id.namespace,
            "uid": uid, "resourceVersion": resource_version,
        },
        "status": status,
    });
    let mode = ApplyMode { manager, part: Part::Status, force: true };
    let result = means.server.apply(id, &body, &mode).await;
    means.metrics.wrote("apply status", id.kind.kind, if result.is_ok() { "ok" } else { "error" });
    match result {
        Ok(live) => means.store.put(id, live),
        Err(error) => {
            not_written(means, id, &error).await;
            return Err(error);
        }
    };
    Ok(true)
}

/// A status that is not written cannot tell why. A stale view is read anew; a refusal goes into the
/// log and an Event: the definition may be older than we are (fault catalogue PG-41).
async fn not_written(means: &Means, id: &ObjectId, error: &ApiError) {
    let ApiError::Trouble { trouble, .. } = error else { return refresh(means, id).await };
    tracing::warn!(object = %id, %error, "status could not be written");
    if trouble.fate == Fate::WorldMayHeal {
        return;
    }
    let Some(root) = means.store.get(id) else { return };
    let note = EventNote {
        warning: true,
        reason: "StatusRefused",
        action: "WriteStatus",
        message: format!("the status cannot be written: {}", trouble.message),
    };
    means.reporter.remind(id, &root, &note);
}
