//! How fast a simulated hour of one Database under every fault runs: `cargo run --release -p
//! steadfast --example simulated_hour [SEEDS]`. Measures; it judges nothing but convergence.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);

fn main() {
    let seeds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5_u64);
    for seed in 1..=seeds {
        let began = Instant::now();
        let (requests, fired) = support::determinism::run(seed, move || async move {
            let bench = support::Bench::new(seed);
            support::rules::install_lasting(&bench.world);
            let fired = support::storm::blow(&bench, seed, HOUR).await;
            support::rules::hold(&bench.world);
            (bench.world.cluster.with(|core| core.faults.log().len()), fired)
        });
        let seconds = began.elapsed().as_secs_f64();
        let faults: u64 = fired.values().sum();
        println!(
            "seed {seed}: one hour in {seconds:.2} s ({:.0} times real time), {requests} requests, {faults} faults",
            HOUR.as_secs_f64() / seconds
        );
    }
}
