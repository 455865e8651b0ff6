//! An init container that is a shell script, as its container's program.
//!
//! Must not interpret anything; `shell` does.

use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};

use super::postgres::{Copying, Slow};
use super::{Outcome, Said, run};
use crate::builtin::after;
use crate::builtin::pods::program::{Exit, Launch, Program, Surroundings};
use crate::external::postgres::Backup;

/// Milliseconds that a script takes by itself.
const RUN_MILLIS: i64 = 100;

/// A script on its way.
pub(crate) struct Scripted {
    script: String,
    launch: Launch,
    memory: Vec<Said>,
    waits: Option<Waits>,
    ends: Option<(Timestamp, Exit)>,
    random: fastrand::Rng,
}

/// What the present command waits for.
enum Waits {
    Sleep(Timestamp),
    Copy(Box<Under>),
}

/// A copy under way.
struct Under {
    backup: Backup,
    copying: Copying,
    began: bool,
}

impl Scripted {
    /// Starts one; most end at once.
    pub(crate) fn start(script: &str, launch: &Launch, around: &mut Surroundings) -> Scripted {
        let mut scripted = Scripted {
            script: script.to_owned(),
            launch: launch.clone(),
            memory: Vec::new(),
            waits: None,
            ends: None,
            random: fastrand::Rng::with_seed(around.random),
        };
        scripted.go_on(after(launch.now, RUN_MILLIS), around);
        scripted
    }

    fn go_on(&mut self, now: Timestamp, around: &mut Surroundings) {
        match run(&self.script, &self.launch, around.volumes, &mut self.memory) {
            Outcome::Ended(exit) => self.ends = Some((now, exit)),
            Outcome::Waits(Slow::Sleep(time)) => {
                let time = SignedDuration::try_from(time).unwrap_or_default();
                self.waits = Some(Waits::Sleep(now.saturating_add(time).unwrap_or(now)));
            }
            Outcome::Waits(Slow::Copy(copying)) => self.copy(*copying, now, around),
        }
    }

    fn copy(&mut self, mut copying: Copying, now: Timestamp, around: &mut Surroundings) {
        let Some(reach) = around.network.reach() else {
            let text = "pg_basebackup: error: there is no network in this model\n";
            self.answer(Said::failed(1, text.into()), now, around);
            return;
        };
        copying.order.takes += std::time::Duration::from_millis(self.random.u64(0..1500));
        let backup = Backup::begin(copying.order.clone(), reach, around.network.waker());
        self.waits = Some(Waits::Copy(Box::new(Under { backup, copying, began: false })));
    }

    /// The present command has answered: the script goes on.
    fn answer(&mut self, said: Said, now: Timestamp, around: &mut Surroundings) {
        self.waits = None;
        self.memory.push(said);
        self.go_on(now, around);
    }

    /// What a copy puts onto the volume; its end, if it has ended.
    fn look(&mut self, around: &mut Surroundings) -> Option<Said> {
        let Some(Waits::Copy(under)) = &mut self.waits else { return None };
        let Under { backup, copying, began } = &mut **under;
        let Copying { order, to: (volume, path), recovery } = copying;
        let file = |name: &str| format!("{path}/{name}").trim_start_matches('/').to_owned();
        let (now_begun, done) = backup.progress(|one| (one.began, one.done.take()));
        if now_begun && !*began {
            *began = true;
            let data = if around.volumes.is_full(volume) { vec![] } else { vec!["PG_VERSION"] };
            for name in data.into_iter().chain(["backup_label"]) {
                around.volumes.write(volume, &file(name), "");
            }
        }
        let mut done = done?;
        if done.is_ok() && around.volumes.is_full(volume) {
            let folder = &order.folder;
            done = Err(format!(
                "pg_basebackup: error: could not write to file \"{folder}/base/5/16388\": No space \
                 left on device\npg_basebackup: removing data directory \"{folder}\"\n"
            ));
        }
        around.volumes.clear(volume, path);
        let mut data = match done {
            Ok(data) => *data,
            Err(words) => return Some(Said::failed(1, words)),
        };
        around.volumes.write(volume, &file("PG_VERSION"), &format!("{}\n", data.major));
        if *recovery {
            around.volumes.write(volume, &file("standby.signal"), "");
            data.follow(&order.from, order.slot.as_deref());
        }
        around.volumes.keep(volume, path, Arc::new(Mutex::new(data)));
        Some(Said::default())
    }
}

impl Program for Scripted {
    fn advance(&mut self, now: Timestamp, around: &mut Surroundings) {
        if let Some(Waits::Sleep(until)) = self.waits {
            if until <= now {
                self.answer(Said::default(), now, around);
            }
            return;
        }
        if let Some(said) = self.look(around) {
            self.answer(said, now, around);
        }
    }

    fn exit(&mut self, _now: Timestamp) -> Option<(Timestamp, Exit)> {
        self.ends.clone()
    }

    fn due(&mut self, _now: Timestamp) -> Option<Timestamp> {
        match &self.waits {
            Some(Waits::Sleep(until)) => Some(*until),
            _ => None,
        }
    }

    fn stop(&mut self, _around: &mut Surroundings) -> Exit {
        // A copy ends where it is: what it has written stays.
        self.waits = None;
        Exit { code: 143, message: self.log() }
    }

    fn log(&self) -> String {
        self.ends.as_ref().map(|(_, exit)| exit.message.clone()).unwrap_or_default()
    }
}
