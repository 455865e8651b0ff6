//! Functions and operators that queries call.
//!
//! A function that is not here is refused in PostgreSQL's words, so a test notices. Must not
//! change anything.

mod replication;

use super::ast::Name;
use super::evaluate::{Effect, Scope};
use super::refusal::Refusal;
use super::value::{Relation, Value};

type Answer = Result<Value, Refusal>;

/// A function in an expression.
pub(super) fn call(scope: &Scope, name: &Name, arguments: &[Value]) -> Answer {
    if name.schema.as_deref().is_some_and(|schema| schema != "pg_catalog") {
        return Err(missing(name, arguments));
    }
    if let Some(answer) = replication::call(scope, name, arguments) {
        return answer;
    }
    let text = |index: usize| arguments.get(index).and_then(Value::shown).unwrap_or_default();
    let state = scope.state;
    let effect = |effect: Effect, answer: Value| {
        scope.effects.borrow_mut().push(effect);
        Ok(answer)
    };
    match (name.name.as_str(), arguments.len()) {
        ("pg_database_collation_actual_version" | "shobj_description" | "pg_get_userbyid", _) => {
            of_catalog(scope, name, arguments)
        }
        ("version", 0) => Ok(Value::Text(state.server.version.long())),
        ("current_setting", 1) => state.show(scope.data, &text(0)).map(Value::Text),
        ("current_setting", 2) => match state.show(scope.data, &text(0)) {
            Ok(value) => Ok(Value::Text(value)),
            Err(_) if arguments[1].truth() == Some(true) => Ok(Value::Null),
            Err(refusal) => Err(refusal),
        },
        ("set_config", 3) => {
            let (name, value) = (text(0), text(1));
            let local = arguments[2].truth() == Some(true);
            let answer = Value::Text(value.clone());
            effect(Effect::Set { name, value, local }, answer)
        }
        ("current_database" | "current_catalog", 0) => Ok(Value::text(&state.database)),
        ("current_user" | "session_user" | "current_role" | "user", 0) => {
            Ok(Value::text(&state.user))
        }
        ("pg_backend_pid", 0) => Ok(Value::Integer(state.pid.into())),
        ("current_schema", 0) => Ok(Value::text("public")),
        ("now" | "current_timestamp" | "clock_timestamp" | "pg_postmaster_start_time", 0) => {
            let at = match name.name.as_str() {
                "pg_postmaster_start_time" => state.server.started,
                _ => state.server.now(),
            };
            Ok(Value::Text(stamp(at)))
        }
        ("obj_description", 1 | 2) => Ok(Value::Null),
        ("pg_encoding_to_char", 1) => Ok(Value::text("UTF8")),
        ("pg_database_size", 1) => Ok(Value::Integer(7_500_000)),
        ("pg_size_pretty", 1) => Ok(Value::Text(format!("{} bytes", text(0)))),
        ("pg_reload_conf", 0) => effect(Effect::Reload, Value::Bool(true)),
        ("pg_sleep", 1) => {
            let seconds = arguments[0].number().unwrap_or(0.0);
            effect(Effect::Sleep(seconds), Value::text(""))
        }
        ("has_database_privilege", 2 | 3) => database_privilege(scope, arguments),
        ("to_regclass", 1) => {
            let name = text(0);
            let bare = name.rsplit('.').next().unwrap_or("").to_owned();
            let wanted = Name { schema: None, name: bare.clone() };
            let found = super::catalog::relation(scope, &wanted).is_ok();
            Ok(if found { Value::Text(bare) } else { Value::Null })
        }
        _ => lenient(name, arguments),
    }
}

/// Functions that take NULL for a value among others.
fn lenient(name: &Name, arguments: &[Value]) -> Answer {
    match (name.name.as_str(), arguments.len()) {
        ("coalesce", _) => {
            Ok(arguments.iter().find(|one| !one.is_null()).cloned().unwrap_or(Value::Null))
        }
        ("concat", _) => {
            Ok(Value::Text(arguments.iter().filter_map(Value::shown).collect::<String>()))
        }
        ("nullif", 2) => {
            let same = !arguments[0].is_null() && arguments[0].order(&arguments[1]).is_eq();
            Ok(if same { Value::Null } else { arguments[0].clone() })
        }
        _ => strict(name, arguments),
    }
}

/// Functions that look an object of the catalog up.
fn of_catalog(scope: &Scope, name: &Name, arguments: &[Value]) -> Answer {
    let text = |index: usize| arguments.get(index).and_then(Value::shown).unwrap_or_default();
    match (name.name.as_str(), arguments.len()) {
        ("pg_get_userbyid", 1) => {
            let oid = text(0);
            let role = scope.data.roles.iter().find(|(_, role)| role.oid.to_string() == oid);
            let unknown = || format!("unknown (OID={oid})");
            Ok(Value::Text(role.map_or_else(unknown, |(name, _)| name.clone())))
        }
        ("shobj_description", 2) => {
            let database = by_oid(scope, &text(0));
            Ok(Value::optional(database.and_then(|one| one.1.comment.as_deref())))
        }
        ("pg_database_collation_actual_version", 1) => {
            let recorded = by_oid(scope, &text(0)).map(|one| one.1.collation_version.is_some());
            Ok(match recorded {
                Some(true) => Value::Text(scope.state.server.collation_version()),
                _ => Value::Null,
            })
        }
        _ => Err(missing(name, arguments)),
    }
}

/// Functions that know nothing but their arguments, and answer NULL to NULL.
fn strict(name: &Name, arguments: &[Value]) -> Answer {
    if arguments.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let text = |index: usize| arguments.get(index).and_then(Value::shown).unwrap_or_default();
    match (name.name.as_str(), arguments.len()) {
        ("length" | "char_length", 1) => {
            Ok(Value::Integer(i64::try_from(text(0).chars().count()).unwrap_or(0)))
        }
        ("octet_length", 1) => Ok(Value::Integer(i64::try_from(text(0).len()).unwrap_or(0))),
        ("lower", 1) => Ok(Value::Text(text(0).to_lowercase())),
        ("upper", 1) => Ok(Value::Text(text(0).to_uppercase())),
        ("split_part", 3) => {
            let index = arguments[2].number().unwrap_or(1.0) as usize;
            let part = text(0).split(&text(1)).nth(index.saturating_sub(1)).map(str::to_owned);
            Ok(Value::Text(part.unwrap_or_default()))
        }
        ("quote_ident", 1) => {
            let plain =
                text(0).chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            let quoted = || format!("\"{}\"", text(0).replace('"', "\"\""));
            Ok(Value::Text(if plain { text(0) } else { quoted() }))
        }
        ("quote_literal", 1) => Ok(Value::Text(format!("'{}'", text(0).replace('\'', "''")))),
        _ => Err(missing(name, arguments)),
    }
}

pub(super) fn stamp(at: jiff::Timestamp) -> String {
    let text = format!("{at:.6}").replace('T', " ");
    format!("{}+00", text.trim_end_matches('Z'))
}

fn by_oid<'a>(scope: &'a Scope, oid: &str) -> Option<(&'a String, &'a super::data::Database)> {
    scope.data.databases.iter().find(|(_, database)| database.oid.to_string() == oid)
}

fn database_privilege(scope: &Scope, arguments: &[Value]) -> Answer {
    let shown: Vec<String> = arguments.iter().filter_map(Value::shown).collect();
    let [user @ .., database, privilege] = shown.as_slice() else { return Ok(Value::Null) };
    let user = user.first().unwrap_or(&scope.state.user);
    let letter = match privilege.to_lowercase().as_str() {
        "connect" => 'c',
        "temp" | "temporary" => 'T',
        _ => 'C',
    };
    match scope.data.databases.get(database) {
        Some(found) => Ok(Value::Bool(scope.data.may(user, found, letter))),
        None => Err(Refusal::new("3D000", &format!("database \"{database}\" does not exist"))),
    }
}

fn missing(name: &Name, arguments: &[Value]) -> Refusal {
    let kinds: Vec<&str> = arguments
        .iter()
        .map(|one| match one {
            Value::Null | Value::Text(_) => "unknown",
            Value::Bool(_) => "boolean",
            Value::Integer(_) => "integer",
            Value::Decimal(_) => "numeric",
            Value::Position(_) => "pg_lsn",
        })
        .collect();
    let full = match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    };
    let message = format!("function {full}({}) does not exist", kinds.join(", "));
    Refusal::new("42883", &message).hint(
        "No function matches the given name and argument types. You might need to add explicit \
         type casts.",
    )
}

/// A function in `FROM`.
pub(super) fn table(scope: &Scope, name: &Name, arguments: &[Value]) -> Result<Relation, Refusal> {
    if let Some(found) = replication::table(scope, name, arguments) {
        return found;
    }
    match (name.name.as_str(), arguments.len()) {
        ("pg_control_system", 0) => {
            let columns = [
                "pg_control_version",
                "catalog_version_no",
                "system_identifier",
                "pg_control_last_modified",
            ];
            let mut relation = Relation::new(&columns);
            let identifier = i64::try_from(scope.data.identifier).unwrap_or(i64::MAX);
            relation.rows.push(vec![
                Value::Integer(1300),
                Value::Integer(202_209_061),
                Value::Integer(identifier),
                Value::Text(stamp(scope.state.server.started)),
            ]);
            Ok(relation)
        }
        ("generate_series", 2) => {
            let mut relation = Relation::new(&["generate_series"]);
            let bound = |value: &Value| value.number().unwrap_or(0.0) as i64;
            relation.rows = (bound(&arguments[0])..=bound(&arguments[1]))
                .map(|number| vec![Value::Integer(number)])
                .collect();
            Ok(relation)
        }
        _ => {
            let value = call(scope, name, arguments)?;
            let mut relation = Relation::new(&[&name.name]);
            relation.rows.push(vec![value]);
            Ok(relation)
        }
    }
}

/// An aggregate over values that are not NULL.
pub(super) fn aggregate(name: &str, values: &[Value], separator: Option<&str>) -> Value {
    let texts = || values.iter().filter_map(Value::shown).collect::<Vec<_>>();
    match name {
        "count" => Value::Integer(i64::try_from(values.len()).unwrap_or(0)),
        "max" => values.iter().max_by(|a, b| a.order(b)).cloned().unwrap_or(Value::Null),
        "min" => values.iter().min_by(|a, b| a.order(b)).cloned().unwrap_or(Value::Null),
        _ if values.is_empty() => Value::Null,
        "sum" => {
            let sum: f64 = values.iter().filter_map(Value::number).sum();
            Value::Decimal(sum.to_string())
        }
        "bool_and" => Value::Bool(values.iter().all(|one| one.truth() == Some(true))),
        "bool_or" => Value::Bool(values.iter().any(|one| one.truth() == Some(true))),
        "string_agg" => Value::Text(texts().join(separator.unwrap_or(""))),
        _ => Value::Text(format!("{{{}}}", texts().join(","))),
    }
}

/// `value::type`.
pub(super) fn cast(value: Value, kind: &str) -> Answer {
    let Some(text) = value.shown() else { return Ok(Value::Null) };
    let invalid = |kind: &str| {
        let message = format!("invalid input syntax for type {kind}: \"{text}\"");
        Err(Refusal::new("22P02", &message))
    };
    match kind {
        "int2" | "int4" | "int8" | "oid" => {
            let name = if kind == "int8" { "bigint" } else { "integer" };
            text.trim().parse().map_or_else(|_| invalid(name), |number| Ok(Value::Integer(number)))
        }
        "bool" => match value.truth() {
            Some(truth) => Ok(Value::Bool(truth)),
            None => match value {
                Value::Integer(number) => Ok(Value::Bool(number != 0)),
                _ => invalid("boolean"),
            },
        },
        "pg_lsn" => value.position().map_or_else(|| invalid(kind), |at| Ok(Value::Position(at))),
        "numeric" | "float4" | "float8" => match text.trim().parse::<f64>() {
            Ok(_) => Ok(Value::Decimal(text)),
            Err(_) => invalid(kind),
        },
        _ => match value {
            Value::Bool(truth) if matches!(kind, "text" | "varchar" | "name") => {
                Ok(Value::text(if truth { "true" } else { "false" }))
            }
            _ => Ok(Value::Text(text)),
        },
    }
}

/// A binary operator other than `and` and `or`.
pub(super) fn operate(one: &Value, sign: &str, other: &Value) -> Answer {
    if matches!(sign, "same" | "distinct") {
        let same = match (one.is_null(), other.is_null()) {
            (false, false) => one.order(other).is_eq(),
            (one, other) => one == other,
        };
        return Ok(Value::Bool(same == (sign == "same")));
    }
    let (Some(left), Some(right)) = (one.shown(), other.shown()) else { return Ok(Value::Null) };
    let order = one.order(other);
    match sign {
        "=" => Ok(Value::Bool(order.is_eq())),
        "<>" => Ok(Value::Bool(order.is_ne())),
        "<" => Ok(Value::Bool(order.is_lt())),
        ">" => Ok(Value::Bool(order.is_gt())),
        "<=" => Ok(Value::Bool(order.is_le())),
        ">=" => Ok(Value::Bool(order.is_ge())),
        "||" => Ok(Value::Text(left + &right)),
        "like" => Ok(Value::Bool(like(&left, &right))),
        "any" => {
            let items = right.trim_start_matches('{').trim_end_matches('}');
            Ok(Value::Bool(items.split(',').any(|item| item.trim_matches('"') == left)))
        }
        "+" | "-" | "*" | "/" | "%" => arithmetic(one, sign, other),
        _ => Err(Refusal::new("42883", &format!("operator does not exist: {left} {sign} {right}"))),
    }
}

fn arithmetic(one: &Value, sign: &str, other: &Value) -> Answer {
    if let (Value::Position(one), "-", Some(other)) = (one, sign, other.position()) {
        let difference = i128::from(*one) - i128::from(other);
        return Ok(Value::Decimal(difference.to_string()));
    }
    if let (Value::Integer(one), Value::Integer(other)) = (one, other) {
        let result = match sign {
            "+" => one.checked_add(*other),
            "-" => one.checked_sub(*other),
            "*" => one.checked_mul(*other),
            _ if *other == 0 => return Err(Refusal::new("22012", "division by zero")),
            "/" => one.checked_div(*other),
            _ => one.checked_rem(*other),
        };
        return result
            .map(Value::Integer)
            .ok_or_else(|| Refusal::new("22003", "integer out of range"));
    }
    let (Some(one), Some(other)) = (one.number(), other.number()) else { return Ok(Value::Null) };
    let result = match sign {
        "+" => one + other,
        "-" => one - other,
        "*" => one * other,
        "/" => one / other,
        _ => one % other,
    };
    Ok(Value::Decimal(result.to_string()))
}

/// `LIKE` with `%` and `_`.
fn like(text: &str, pattern: &str) -> bool {
    let mut pattern_chars = pattern.chars();
    match pattern_chars.next() {
        None => text.is_empty(),
        Some('%') => {
            let rest = pattern_chars.as_str();
            (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .any(|at| like(&text[at..], rest))
        }
        Some(first) => {
            let mut chars = text.chars();
            let fits = chars.next().is_some_and(|c| first == '_' || c == first);
            fits && like(chars.as_str(), pattern_chars.as_str())
        }
    }
}
