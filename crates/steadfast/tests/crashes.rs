//! The operator crashes before and after every write and every SQL statement of bring-up, update,
//! repair and delete, or loses the reply: the end is the same, nothing is lost, Ready is never said
//! falsely (fault catalogue G-01, G-03, G-06, PG-07, PG-08, PG-16).

mod support;

use serde_json::json;
use support::crash::{Before, Proof, Story};
use support::{Bench, DATABASE, NAME, TEST_DB, is_ready, login};

/// Ready for the present generation.
fn ready(bench: &Bench) -> bool {
    bench.database(NAME).is_some_and(|database| is_ready(&database))
}

fn gone(bench: &Bench, kind: &str, name: &str) -> bool {
    bench.world.get(kind, "default", name).is_none()
}

/// The Database and everything that the garbage collector takes are gone.
fn released(bench: &Bench) -> bool {
    gone(bench, "Database", NAME)
        && gone(bench, "StatefulSet", NAME)
        && gone(bench, "Pod", "test-db-0")
        && gone(bench, "Service", NAME)
        && gone(bench, "ConfigMap", "test-db-config")
        && gone(bench, "Secret", "test-db-credentials")
}

const BRING_UP: Story = Story {
    seed: 11,
    subject: DATABASE,
    before: Before::Nothing,
    act: |bench| bench.apply(TEST_DB),
    over: ready,
    proof: Proof::Login,
};

const NEW_IMAGE: Story = Story {
    seed: 12,
    subject: DATABASE,
    before: Before::Ready,
    act: |bench| bench.edit(|database| database["spec"]["image"] = json!("postgres:14.19")),
    over: ready,
    proof: Proof::Rows,
};

const NEW_PARAMETERS: Story = Story {
    seed: 13,
    subject: DATABASE,
    before: Before::Ready,
    act: |bench| {
        bench.edit(|database| database["spec"]["parameters"] = json!({"max_connections": "50"}));
    },
    over: ready,
    proof: Proof::Rows,
};

const DELETE_RETAIN: Story = Story {
    seed: 14,
    subject: DATABASE,
    before: Before::Ready,
    act: |bench| bench.world.delete("Database", "default", NAME).expect("deleted"),
    over: released,
    proof: Proof::RowsAfterReturn,
};

const DELETE_DELETE: Story = Story {
    seed: 15,
    subject: DATABASE,
    before: Before::Ready,
    act: |bench| {
        bench.edit(|database| database["spec"]["deletionPolicy"] = json!("Delete"));
        bench.world.delete("Database", "default", NAME).expect("deleted");
    },
    over: |bench| {
        released(bench)
            && gone(bench, "PersistentVolumeClaim", "data-test-db-0")
            && gone(bench, "Secret", "test-db-superuser")
            && gone(bench, "Secret", "test-db-replication")
    },
    proof: Proof::State,
};

const PASSWORD_EDITED: Story = Story {
    seed: 16,
    subject: DATABASE,
    before: Before::Ready,
    act: |bench| {
        let edited = bench.world.edit("Secret", "default", "test-db-credentials", |secret| {
            secret["data"]["password"] = json!(login::encoded("another-password-of-the-user"));
        });
        edited.expect("the Secret is edited");
    },
    over: ready,
    proof: Proof::Rows,
};

const SECRET_DELETED: Story = Story {
    seed: 17,
    subject: DATABASE,
    before: Before::Ready,
    act: |bench| {
        bench.world.delete("Secret", "default", "test-db-credentials").expect("deleted");
    },
    over: |bench| ready(bench) && !gone(bench, "Secret", "test-db-credentials"),
    proof: Proof::Rows,
};

#[test]
fn g_01_g_06_pg_16_bring_up_survives_a_crash_or_lost_reply_at_every_write() {
    assert!(BRING_UP.matrix("bring-up") > 50);
}

#[test]
fn g_01_g_06_a_new_image_survives_a_crash_or_lost_reply_at_every_write() {
    NEW_IMAGE.matrix("new image");
}

#[test]
fn g_01_g_06_new_parameters_survive_a_crash_or_lost_reply_at_every_write() {
    NEW_PARAMETERS.matrix("new parameters");
}

#[test]
fn g_01_g_06_pg_06_deletion_with_retain_survives_a_crash_or_lost_reply_at_every_write() {
    DELETE_RETAIN.matrix("deletion, Retain");
}

#[test]
fn g_01_g_06_deletion_with_delete_survives_a_crash_or_lost_reply_at_every_write() {
    DELETE_DELETE.matrix("deletion, Delete");
}

#[test]
fn pg_07_an_edited_password_survives_a_crash_or_lost_reply_at_every_write() {
    PASSWORD_EDITED.matrix("password edited");
}

#[test]
fn pg_08_a_deleted_secret_survives_a_crash_or_lost_reply_at_every_write() {
    SECRET_DELETED.matrix("Secret deleted");
}

#[test]
fn g_03_a_crash_of_the_recovery_from_a_crash_leads_to_the_same_end() {
    BRING_UP.pairs("bring-up, two crashes");
}
