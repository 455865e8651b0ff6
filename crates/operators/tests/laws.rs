//! Laws: quoting survives every text, and `plan` is a total function of what it is given.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod check;

use check::World;
use operators::database::{dependencies, image, parameters, sql, valid};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Reads a quoted identifier back as PostgreSQL does; `None` if it ends early or late.
fn read_identifier(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c == '"' && chars.next() != Some('"') {
            return None;
        }
        out.push(c);
    }
    Some(out)
}

/// Reads a literal back, whatever `standard_conforming_strings` says.
fn read_literal(text: &str) -> Option<String> {
    let (escapes, rest) = match text.strip_prefix('E') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let inner = rest.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' if chars.next() != Some('\'') => return None,
            '\\' if !escapes => return None,
            '\\' => out.push(chars.next()?),
            _ => out.push(c),
        }
    }
    Some(out)
}

/// Reads a value of `postgresql.conf` back as the server's `GUC_scanstr` does.
fn read_setting(text: &str) -> Option<String> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\n' => return None,
            '\'' if chars.next() != Some('\'') => return None,
            '\\' => out.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }),
            _ => out.push(c),
        }
    }
    Some(out)
}

fn nasty() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z'\"\\\\;$\n\t\r=# é-]{0,20}",
        Just("'; DROP TABLE x; --".to_owned()),
        Just("\\'".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn identifiers_come_back(name in nasty()) {
        prop_assert_eq!(read_identifier(&sql::identifier(&name)), Some(name));
    }

    #[test]
    fn literals_come_back(text in nasty()) {
        prop_assert_eq!(read_literal(&sql::literal(&text)), Some(text));
    }

    #[test]
    fn settings_come_back_on_one_line(value in nasty()) {
        let quoted = parameters::quoted(&value);
        prop_assert!(!quoted.contains('\n'));
        prop_assert_eq!(read_setting(&quoted), Some(value));
    }

    /// Whatever the parsers are given, they answer.
    #[test]
    fn parsers_are_total(text in nasty(), other in nasty()) {
        let _ = image::refusal(&text);
        let _ = image::major_hint(&text);
        let _ = parameters::refusal(&text, &other);
        let _ = valid::identifier_refusal(&text, &[]);
        let _ = valid::name_refusal(&text);
        let _ = dependencies::permits(std::slice::from_ref(&text), &other);
        for (address, url) in [(Some(text.clone()), None), (None, Some(text.clone()))] {
            let raw = operators::database::api::ExternalDependency {
                name: "x".to_owned(), address, url, timeout_seconds: 5,
            };
            let _ = dependencies::parse(&raw);
        }
    }

    /// An accepted name is a name that PostgreSQL keeps whole and that ends where it should.
    #[test]
    fn accepted_identifiers_are_harmless(name in nasty()) {
        if valid::identifier_refusal(&name, &[]).is_none() {
            prop_assert!(name.len() <= 63 && !name.is_empty());
            prop_assert!(!name.contains(['"', '\'', ';', ' ', '\\', '$', '\n']));
        }
    }
}

/// The worlds after each pass of a bring-up; made once a process.
fn stages() -> &'static [World] {
    static STAGES: std::sync::LazyLock<Vec<World>> = std::sync::LazyLock::new(|| {
        let mut world = World::new();
        let mut stages = Vec::new();
        for _ in 0..12 {
            stages.push(world.clone());
            world.pass();
            world.roll_out();
        }
        stages
    });
    &STAGES
}

/// Damages an object somewhere.
#[derive(Clone, Debug)]
enum Damage {
    Remove,
    Set(Value),
}

fn damages() -> impl Strategy<Value = Vec<(usize, usize, Damage)>> {
    let value = prop_oneof![
        Just(Value::Null),
        Just(json!({})),
        Just(json!([])),
        Just(json!(-1)),
        Just(json!("")),
        Just(json!("2026-01-01T00:00:00Z")),
        Just(json!([{"type": "Ready", "status": "False"}])),
    ];
    let damage = prop_oneof![Just(Damage::Remove), value.prop_map(Damage::Set)];
    prop::collection::vec((0..64_usize, 0..512_usize, damage), 1..6)
}

/// Every path of an object, in order.
fn paths(prefix: &str, value: &Value, into: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            let escape = |k: &String| k.replace('~', "~0").replace('/', "~1");
            map.iter().map(|(k, v)| (escape(k), v)).collect()
        }
        Value::Array(list) => list.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in below {
        let path = format!("{prefix}/{key}");
        into.push(path.clone());
        paths(&path, value, into);
    }
}

fn spoil(value: &mut Value, place: usize, damage: &Damage) {
    let mut all = Vec::new();
    paths("", value, &mut all);
    let Some(path) = all.get(place % all.len().max(1)) else { return };
    if path.starts_with("/metadata/name") || path.starts_with("/metadata/uid") {
        return;
    }
    let (parent, key) = path.rsplit_once('/').unwrap();
    let Some(parent) = value.pointer_mut(parent) else { return };
    match (parent, damage) {
        (Value::Object(map), Damage::Remove) => {
            map.remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        (Value::Object(map), Damage::Set(new)) => {
            map.insert(key.replace("~1", "/").replace("~0", "~"), new.clone());
        }
        (Value::Array(list), _) => {
            list.clear();
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// Children damaged in any way never make `plan` panic.
    #[test]
    fn plan_is_total(damages in damages(), passes in 0..12_usize) {
        let mut world = stages()[passes].clone();
        let ids: Vec<_> = world.objects.keys().cloned().collect();
        for (which, place, damage) in &damages {
            if ids.is_empty() {
                break;
            }
            let id = &ids[which % ids.len()];
            let mut object = world.objects[id].clone();
            spoil(&mut object, *place, damage);
            if phased::Live::new(object.clone()).is_ok() {
                world.objects.insert(id.clone(), object);
            }
        }
        // The harness plans each state twice and compares; the lint runs on each.
        let plan = world.plan(&[]);
        prop_assert!(plan.asks.is_empty());
    }

    /// A status forged in any way never makes `plan` panic.
    #[test]
    fn plan_survives_any_status(damages in damages()) {
        let mut world = World::ready();
        for (_, place, damage) in &damages {
            let mut status = json!({"status": world.root["status"].clone()});
            spoil(&mut status, *place, damage);
            let mut root = world.root.clone();
            root["status"] = status["status"].clone();
            let parsed: Result<operators::database::api::Database, _> = serde_json::from_value(root.clone());
            if parsed.is_ok() {
                world.root = root;
            }
        }
        let plan = world.plan(&[]);
        prop_assert!(plan.asks.is_empty());
    }
}
