//! Runs one history again and again, with the operator crashing, or losing a reply, at each of its
//! writes and each of its SQL statements, and compares the ends.

use std::time::Duration;

use sim::faults::{Crash, Effect, Match, Often, Rule};

use super::tap::Mischief;
use super::{Bench, OPERATOR, Operator, login, portrait, rules};

/// A history in three parts: what happens before the operator whose writes count is started, what
/// the user then does, and when it is over.
#[derive(Clone, Copy)]
pub(crate) struct Story {
    pub(crate) seed: u64,
    /// Brings the world to where the story begins.
    pub(crate) before: Before,
    /// What the user does; the operator's writes after it are those that count.
    pub(crate) act: fn(&Bench),
    /// Whether it is over.
    pub(crate) over: fn(&Bench) -> bool,
    /// Whether rows were written that must be there at the end.
    pub(crate) rows: bool,
}

/// Where a story begins.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Before {
    /// An empty cluster.
    Nothing,
    /// A Ready Database with rows in it.
    Ready,
}

/// What goes wrong in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wrong {
    Nothing,
    Crash(Crash),
    LostReply(u64),
    Sql(usize, Mischief),
    /// The second crash hits the recovery.
    Pair(Crash, Crash),
}

/// How a run ended.
pub(crate) struct End {
    pub(crate) portrait: String,
    pub(crate) writes: u64,
    pub(crate) statements: usize,
    pub(crate) restarts: usize,
}

/// Longer than any of the stories needs without trouble, and with one crash in it.
const PATIENCE: Duration = Duration::from_secs(900);

impl Story {
    /// Runs the story with one thing going wrong.
    pub(crate) async fn run(&self, wrong: Wrong) -> End {
        let bench = Bench::new(self.seed);
        rules::install(&bench.world);
        self.begin(&bench).await;
        let mut operator = bench.operator();
        self.arm(&bench, &operator, wrong);
        (self.act)(&bench);
        let mut restarts = 0;
        let began = tokio::time::Instant::now();
        while !(self.over)(&bench) || operator.handle.crashed() {
            assert!(began.elapsed() < PATIENCE, "{wrong:?}: not over: {}", bench.says(super::NAME));
            if operator.handle.crashed() {
                operator.kill();
                restarts += 1;
                operator = bench.operator();
                if let (Wrong::Pair(_, second), 1) = (wrong, restarts) {
                    operator.handle.crash_at(Some(second));
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let (writes, statements) = (operator.handle.writes(), operator.tap.said().len());
        // Long enough for every write that a false end would still bring about.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!((self.over)(&bench), "{wrong:?}: it did not last: {}", bench.says(super::NAME));
        if self.rows {
            assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS), "{wrong:?}");
        }
        let broken = bench.world.violations();
        assert!(broken.is_empty(), "{wrong:?}: {broken:#?}");
        assert!(!operator.ended(), "{wrong:?}: the operator ended by itself");
        End { portrait: portrait::of(&bench.world), writes, statements, restarts }
    }

    async fn begin(&self, bench: &Bench) {
        if self.before == Before::Nothing {
            return;
        }
        let operator = bench.operator();
        bench.apply(super::TEST_DB);
        bench.settle(super::NAME).await;
        if self.rows {
            login::write_rows(&bench.world).await;
        }
        operator.kill();
    }

    fn arm(&self, bench: &Bench, operator: &Operator, wrong: Wrong) {
        match wrong {
            Wrong::Nothing => {}
            Wrong::Crash(crash) | Wrong::Pair(crash, _) => operator.handle.crash_at(Some(crash)),
            Wrong::LostReply(nth) => {
                let rule = Rule::new(Match::writes().by(OPERATOR), Often::Nth(nth), Effect::LostReply);
                bench.world.cluster.with(|core| core.faults.add(rule));
            }
            Wrong::Sql(nth, mischief) => operator.tap.at(nth, mischief),
        }
    }
}
