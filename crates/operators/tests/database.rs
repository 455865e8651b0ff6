//! Histories of a Database by table: bring-up, drift, refusals, failures, deletion.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;

#[test]
fn six_phases_in_order_and_few_writes() {
    let mut world = World::new();
    let mut phases = Vec::new();
    for _ in 0..40 {
        world.pass();
        if phases.last().map(String::as_str) != Some(world.phase()) {
            phases.push(world.phase().to_owned());
        }
        world.roll_out();
        if world.phase() == "Ready" {
            break;
        }
    }
    assert_eq!(
        phases,
        ["Pending", "Provisioning", "Configuring", "Deploying", "Verifying", "Ready"]
    );
    world.settle_rolling();
    let api = world.writes.iter().filter(|w| !w.starts_with("act")).count();
    assert!(api <= 20, "{api} writes: {:#?}", world.writes);
}
