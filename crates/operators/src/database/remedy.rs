//! What the superuser puts right inside the server: role, password, database, owner.
//!
//! Each action is idempotent or decided anew on what the next look finds, so that a crash or a lost
//! reply between any two costs nothing (fault catalogue PG-16). No statement holds a password.

use phased::Step;
use phased::fact::SqlText;
use phased::step::{Action, Request};

use super::secrets;
use super::sql;
use super::verify::{Inspection, Target};

/// Gate of every action: the StatefulSet is complete for the generation that was written, and the
/// server proved by its identity that it is this Database's.
pub const GATE: &str = "ServerReady";

/// The actions that mend what `lacking` (an SQLSTATE, or empty) and the inspection tell.
pub fn actions(target: &Target, found: &Inspection, lacking: &str) -> Vec<Action> {
    let mut all = Vec::new();
    let mut act = |name: &'static str, why: String, statements: Vec<SqlText>| {
        all.push(Action {
            name,
            gate: GATE,
            request: Request::Sql(target.change(statements)),
            why,
        });
    };
    let (database, username) = (&target.database, &target.username);
    let password = || secrets::credentials_password(&target.names);
    if !found.bootstrapped {
        let why = "the bootstrap did not run to its end".to_owned();
        act("finish-bootstrap", why, sql::bootstrap().into_iter().map(SqlText::plain).collect());
    }
    match found.role {
        None => {
            let why = format!("role {username:?} does not exist");
            act("create-role", why, vec![sql::create_role(username, password())]);
        }
        Some(role) if lacking == "28P01" || !role.may_log_in || role.shut_out => {
            let why = if role.shut_out {
                format!("role {username:?} has a connection limit of 0")
            } else {
                format!("role {username:?} does not log in with the Secret's password")
            };
            act("set-password", why, vec![sql::set_password(username, password())]);
        }
        Some(_) => {}
    }
    match &found.owner {
        None => {
            let why = format!("database {database:?} does not exist");
            act(
                "create-database",
                why,
                vec![SqlText::plain(sql::create_database(database, username))],
            );
        }
        Some(owner) if owner != username => {
            let why = format!("database {database:?} belongs to {owner:?}");
            act("set-owner", why, vec![SqlText::plain(sql::set_owner(database, username))]);
        }
        Some(_) if lacking == "42501" => {
            let why = format!("role {username:?} may not connect to database {database:?}");
            act("grant-connect", why, vec![SqlText::plain(sql::grant_connect(database, username))]);
        }
        Some(_) => {}
    }
    all
}

/// The actions as steps.
pub fn steps(actions: Vec<Action>) -> Vec<Step> {
    actions.into_iter().map(Step::Act).collect()
}
