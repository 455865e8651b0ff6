//! First bring-up on the simulated cluster: phases in order, few writes, quiet afterwards.

mod support;

use std::time::Duration;

use support::{Bench, TEST_DB, simulate};

#[test]
fn test_db_becomes_ready_through_all_phases_in_order() {
    simulate(|| async {
        let bench = Bench::new(1);
        let operator = bench.operator();
        bench.world.apply(TEST_DB).expect("the manifest is accepted");
        let ready = bench.ready("test-db", Duration::from_secs(120)).await;
        let database = bench.database("test-db").expect("it exists");
        let trace = bench.world.cluster.with(|core| core.faults.trace());
        assert!(ready, "{database:#}\n{trace}");
        assert!(!operator.ended());
    });
}
