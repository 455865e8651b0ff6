//! Standbys on the simulated cluster, with the real runner: bring-up, more and fewer of them, losses,
//! settings, growth (docs/design/0002-standbys.md; reference/database.md section 4).
//!
//! Everything here runs under virtual time.

mod support;

use support::{Bench, NAME, TEST_DB, rules, simulate};

/// The exercise's manifest with so many servers.
fn manifest(replicas: u32) -> String {
    TEST_DB.replace("replicas: 1", &format!("replicas: {replicas}"))
}

#[test]
fn three_servers_come_up_and_two_of_them_stream() {
    simulate(|| async {
        let bench = Bench::new(41);
        rules::install(&bench.world);
        let _operator = bench.operator();
        bench.apply(&manifest(3));
        bench.settle(NAME).await;
        rules::hold(&bench.world);
        println!("{:#}", bench.database(NAME).unwrap()["status"]);
        for w in bench.writes() { println!("{w}"); }
    });
}
