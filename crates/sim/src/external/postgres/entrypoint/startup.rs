//! Between the files and the server: what lies in the data folder and beside it, and how recovery begins.
//!
//! Must not run statements.

use std::collections::BTreeMap;

use super::{Entry, Failed};
use crate::builtin::pods::program::Surroundings;
use crate::external::postgres::conf;
use crate::external::postgres::server::Server;

impl Entry<'_> {
    /// Whether a file is in the data folder.
    pub(super) fn file(&self, around: &Surroundings, name: &str) -> bool {
        self.place.as_ref().is_some_and(|(volume, path)| {
            let path = format!("{path}/{name}");
            around.volumes.file(volume, path.trim_start_matches('/')).is_some()
        })
    }

    /// A data folder that looks whole to the image and is not: a copy that did not end.
    pub(super) fn headless(&mut self) -> Failed {
        let folder = &self.folder;
        self.log = format!(
            "\nPostgreSQL Database directory appears to contain a database; Skipping \
             initialization\n\npostgres: could not find the database system\nExpected to find it in \
             the directory \"{folder}\",\nbut could not open file \"{folder}/global/pg_control\": No \
             such file or directory\n"
        );
        self.fail(2)
    }

    /// The startup process: recovery as a standby, or the end of it.
    pub(super) fn begin(&mut self, server: &Server, standby: bool) -> Result<(), Failed> {
        let own = server.needs();
        let needs = {
            let mut data = server.data();
            data.follows = standby;
            data.slots.values_mut().for_each(|slot| slot.active = None);
            if !standby {
                data.wal.write(0xA8, self.launch.now);
                data.needs.clone_from(&own);
            }
            data.needs.clone()
        };
        if !standby {
            self.say("LOG", "database system is ready to accept connections");
            return Ok(());
        }
        self.say("LOG", "entering standby mode");
        let Some(lower) = server.lower(&needs) else {
            server.begin_following();
            self.say("LOG", "database system is ready to accept read-only connections");
            return Ok(());
        };
        let hint = "You can restart the server after making the necessary configuration changes.";
        self.say("FATAL", "recovery aborted because of insufficient parameter settings");
        for (level, text) in [
            ("DETAIL", lower.as_str()),
            ("HINT", hint),
            ("LOG", "startup process (PID 28) exited with exit code 1"),
            ("LOG", "terminating any other active server processes"),
            ("LOG", "shutting down due to startup process failure"),
            ("LOG", "database system is shut down"),
        ] {
            self.say(level, text);
        }
        Err(self.fail(1))
    }

    /// All mounted files by absolute path, and those that nobody but their owner may read.
    pub(super) fn files(
        &self,
        around: &Surroundings,
    ) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
        let (mut files, mut private) = (self.launch.files.clone(), BTreeMap::new());
        for (mount, volume) in &self.launch.mounts {
            for (path, text) in around.volumes.all(volume) {
                let absolute = format!("{mount}/{path}");
                if around.volumes.is_private(volume, path) {
                    private.insert(absolute.clone(), text.to_owned());
                }
                files.insert(absolute, text.to_owned());
            }
        }
        (files, private)
    }

    /// The host rules, from the file that the settings name.
    pub(super) fn rules(
        &mut self,
        files: &BTreeMap<String, String>,
        all: &BTreeMap<String, String>,
    ) -> Result<Vec<conf::Rule>, Failed> {
        let rules_path = all.get("hba_file").cloned().unwrap_or_default();
        let Some(text) = files.get(&rules_path) else {
            let message =
                format!("could not open file \"{rules_path}\": No such file or directory");
            self.say("LOG", &message);
            self.say("FATAL", &format!("could not load {rules_path}"));
            return Err(self.fail(1));
        };
        conf::host_rules(&rules_path, text).map_err(|complaints| self.complain(&complaints))
    }
}
