//! PostgreSQL's settings: which exist in which version, what values they take, how they are shown.
//!
//! The table `settings.tsv` holds name, type, unit, lowest, highest, choices, context and boot
//! value as a PostgreSQL 15 reports them in `pg_settings`. Must not know where values come from.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::refusal::Refusal;

/// What values a setting takes.
#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Bool,
    Integer { unit: &'static str, low: i64, high: i64 },
    Real { low: f64, high: f64 },
    Choice(Vec<&'static str>),
    Text,
}

/// A setting.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) context: &'static str,
    pub(super) boot: &'static str,
    kind: Kind,
}

static TABLE: LazyLock<BTreeMap<String, Setting>> = LazyLock::new(|| {
    let lines = include_str!("settings.tsv").lines().chain(NEWER.iter().map(|entry| entry.1));
    lines.filter_map(row).map(|setting| (setting.name.to_lowercase(), setting)).collect()
});

/// Settings that came after version 15, with the version that brought them.
const NEWER: [(u32, &str); 10] = [
    (16, "scram_iterations\tinteger\t\t1\t2147483647\t\tuser\t4096"),
    (16, "reserved_connections\tinteger\t\t0\t262143\t\tpostmaster\t0"),
    (16, "vacuum_buffer_usage_limit\tinteger\tkB\t0\t16777216\t\tuser\t2048"),
    (17, "transaction_timeout\tinteger\tms\t0\t2147483647\t\tuser\t0"),
    (17, "summarize_wal\tbool\t\t\t\t\tsighup\toff"),
    (17, "allow_alter_system\tbool\t\t\t\t\tsighup\ton"),
    (17, "event_triggers\tbool\t\t\t\t\tsuperuser\ton"),
    (17, "sync_replication_slots\tbool\t\t\t\t\tsighup\toff"),
    (18, "io_method\tenum\t\t\t\tsync,worker,io_uring\tpostmaster\tworker"),
    (18, "io_workers\tinteger\t\t1\t32\t\tsighup\t3"),
];

/// Settings of the table that went, with the first version without them.
const GONE: [(u32, &str); 7] = [
    (16, "vacuum_defer_cleanup_age"),
    (16, "promote_trigger_file"),
    (16, "lc_collate"),
    (16, "lc_ctype"),
    (16, "force_parallel_mode"),
    (17, "old_snapshot_threshold"),
    (17, "db_user_namespace"),
];

fn row(line: &'static str) -> Option<Setting> {
    let mut cells = line.split('\t');
    let mut next = || cells.next().unwrap_or("");
    let (name, kind, unit, low, high, choices, context, boot) =
        (next(), next(), next(), next(), next(), next(), next(), next());
    let kind = match kind {
        "bool" => Kind::Bool,
        "integer" => Kind::Integer {
            unit,
            low: low.parse().unwrap_or(i64::MIN),
            high: high.parse().unwrap_or(i64::MAX),
        },
        "real" => Kind::Real {
            low: low.parse().unwrap_or(f64::MIN),
            high: high.parse().unwrap_or(f64::MAX),
        },
        "enum" => Kind::Choice(choices.split(',').collect()),
        _ => Kind::Text,
    };
    (!name.is_empty()).then_some(Setting { name, context, boot, kind })
}

/// The setting of a version, by its name in any case.
pub(super) fn find(name: &str, major: u32) -> Option<&'static Setting> {
    let name = name.to_lowercase();
    let newer = NEWER
        .iter()
        .any(|(since, row)| *since > major && row.split('\t').next() == Some(name.as_str()));
    let gone = GONE.iter().any(|(since, gone)| *since <= major && *gone == name);
    if newer || gone { None } else { TABLE.get(&name) }
}

/// All settings of a version.
pub(super) fn all(major: u32) -> impl Iterator<Item = &'static Setting> {
    TABLE.keys().filter_map(move |name| find(name, major))
}

/// Whether a name is a custom setting's: words with at least one dot.
pub(super) fn is_custom(name: &str) -> bool {
    let word = |part: &str| {
        part.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    };
    name.contains('.') && name.split('.').all(word)
}

/// The error of a name that no setting has.
pub(super) fn unknown(name: &str) -> Refusal {
    Refusal::new("42704", &format!("unrecognized configuration parameter \"{name}\""))
}

impl Setting {
    /// The value as the server keeps it: numbers in the base unit, choices in lower case.
    ///
    /// # Errors
    /// The server's words for a value that it does not take.
    pub(super) fn parse(&self, text: &str) -> Result<String, Refusal> {
        let name = self.name;
        let invalid = || {
            Refusal::new("22023", &format!("invalid value for parameter \"{name}\": \"{text}\""))
        };
        match &self.kind {
            Kind::Text => Ok(text.to_owned()),
            Kind::Bool => match boolean(text) {
                Some(true) => Ok("on".into()),
                Some(false) => Ok("off".into()),
                None => Err(Refusal::new(
                    "22023",
                    &format!("parameter \"{name}\" requires a Boolean value"),
                )),
            },
            Kind::Choice(choices) => {
                let lower = text.to_lowercase();
                let known = choices.contains(&lower.as_str());
                // Most choices also read as booleans: `on`, `true`, `yes`.
                let spelt = boolean(text).map(|on| if on { "on" } else { "off" });
                let spelt = spelt.filter(|word| choices.contains(word));
                match (known, spelt) {
                    (true, _) => Ok(lower),
                    (false, Some(word)) => Ok(word.to_owned()),
                    (false, None) => {
                        let hint = format!("Available values: {}.", choices.join(", "));
                        Err(invalid().hint(&hint))
                    }
                }
            }
            Kind::Integer { unit, low, high } => {
                let (number, suffix) = split(text).ok_or_else(invalid)?;
                let factor = factor(suffix, unit).ok_or_else(|| invalid().hint(unit_hint(unit)))?;
                let value = (number * factor).round();
                if value.abs() > f64::from(i32::MAX) {
                    return Err(invalid().hint("Value exceeds integer range."));
                }
                #[allow(clippy::cast_possible_truncation, reason = "bounded just above")]
                let value = value as i64;
                if value < *low || value > *high {
                    let shown = match *unit {
                        "" => String::new(),
                        unit => format!(" {unit}"),
                    };
                    return Err(Refusal::new(
                        "22023",
                        &format!(
                            "{value}{shown} is outside the valid range for parameter \"{name}\" \
                             ({low} .. {high})"
                        ),
                    ));
                }
                Ok(value.to_string())
            }
            Kind::Real { low, high } => {
                let value: f64 = text.trim().parse().map_err(|_| invalid())?;
                if value < *low || value > *high {
                    return Err(Refusal::new(
                        "22023",
                        &format!(
                            "{value} is outside the valid range for parameter \"{name}\" \
                             ({low} .. {high})"
                        ),
                    ));
                }
                Ok(value.to_string())
            }
        }
    }

    /// The kept value as `SHOW` prints it: with the largest unit that fits.
    pub(super) fn shown(&self, kept: &str) -> String {
        let Kind::Integer { unit, .. } = &self.kind else { return kept.to_owned() };
        let Ok(value) = kept.parse::<i64>() else { return kept.to_owned() };
        if unit.is_empty() || value <= 0 {
            return kept.to_owned();
        }
        let (base, units) = scale(unit);
        let amount = value * base;
        let largest = units.iter().rev().find(|(_, size)| amount % size == 0);
        match largest {
            Some((name, size)) => format!("{}{name}", amount / size),
            None => kept.to_owned(),
        }
    }
}

/// A boolean as PostgreSQL reads it: unique prefixes of the words count.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let text = text.trim().to_lowercase();
    let prefix = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    if text == "1" || prefix("true", 1) || prefix("yes", 1) || text == "on" {
        return Some(true);
    }
    let off = text == "0" || prefix("false", 1) || prefix("no", 1) || prefix("off", 2);
    off.then_some(false)
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'));
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    Some((number.parse().ok()?, suffix.trim()))
}

/// Bytes or microseconds of one base unit, and the units to show in.
fn scale(unit: &str) -> (i64, &'static [(&'static str, i64)]) {
    const MEMORY: [(&str, i64); 5] =
        [("B", 1), ("kB", 1 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("TB", 1 << 40)];
    const TIME: [(&str, i64); 6] = [
        ("us", 1),
        ("ms", 1000),
        ("s", 1_000_000),
        ("min", 60_000_000),
        ("h", 3_600_000_000),
        ("d", 86_400_000_000),
    ];
    match unit {
        "B" => (1, &MEMORY),
        "kB" => (1 << 10, &MEMORY),
        "8kB" => (8 << 10, &MEMORY),
        "MB" => (1 << 20, &MEMORY),
        "ms" => (1000, &TIME),
        "s" => (1_000_000, &TIME),
        _ => (60_000_000, &TIME),
    }
}

fn factor(suffix: &str, unit: &str) -> Option<f64> {
    if suffix.is_empty() {
        return Some(1.0);
    }
    if unit.is_empty() {
        return None;
    }
    let (base, units) = scale(unit);
    let size = units.iter().find(|(name, _)| *name == suffix)?.1;
    #[allow(clippy::cast_precision_loss, reason = "units are small round numbers")]
    Some(size as f64 / base as f64)
}

fn unit_hint(unit: &str) -> &'static str {
    match unit {
        "" => "",
        "B" | "kB" | "8kB" | "MB" => {
            "Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."
        }
        _ => "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, text: &str) -> String {
        let setting = find(name, 15).expect("a known setting");
        match setting.parse(text) {
            Ok(kept) => setting.shown(&kept),
            Err(refusal) => refusal.message,
        }
    }

    #[test]
    fn values_are_read_and_shown_like_the_server() {
        let cases = [
            ("work_mem", "4096", "4MB"),
            ("work_mem", "1GB", "1GB"),
            ("shared_buffers", "16384", "128MB"),
            ("statement_timeout", "90s", "90s"),
            ("statement_timeout", "5000", "5s"),
            ("checkpoint_timeout", "300", "5min"),
            ("fsync", "tru", "on"),
            ("wal_level", "LOGICAL", "logical"),
            ("max_connections", "abc", "invalid value for parameter \"max_connections\": \"abc\""),
            (
                "max_connections",
                "0",
                "0 is outside the valid range for parameter \"max_connections\" (1 .. 262143)",
            ),
            ("fsync", "perhaps", "parameter \"fsync\" requires a Boolean value"),
            ("wal_level", "loud", "invalid value for parameter \"wal_level\": \"loud\""),
        ];
        for (name, text, expected) in cases {
            assert_eq!(said(name, text), expected, "{name} = {text}");
        }
    }

    #[test]
    fn versions_differ() {
        assert!(find("scram_iterations", 15).is_none());
        assert!(find("scram_iterations", 16).is_some());
        assert!(find("promote_trigger_file", 15).is_some());
        assert!(find("promote_trigger_file", 17).is_none());
    }
}
