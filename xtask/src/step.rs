//! Named steps that run one after the other and end in a table of outcomes and durations.
//!
//! Must not know what the steps do. A failed step never stops the later ones: one run shows
//! everything that is wrong.

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
#[derive(Debug, Default)]
pub(crate) struct Steps {
    rows: Vec<Row>,
}

impl Steps {
    /// Runs one step, says so before and after, and remembers how it went.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Result<Outcome>) {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = step().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
        let took = start.elapsed();
        println!("== {name}: {} in {}", outcome.word(), seconds(took));
        if !outcome.remark().is_empty() {
            println!("   {}", outcome.remark());
        }
        self.rows.push(Row { name: name.to_owned(), outcome, took });
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
        let total: Duration = self.rows.iter().map(|row| row.took).sum();
        lines.push(format!("{:<8} {:>8}", "total", seconds(total)));
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
        let mut steps = Steps::default();
        steps.run("first", || bail!("broken"));
        steps.run("second", || Ok(Outcome::Skipped("no server".to_owned())));
        let table = steps.table();
        assert!(table.contains("FAILED"), "{table}");
        assert!(table.contains("broken"), "{table}");
        assert!(table.contains("SKIPPED"), "{table}");
        assert!(steps.finish().is_err());
    }

    #[test]
    fn a_long_remark_is_cut_in_the_table() {
        assert_eq!(shortened("one\ntwo"), "one");
        assert_eq!(shortened(&"a".repeat(200)).chars().count(), 141);
    }

    #[test]
    fn a_skipped_step_alone_does_not_fail_the_run() {
        let mut steps = Steps::default();
        steps.run("only", || Ok(Outcome::Skipped("no server".to_owned())));
        assert!(steps.finish().is_ok());
    }
}
