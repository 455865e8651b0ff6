//! Named steps that run one after the other, or some side by side, and end in a table of outcomes and
//! durations.
//!
//! Must not know what the steps do. A failed step never stops the later ones: one run shows
//! everything that is wrong.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything in it ran and held.
    Passed,
    /// It held, and this is worth knowing: what ran instead, or which part was left out.
    Noted(String),
    /// It did not run, wholly or in part, for this reason.
    Skipped(String),
    /// It ran and did not hold, or could not run although it had to.
    Failed(String),
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Outcome::Passed | Outcome::Noted(_) => "ok",
            Outcome::Skipped(_) => "SKIPPED",
            Outcome::Failed(_) => "FAILED",
        }
    }

    fn remark(&self) -> &str {
        match self {
            Outcome::Passed => "",
            Outcome::Noted(text) | Outcome::Skipped(text) | Outcome::Failed(text) => text,
        }
    }
}

/// One line of the table.
#[derive(Debug, Clone)]
struct Row {
    name: String,
    outcome: Outcome,
    took: Duration,
}

/// The steps run so far.
#[derive(Debug)]
pub(crate) struct Steps {
    rows: Vec<Row>,
    began: Instant,
}

/// A step that may run beside others.
pub(crate) struct Job<'a> {
    /// What it is called.
    pub(crate) name: String,
    /// What it does. What it prints must say whose it is.
    pub(crate) work: Box<dyn FnOnce() -> Result<Outcome> + Send + 'a>,
}

impl Steps {
    /// None yet; the time of the whole run begins now.
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new(), began: Instant::now() }
    }

    /// Runs one step, says so before and after, and remembers how it went.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Outcome>) {
        self.rows.push(carry_out(name, step));
    }

    /// Runs jobs in their order, `lanes` of them at a time: most of the time of a test on a cluster
    /// is waiting, which the other lane can use.
    pub(crate) fn side_by_side(&mut self, lanes: usize, jobs: Vec<Job<'_>>) {
        let queue = Mutex::new(jobs.into_iter());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let lane = || -> Vec<Row> {
            std::iter::from_fn(next).map(|job| carry_out(&job.name, job.work)).collect()
        };
        let rows = thread::scope(|scope| {
            let lanes: Vec<_> = (0..lanes.max(1)).map(|_| scope.spawn(lane)).collect();
            lanes
                .into_iter()
                .flat_map(|lane| lane.join().unwrap_or_else(|_| vec![died()]))
                .collect()
        });
        self.add_by_name(rows);
    }

    fn add_by_name(&mut self, mut rows: Vec<Row>) {
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        self.rows.append(&mut rows);
    }

    /// The table: one row a step, with its outcome, its duration and its remark.
    fn table(&self) -> String {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let mut lines = Vec::new();
        for row in &self.rows {
            let (word, remark) = (row.outcome.word(), row.outcome.remark());
            let remark = shortened(remark);
            let line =
                format!("{word:<8} {:>8}  {:<width$}  {remark}", seconds(row.took), row.name);
            lines.push(line.trim_end().to_owned());
        }
        lines.push(format!("{:<8} {:>8}", "total", seconds(self.began.elapsed())));
        lines.join("\n")
    }

    /// Prints the table; an error if any step failed. Skipped steps are counted aloud.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n{}", self.table());
        let count = |word: &str| self.rows.iter().filter(|row| row.outcome.word() == word).count();
        let (failed, skipped) = (count("FAILED"), count("SKIPPED"));
        if skipped > 0 {
            println!("\nSKIPPED: {skipped} step(s) did not run in full; the table says why.");
        }
        if failed > 0 {
            bail!("{failed} step(s) failed");
        }
        Ok(())
    }
}

fn carry_out(name: &str, step: impl FnOnce() -> Result<Outcome>) -> Row {
    println!("\n== {name}");
    let start = Instant::now();
    let outcome = step().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
    let took = start.elapsed();
    println!("== {name}: {} in {}", outcome.word(), seconds(took));
    if !outcome.remark().is_empty() {
        println!("   {}", outcome.remark());
    }
    Row { name: name.to_owned(), outcome, took }
}

/// What stands for the steps of a lane that panicked.
fn died() -> Row {
    let outcome = Outcome::Failed("a step panicked; what its lane ran is not known".to_owned());
    Row { name: "a lane of steps".to_owned(), outcome, took: Duration::ZERO }
}

/// The first line of a remark, cut to the width of a terminal; all of it was printed before.
fn shortened(remark: &str) -> String {
    let line = remark.lines().next().unwrap_or_default();
    if line.chars().count() <= 140 {
        return line.to_owned();
    }
    line.chars().take(140).chain(['…']).collect()
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_run_and_does_not_stop_it() {
        let mut steps = Steps::new();
        steps.run("first", || bail!("broken"));
        steps.run("second", || Ok(Outcome::Skipped("no server".to_owned())));
        let table = steps.table();
        assert!(table.contains("FAILED"), "{table}");
        assert!(table.contains("broken"), "{table}");
        assert!(table.contains("SKIPPED"), "{table}");
        assert!(steps.finish().is_err());
    }

    #[test]
    fn every_job_runs_once_and_a_panic_in_a_lane_fails_the_run() {
        let mut steps = Steps::new();
        let job = |name: &str, work: fn() -> Result<Outcome>| Job {
            name: name.to_owned(),
            work: Box::new(work),
        };
        let good = || Ok(Outcome::Passed);
        steps.side_by_side(2, vec![job("c", good), job("a", good), job("b", good)]);
        let names = |steps: &Steps| steps.rows.iter().map(|r| r.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&steps), ["a", "b", "c"]);
        steps.side_by_side(2, vec![job("d", || std::panic::panic_any("on purpose"))]);
        assert!(steps.table().contains("a step panicked"));
        assert!(steps.finish().is_err());
    }

    #[test]
    fn a_long_remark_is_cut_in_the_table() {
        assert_eq!(shortened("one\ntwo"), "one");
        assert_eq!(shortened(&"a".repeat(200)).chars().count(), 141);
    }

    #[test]
    fn a_skipped_step_alone_does_not_fail_the_run() {
        let mut steps = Steps::new();
        steps.run("only", || Ok(Outcome::Skipped("no server".to_owned())));
        assert!(steps.finish().is_ok());
    }
}
