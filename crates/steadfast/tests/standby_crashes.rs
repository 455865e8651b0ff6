//! The operator crashes before and after every write and every SQL statement, or loses the reply, while
//! standbys are added and removed and volumes grow: the end is the same, the rows are there, Ready is
//! never said falsely (fault catalogue G-01, G-06, PG-23, PG-31; docs/design/0002-standbys.md).
//!
//! Everything here runs under virtual time.

mod support;

use serde_json::json;
use support::crash::{Before, Proof, Story};
use support::replicas::{is_whole, scale};
use support::{Bench, DATABASE, NAME, text};

const MORE: Story = Story {
    seed: 61,
    subject: DATABASE,
    before: Before::Ready,
    act: |bench| scale(bench, 3),
    over: |bench| is_whole(bench, 3),
    proof: Proof::Rows,
};

const FEWER: Story = Story {
    seed: 62,
    subject: DATABASE,
    before: Before::Three,
    act: |bench| scale(bench, 1),
    over: |bench| {
        is_whole(bench, 1)
            && bench.world.get("Pod", "default", "test-db-1").is_none()
            && bench.world.get("Service", "default", "test-db-ro").is_none()
    },
    proof: Proof::Rows,
};

/// Claims and claim template ask for the new size, and the claims have it.
fn has_grown(bench: &Bench) -> bool {
    let set = bench.world.get("StatefulSet", "default", NAME).unwrap_or_default();
    let template = "/spec/volumeClaimTemplates/0/spec/resources/requests/storage";
    let claim = bench.world.get("PersistentVolumeClaim", "default", "data-test-db-0");
    let claim = claim.unwrap_or_default();
    is_whole(bench, 1)
        && text(&set, template) == "20Gi"
        && text(&claim, "/spec/resources/requests/storage") == "20Gi"
        && text(&claim, "/status/capacity/storage") == "20Gi"
}

const GROW: Story = Story {
    seed: 63,
    subject: DATABASE,
    before: Before::Ready,
    act: |bench| bench.edit(|database| database["spec"]["storage"]["size"] = json!("20Gi")),
    over: has_grown,
    proof: Proof::Rows,
};

#[test]
fn g_01_g_06_standbys_are_added_whatever_crashes() {
    MORE.matrix("one to three");
}

#[test]
fn g_01_g_06_standbys_are_removed_whatever_crashes() {
    FEWER.matrix("three to one");
}

#[test]
fn pg_31_volumes_grow_whatever_crashes_and_no_pod_is_lost() {
    GROW.matrix("growth");
}
