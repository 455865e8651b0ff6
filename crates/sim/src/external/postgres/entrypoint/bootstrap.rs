//! The image's first start after `initdb`: the application's database and the scripts.
//!
//! Runs `*.sql` only; other scripts are said to be left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Entry, Failed};
use crate::external::postgres::parse;
use crate::external::postgres::run;
use crate::external::postgres::server::Server;
use crate::external::postgres::session::{Block, State};

impl Entry<'_> {
    /// The application's database and the scripts of `/docker-entrypoint-initdb.d`, once.
    pub(super) fn bootstrap(&mut self, server: &Arc<Server>) -> Result<(), Failed> {
        let superuser = self.superuser();
        let database = match self.variable("POSTGRES_DB") {
            "" => superuser.clone(),
            name => name.to_owned(),
        };
        if database != "postgres" {
            let sql = format!("CREATE DATABASE \"{}\"", database.replace('"', "\"\""));
            self.script(server, (&superuser, "postgres"), "-", &sql)?;
        }
        let folder = "/docker-entrypoint-initdb.d/";
        let scripts: Vec<(String, String)> = self
            .launch
            .files
            .iter()
            .filter(|(path, _)| path.starts_with(folder))
            .map(|(path, text)| (path.clone(), text.clone()))
            .collect();
        for (path, text) in scripts {
            if path.ends_with(".sql") {
                self.log
                    .push_str(&format!("/usr/local/bin/docker-entrypoint.sh: running {path}\n"));
                self.script(server, (&superuser, &database), &path, &text)?;
            } else {
                self.log.push_str(&format!(
                    "/usr/local/bin/docker-entrypoint.sh: ignoring {path} (the model runs *.sql only)\n"
                ));
            }
        }
        Ok(())
    }

    /// What `psql -v ON_ERROR_STOP=1 -f` does with a script.
    fn script(
        &mut self,
        server: &Arc<Server>,
        (user, database): (&str, &str),
        path: &str,
        text: &str,
    ) -> Result<(), Failed> {
        let mut state = State {
            server: server.clone(),
            user: user.to_owned(),
            database: database.to_owned(),
            pid: 2,
            startup: BTreeMap::new(),
            settings: BTreeMap::new(),
            local: BTreeMap::new(),
            temporary: BTreeMap::new(),
            block: Block::None,
            read_only: None,
            undo: Vec::new(),
            savepoints: Vec::new(),
        };
        let outcome = parse::statements(text).and_then(|parsed| {
            for one in &parsed {
                run::execute(&mut state, &one.statement, false)?;
                if state.block == Block::None {
                    run::commit(&mut state);
                }
            }
            Ok(())
        });
        if let Err(refusal) = outcome {
            run::rollback(&mut state);
            self.log.push_str(&format!("psql:{path}: ERROR:  {}\n", refusal.message));
            return Err(self.fail(3));
        }
        Ok(())
    }
}
