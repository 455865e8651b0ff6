//! The operator is ended with SIGKILL at each write of an update on a real node: it converges, nothing
//! is doubled, and no server is started again for it.

mod real;

use std::sync::Arc;
use std::time::Instant;

use real::process::{Cut, Program};
use real::scene::DB;
use real::update::{bench, children, pod, ready, revision};
use real::{Bench, PATIENCE, is_ready};

/// Distinct points at which the operator is ended: before and after each of so many writes.
const POINTS: usize = 50;
/// Databases that are updated at the same time, each by an operator of its own.
const AT_ONCE: usize = 3;

/// The points of one worker: every third, so that all workers together have each once.
fn points(worker: usize) -> impl Iterator<Item = Cut> {
    let at =
        |n: usize| if n.is_multiple_of(2) { Cut::Before(n / 2 + 1) } else { Cut::After(n / 2 + 1) };
    (0..POINTS).skip(worker).step_by(AT_ONCE).map(at)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_killed_at_any_write_of_an_update_leaves_no_trace() {
    let mut workers = Vec::new();
    for worker in 0..AT_ONCE {
        let Some(bench) = bench().await else { return };
        workers.push(tokio::spawn(update_and_kill(bench, worker)));
    }
    let mut cuts = 0;
    for worker in workers {
        cuts += worker.await.expect("a worker's assertions hold");
    }
    eprintln!("killed at {cuts} points of updates on a real node");
    assert_eq!(cuts, POINTS);
}

async fn update_and_kill(bench: Arc<Bench>, worker: usize) -> usize {
    let program = Program::prepare(&bench).await;
    program.start(None);
    bench.apply_database(DB, revision(0)).await;
    ready(&bench, "to come up").await;
    let expected = children(&bench).await;
    let mut cuts = 0;
    for (number, cut) in points(worker).enumerate() {
        program.end().await;
        let (before, _) = pod(&bench).await;
        bench.apply_database(DB, revision(number + 1)).await;
        program.start(Some(cut));
        // An update of one server needs fewer writes than the later points; the same run goes on
        // into updates that follow, until it has sent that many.
        let fallen = fall_during_updates(&bench, &program, number, cut).await;
        program.end().await;
        program.start(None);
        ready(&bench, &format!("after {cut:?}")).await;
        assert_eq!(children(&bench).await, expected, "after {cut:?}");
        let (after, restarts) = pod(&bench).await;
        assert_ne!(after, before, "the update never came into force after {cut:?}");
        assert_eq!(restarts, 0, "a server was started again in its pod after {cut:?}");
        assert!(fallen, "the program was never ended at {cut:?}");
        cuts += 1;
    }
    program.end().await;
    drop(program);
    Arc::into_inner(bench).expect("nobody else holds it").strike().await;
    cuts
}

/// Waits until the program falls; whenever an update is finished before, asks for another.
async fn fall_during_updates(bench: &Bench, program: &Program, number: usize, cut: Cut) -> bool {
    let began = Instant::now();
    let mut more = 0;
    while began.elapsed() < PATIENCE {
        tokio::select! {
            () = program.fallen() => return true,
            outcome = bench.until(DB, PATIENCE, is_ready) => {
                assert!(outcome.is_ok(), "{cut:?}: {outcome:#?}");
                more += 1;
                let next = 1000 * (number + 1) + more;
                bench.apply_database(DB, revision(next)).await;
            }
        }
    }
    false
}
