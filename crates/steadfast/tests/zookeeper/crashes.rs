//! The operator crashes before and after every write and every call to ZooKeeper of bring-up, growth,
//! shrinking, upgrade, failed upgrade and recovery, or loses the reply: the end is the same, and
//! no node is lost (fault catalogue G-01, G-06; ZK-05).
//!
//! Everything here runs under virtual time.

use serde_json::json;

use crate::support::Bench;
use crate::support::crash::{Before, Proof, Story};
use crate::support::ensemble::{
    BAD_TAG, ZK, ZOOKEEPER, is_whole, lose_image, manifest, scale, set_tag,
};

/// At which of the places something goes wrong: at all of them; in the hermetic check, which is run at
/// every change, at each fifth.
fn places() -> usize {
    let hermetic = std::env::var("STEADFAST_HERMETIC").is_ok_and(|value| value == "1");
    if hermetic { 5 } else { 1 }
}

const BRING_UP: Story = Story {
    seed: 11,
    subject: ZOOKEEPER,
    before: Before::Nothing,
    act: |bench| bench.apply(&manifest(3)),
    over: |bench| is_whole(bench, 3),
    proof: Proof::State,
};

const GROWTH: Story = Story {
    seed: 12,
    subject: ZOOKEEPER,
    before: Before::Ensemble(1),
    act: |bench| scale(bench, 3),
    over: |bench| is_whole(bench, 3),
    proof: Proof::Nodes(3),
};

const SHRINKING: Story = Story {
    seed: 13,
    subject: ZOOKEEPER,
    before: Before::Ensemble(3),
    act: |bench| scale(bench, 1),
    over: |bench| is_whole(bench, 1),
    proof: Proof::Nodes(1),
};

const UPGRADE: Story = Story {
    seed: 14,
    subject: ZOOKEEPER,
    before: Before::Ensemble(3),
    act: |bench| set_tag(bench, "0.2.16"),
    over: |bench| is_whole(bench, 3) && runs(bench, "0.2.16"),
    proof: Proof::Nodes(3),
};

const FAILED_UPGRADE: Story = Story {
    seed: 15,
    subject: ZOOKEEPER,
    before: Before::Ensemble(3),
    act: |bench| {
        lose_image(bench);
        bench.edit(|cluster| {
            cluster["spec"]["image"]["tag"] = json!(BAD_TAG);
            cluster["spec"]["progressDeadlineSeconds"] = json!(60);
        });
    },
    over: |bench| bench.condition(ZK, "Error")["status"] == "True",
    proof: Proof::Nodes(2),
};

const RECOVERY: Story = Story {
    seed: 16,
    subject: ZOOKEEPER,
    before: Before::Failed,
    act: |bench| set_tag(bench, "0.2.15"),
    over: |bench| is_whole(bench, 3) && runs(bench, "0.2.15"),
    proof: Proof::Nodes(3),
};

fn runs(bench: &Bench, tag: &str) -> bool {
    bench.resource(ZK).is_some_and(|cluster| cluster["status"]["currentVersion"] == tag)
}

#[test]
fn g_01_g_06_bring_up_survives_a_crash_or_lost_reply_at_every_write() {
    BRING_UP.matrix_of_each("bring-up of a cluster", places());
}

#[test]
fn g_01_g_06_growth_survives_a_crash_or_lost_reply_at_every_write() {
    GROWTH.matrix_of_each("growth of a cluster", places());
}

#[test]
fn g_01_g_06_shrinking_survives_a_crash_or_lost_reply_at_every_write() {
    SHRINKING.matrix_of_each("shrinking of a cluster", places());
}

#[test]
fn g_01_g_06_an_upgrade_survives_a_crash_or_lost_reply_at_every_write() {
    UPGRADE.matrix_of_each("upgrade of a cluster", places());
}

#[test]
fn g_01_g_06_a_failed_upgrade_survives_a_crash_or_lost_reply_at_every_write() {
    FAILED_UPGRADE.matrix_of_each("failed upgrade of a cluster", places());
}

#[test]
fn g_01_g_06_the_way_out_survives_a_crash_or_lost_reply_at_every_write() {
    RECOVERY.matrix_of_each("recovery of a cluster", places());
}
