//! Names of output columns.
//!
//! Must not evaluate anything.

use crate::external::postgres::ast::Expression;

/// The name that PostgreSQL gives to an output column without an alias.
pub(super) fn title(expression: &Expression) -> String {
    named(expression).map_or_else(|| "?column?".to_owned(), |(name, _)| name)
}

/// A name, and whether it is a strong one; a weak one, a type's, yields to a cast around it.
fn named(expression: &Expression) -> Option<(String, bool)> {
    let strong = |name: &str| Some((name.to_owned(), true));
    match expression {
        Expression::Column(_, name) => strong(name),
        Expression::Call(name, _) => strong(&name.name),
        Expression::Cast(inner, kind) => match named(inner) {
            Some((name, true)) => Some((name, true)),
            _ => Some((kind.clone(), false)),
        },
        Expression::Query(query) => match query.columns.first() {
            Some((_, Some(alias))) => strong(alias),
            Some((inner, None)) => named(inner),
            None => strong("column1"),
        },
        Expression::Exists(_) => strong("exists"),
        Expression::Case(_, other) => match other.as_deref().and_then(named) {
            Some(found) if found.1 => Some(found),
            _ => Some(("case".to_owned(), false)),
        },
        Expression::Array(_) => strong("array"),
        _ => None,
    }
}
