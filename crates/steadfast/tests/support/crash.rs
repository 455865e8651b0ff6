//! Runs one history again and again, with the operator crashing, or losing a reply, at each of its
//! writes and each of its statements or calls to servers, and compares the ends.
//!
//! Everything here runs under virtual time.

use std::time::Duration;

use sim::faults::{Crash, Effect, Match, Often, Rule};

use super::tap::Mischief;
use super::{
    Bench, NAME, OPERATOR, Operator, Subject, determinism, ensemble, login, portrait, rules,
};

/// A history in three parts: what happens before the operator whose writes count is started, what
/// the user then does, and when it is over.
#[derive(Clone, Copy)]
pub(crate) struct Story {
    pub(crate) seed: u64,
    /// The resource that it is about.
    pub(crate) subject: Subject,
    /// Brings the world to where the story begins.
    pub(crate) before: Before,
    /// What the user does; the operator's writes after it are those that count.
    pub(crate) act: fn(&Bench),
    /// Whether it is over.
    pub(crate) over: fn(&Bench) -> bool,
    /// How the end is proved.
    pub(crate) proof: Proof,
}

/// Where a story begins.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Before {
    /// An empty cluster.
    Nothing,
    /// A Ready Database with rows in it.
    Ready,
    /// The same with two standbys.
    Three,
    /// A ZookeeperCluster of so many servers with nodes in it.
    Ensemble(u32),
    /// One of three servers whose upgrade has failed.
    Failed,
}

/// What else must be true at the end.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Proof {
    /// The state of the cluster says it all.
    State,
    /// The application logs in with the Secret's password.
    Login,
    /// It also finds the rows that were written before.
    Rows,
    /// It finds them after the same manifest was applied again.
    RowsAfterReturn,
    /// So many servers of the ZookeeperCluster hold the nodes that were written before.
    Nodes(u32),
    /// It finds them, and the superuser logs in with its Secret's password.
    Superuser,
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
const PATIENCE: Duration = Duration::from_secs(1800);

impl Story {
    /// The story with everything that can go wrong at one place, each compared with the story
    /// without trouble. Prints and answers how many runs there were.
    pub(crate) fn matrix(self, name: &str) -> usize {
        self.matrix_of_each(name, 1)
    }

    /// The same with each so many of the places, beginning with the first.
    pub(crate) fn matrix_of_each(self, name: &str, places: usize) -> usize {
        let told = self.simulated(Wrong::Nothing);
        let mut wrongs: Vec<Wrong> = (1..=told.writes)
            .flat_map(|n| {
                [Wrong::Crash(Crash::Before(n)), Wrong::Crash(Crash::After(n)), Wrong::LostReply(n)]
            })
            .collect();
        wrongs.extend((1..=told.statements).flat_map(|n| {
            [Mischief::CrashBefore, Mischief::CrashAfter, Mischief::LostReply]
                .map(|mischief| Wrong::Sql(n, mischief))
        }));
        let wrongs: Vec<Wrong> = wrongs.into_iter().step_by(places).collect();
        self.compare(name, &told, &wrongs)
    }

    /// Crashes of the recovery from a crash: every third place of the first, some of the second.
    pub(crate) fn pairs(self, name: &str) -> usize {
        let told = self.simulated(Wrong::Nothing);
        let firsts = (1..=told.writes).step_by(3);
        let wrongs: Vec<Wrong> = firsts
            .flat_map(|n| [1, 2, 4].map(|m| Wrong::Pair(Crash::After(n), Crash::After(m))))
            .collect();
        self.compare(name, &told, &wrongs)
    }

    fn compare(self, name: &str, told: &End, wrongs: &[Wrong]) -> usize {
        let mut restarts = 0;
        for wrong in wrongs {
            let end = self.simulated(*wrong);
            restarts += end.restarts;
            let lines = told.portrait.lines().zip(end.portrait.lines());
            let different = lines.enumerate().find(|(_, (one, other))| one != other);
            assert!(different.is_none(), "{name}, {wrong:?}: {different:?}\n{}", end.portrait);
            assert_eq!(told.portrait.len(), end.portrait.len(), "{name}, {wrong:?}");
            match wrong {
                Wrong::Crash(_) | Wrong::Sql(_, Mischief::CrashBefore | Mischief::CrashAfter) => {
                    assert_eq!(end.restarts, 1, "{name}, {wrong:?}: the crash did not happen");
                }
                Wrong::Pair(..) => assert!(end.restarts >= 1, "{name}, {wrong:?}"),
                Wrong::Nothing | Wrong::LostReply(_) | Wrong::Sql(_, Mischief::LostReply) => {}
            }
        }
        println!(
            "{name}: {} writes, {} statements or calls, {} runs, {restarts} crashes: same end",
            told.writes,
            told.statements,
            wrongs.len()
        );
        assert!(!wrongs.is_empty(), "{name}: nothing was tried");
        wrongs.len()
    }

    fn simulated(self, wrong: Wrong) -> End {
        determinism::run(self.seed, move || async move { self.run(wrong).await })
    }

    /// Runs the story with one thing going wrong.
    async fn run(&self, wrong: Wrong) -> End {
        let bench = Bench::of(self.subject, self.seed);
        match self.subject == super::DATABASE {
            true => rules::install(&bench.world),
            false => ensemble::install(&bench.world),
        }
        self.begin(&bench).await;
        let mut operator = bench.operator();
        self.arm(&bench, &operator, wrong);
        (self.act)(&bench);
        let mut restarts = 0;
        let began = tokio::time::Instant::now();
        loop {
            if operator.handle.crashed() {
                operator.kill();
                restarts += 1;
                operator = bench.operator();
                if let (Wrong::Pair(_, second), 1) = (wrong, restarts) {
                    operator.handle.crash_at(Some(second));
                }
            } else if self.is_over(&bench).await {
                break;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "{wrong:?}: not over: {}",
                bench.says(self.subject.name)
            );
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        let (writes, statements) = (operator.handle.writes(), operator.tap.said().len());
        // Long enough for every write that a false end would still bring about.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(
            self.is_over(&bench).await,
            "{wrong:?}: it did not last: {}",
            bench.says(self.subject.name)
        );
        if self.proof == Proof::RowsAfterReturn {
            bench.apply(super::TEST_DB);
            bench.settle(NAME).await;
            assert_eq!(login::rows(&bench.world).await.as_deref(), Ok(login::ROWS), "{wrong:?}");
        }
        let broken = bench.world.violations();
        assert!(broken.is_empty(), "{wrong:?}: {broken:#?}");
        assert!(!operator.ended(), "{wrong:?}: the operator ended by itself");
        End { portrait: portrait::of(&bench.world), writes, statements, restarts }
    }

    async fn is_over(&self, bench: &Bench) -> bool {
        (self.over)(bench)
            && match self.proof {
                Proof::State | Proof::RowsAfterReturn => true,
                Proof::Login => login::application(&bench.world).await.is_ok(),
                Proof::Rows => login::rows(&bench.world).await.as_deref() == Ok(login::ROWS),
                Proof::Nodes(count) => ensemble::holds_nodes(bench, count),
                Proof::Superuser => {
                    login::superuser(&bench.world).await.is_ok()
                        && login::rows(&bench.world).await.as_deref() == Ok(login::ROWS)
                }
            }
    }

    async fn begin(&self, bench: &Bench) {
        if self.before == Before::Nothing {
            return;
        }
        let operator = bench.operator();
        match self.before {
            Before::Nothing => {}
            Before::Ready => Self::bring_up(bench, 1).await,
            Before::Three => Self::bring_up(bench, 3).await,
            Before::Ensemble(count) => ensemble::bring_up(bench, count).await,
            Before::Failed => ensemble::fail_an_upgrade(bench).await,
        }
        operator.kill();
    }

    async fn bring_up(bench: &Bench, replicas: u32) {
        bench.apply(&super::TEST_DB.replace("replicas: 1", &format!("replicas: {replicas}")));
        bench.settle(NAME).await;
        login::write_rows(&bench.world).await;
    }

    fn arm(&self, bench: &Bench, operator: &Operator, wrong: Wrong) {
        match wrong {
            Wrong::Nothing => {}
            Wrong::Crash(crash) | Wrong::Pair(crash, _) => operator.handle.crash_at(Some(crash)),
            Wrong::LostReply(nth) => {
                let when = Match::writes().by(OPERATOR);
                let rule = Rule::new(when, Often::Nth(nth), Effect::LostReply);
                bench.world.cluster.with(|core| core.faults.add(rule));
            }
            Wrong::Sql(nth, mischief) => operator.tap.at(nth, mischief),
        }
    }
}
