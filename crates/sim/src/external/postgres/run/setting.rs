//! `SHOW`, `SET`, `ALTER SYSTEM`.
//!
//! Must not know what settings do.

use super::{Done, Ran};
use crate::external::postgres::data::Data;
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::session::{Block, State};
use crate::external::postgres::settings;
use crate::external::postgres::value::{Relation, Value};

pub(in crate::external::postgres) fn show(state: &State, data: &Data, name: &str) -> Ran {
    if name == "all" {
        let mut relation = Relation::new(&["name", "setting", "description"]);
        for setting in settings::all(state.server.version.major) {
            let value = state.show(data, setting.name)?;
            let row = vec![Value::text(setting.name), Value::Text(value), Value::text("")];
            relation.rows.push(row);
        }
        return Ok(Done { rows: Some(relation), ..Done::tag("SHOW") });
    }
    let title = settings::find(name, state.server.version.major).map_or(name, |one| one.name);
    let mut relation = Relation::new(&[title]);
    relation.rows.push(vec![Value::Text(state.show(data, name)?)]);
    Ok(Done { rows: Some(relation), ..Done::tag("SHOW") })
}

/// The kept name and value of a setting that a session may set.
pub(in crate::external::postgres) fn check_setting(
    state: &State,
    name: &str,
    value: &str,
) -> Result<(String, String), Refusal> {
    match settings::find(name, state.server.version.major) {
        Some(setting) => {
            let cannot = match setting.context {
                "internal" => Some(format!("parameter \"{}\" cannot be changed", setting.name)),
                "postmaster" => Some(format!(
                    "parameter \"{}\" cannot be changed without restarting the server",
                    setting.name
                )),
                "sighup" => Some(format!("parameter \"{}\" cannot be changed now", setting.name)),
                _ => None,
            };
            if let Some(message) = cannot.filter(|_| setting.name != "transaction_read_only") {
                return Err(Refusal::new("55P02", &message));
            }
            Ok((setting.name.to_owned(), setting.parse(value)?))
        }
        None if settings::is_custom(name) => Ok((name.to_lowercase(), value.to_owned())),
        None => Err(settings::unknown(name)),
    }
}

pub(in crate::external::postgres) fn set(
    state: &mut State,
    local: bool,
    name: &str,
    value: Option<&str>,
) -> Ran {
    let mut done = Done::tag("SET");
    let Some(value) = value else {
        state.settings.remove(&name.to_lowercase());
        state.local.remove(&name.to_lowercase());
        return Ok(done);
    };
    let (name, kept) = check_setting(state, name, value)?;
    if local && state.block == Block::None {
        let message = "SET LOCAL can only be used in transaction blocks";
        done.warning = Some(Refusal::new("25P01", message));
    }
    let layer = if local { &mut state.local } else { &mut state.settings };
    layer.insert(name, kept);
    Ok(done)
}

pub(in crate::external::postgres) fn alter_system(
    state: &State,
    data: &mut Data,
    name: &str,
    value: Option<&str>,
) -> Ran {
    if !data.is_superuser(&state.user) {
        let message = format!("permission denied to set parameter \"{name}\"");
        return Err(Refusal::new("42501", &message));
    }
    let Some(setting) = settings::find(name, state.server.version.major) else {
        return Err(settings::unknown(name));
    };
    match value {
        Some(value) => {
            let kept = setting.parse(value)?;
            data.automatic.insert(setting.name.to_owned(), kept);
        }
        None => drop(data.automatic.remove(setting.name)),
    }
    Ok(Done::tag("ALTER SYSTEM"))
}
