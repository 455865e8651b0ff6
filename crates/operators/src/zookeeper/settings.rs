//! Settings of `zoo.cfg` with every default filled in, in the order of the file.
//!
//! Must not render the file; [`super::config`] does.

use super::options::Config;
use crate::parts::refusal::Refusal;

/// Settings in force: names as ZooKeeper spells them, and their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// In the order of the file.
    pub tuned: Vec<(&'static str, String)>,
    /// Settings that the operator does not know, by name.
    pub additional: Vec<(String, String)>,
}

impl Settings {
    /// The value of a setting that the operator knows.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.tuned.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

/// Numbers that only a fixed default knows.
const TICK: i32 = 2000;

/// Fills in the defaults.
pub fn effective(config: &Config) -> Settings {
    let tick = config.tick_time.unwrap_or(TICK);
    let (shortest, longest) = timeouts(config);
    let number =
        |name, value: Option<i32>, default: i32| (name, value.unwrap_or(default).to_string());
    let tuned = vec![
        number("initLimit", config.init_limit, 10),
        number("syncLimit", config.sync_limit, 2),
        number("tickTime", Some(tick), TICK),
        number("globalOutstandingLimit", config.global_outstanding_limit, 1000),
        number("preAllocSize", config.pre_alloc_size, 65536),
        number("snapCount", config.snap_count, 10000),
        number("commitLogCount", config.commit_log_count, 500),
        number("snapSizeLimitInKb", config.snap_size_limit_in_kb, 4_194_304),
        number("maxCnxns", config.max_cnxns, 0),
        number("maxClientCnxns", config.max_client_cnxns, 60),
        ("minSessionTimeout", shortest.to_string()),
        ("maxSessionTimeout", longest.to_string()),
        number("autopurge.snapRetainCount", config.auto_purge_snap_retain_count, 3),
        number("autopurge.purgeInterval", config.auto_purge_purge_interval, 1),
        ("quorumListenOnAllIPs", config.quorum_listen_on_all_ips.unwrap_or(false).to_string()),
    ];
    let additional = config.additional_config.clone().into_iter().collect();
    Settings { tuned, additional }
}

/// Shortest and longest session time-out, in milliseconds.
fn timeouts(config: &Config) -> (i64, i64) {
    let tick = i64::from(config.tick_time.unwrap_or(TICK));
    let shortest = config.min_session_timeout.map_or(2 * tick, i64::from);
    let longest = config.max_session_timeout.map_or(20 * tick, i64::from);
    (shortest, longest)
}

/// Settings that a server cannot run with (fault catalogue ZK-13).
pub fn refusals(config: &Config) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let positive = [
        ("initLimit", config.init_limit, 1),
        ("tickTime", config.tick_time, 1),
        ("syncLimit", config.sync_limit, 1),
        ("globalOutstandingLimit", config.global_outstanding_limit, 1),
        ("preAllocSize", config.pre_alloc_size, 1),
        ("snapCount", config.snap_count, 1),
        ("commitLogCount", config.commit_log_count, 1),
        ("snapSizeLimitInKb", config.snap_size_limit_in_kb, 1),
        ("maxCnxns", config.max_cnxns, 0),
        ("maxClientCnxns", config.max_client_cnxns, 1),
        ("minSessionTimeout", config.min_session_timeout, 1),
        ("maxSessionTimeout", config.max_session_timeout, 1),
        ("autoPurgeSnapRetainCount", config.auto_purge_snap_retain_count, 1),
        ("autoPurgePurgeInterval", config.auto_purge_purge_interval, 1),
    ];
    for (name, value, least) in positive {
        if value.is_some_and(|value| value < least) {
            let message = format!("must be at least {least}; leave it out for the default");
            refusals.push(Refusal::new(format!("spec.config.{name}"), message));
        }
    }
    let (shortest, longest) = timeouts(config);
    if shortest > longest {
        let message = format!(
            "{shortest} is above maxSessionTimeout, {longest}; absent ones are 2 and 20 times tickTime"
        );
        refusals.push(Refusal::new("spec.config.minSessionTimeout", message));
    }
    for (name, value) in &config.additional_config {
        let broken = |text: &str| text.chars().any(|c| c.is_control());
        let bad_name = name.is_empty() || name.contains(['=', ':', '#', '!', ' ']) || broken(name);
        if bad_name || broken(value) {
            let path = format!("spec.config.additionalConfig[{name:?}]");
            let message = "name and value stand in one line, name=value; take line ends, blanks and \
                           signs of the file's own out of them";
            refusals.push(Refusal::new(path, message));
        }
    }
    refusals
}
