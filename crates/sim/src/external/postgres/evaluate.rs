//! Queries over the catalog and the model's tables.
//!
//! Must not change anything; what a function would change is noted as an effect for `run`.

mod source;
mod title;

use std::cell::RefCell;

use super::ast::{Expression, Name, Query};
use super::data::Data;
use super::functions;
use super::refusal::Refusal;
use super::session::State;
use super::value::{Relation, Value};
use title::title;

/// What a function asks to be done after its statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Effect {
    Set {
        name: String,
        value: String,
        local: bool,
    },
    Reload,
    CreateSlot(String, Option<u64>),
    DropSlot(String),
    Promote,
    Pause,
    Resume,
    Terminate(i32),
    Checkpoint,
    /// Bytes of log to be written.
    Write(u64),
    Sleep(f64),
}

/// What a query can see.
pub(super) struct Scope<'a> {
    pub(super) state: &'a State,
    pub(super) data: &'a Data,
    pub(super) effects: RefCell<Vec<Effect>>,
}

/// One row with the names by which its columns can be called.
#[derive(Clone, Debug, Default)]
struct Frame {
    columns: Vec<(String, String)>,
    values: Vec<Value>,
}

/// Frames of the query and of those around it, and the rows of an aggregate.
#[derive(Clone, Copy)]
struct Place<'a> {
    frames: &'a [&'a Frame],
    group: Option<&'a [Frame]>,
}

const AGGREGATES: [&str; 8] =
    ["count", "max", "min", "sum", "bool_and", "bool_or", "string_agg", "array_agg"];

type Evaluated = Result<Value, Refusal>;

impl Scope<'_> {
    /// The rows of a query that stands by itself.
    pub(super) fn query(&self, query: &Query) -> Result<Relation, Refusal> {
        self.rows(query, &[])
    }

    /// An expression over one row of a table.
    pub(super) fn row(
        &self,
        expression: &Expression,
        table: &str,
        columns: &[String],
        values: &[Value],
    ) -> Evaluated {
        let frame = Frame {
            columns: columns.iter().map(|name| (table.to_owned(), name.clone())).collect(),
            values: values.to_vec(),
        };
        self.value(expression, Place { frames: &[&frame], group: None })
    }

    fn rows(&self, query: &Query, outer: &[&Frame]) -> Result<Relation, Refusal> {
        if !query.values.is_empty() {
            return self.literal_rows(query, outer);
        }
        let mut frames = self.sources(&query.from, outer)?;
        if let Some(filter) = &query.filter {
            let mut kept = Vec::new();
            for frame in frames {
                let here: Vec<&Frame> =
                    std::iter::once(&frame).chain(outer.iter().copied()).collect();
                let holds = self.value(filter, Place { frames: &here, group: None })?;
                if holds.truth() == Some(true) {
                    kept.push(frame);
                }
            }
            frames = kept;
        }
        let columns = self.columns(query, frames.first())?;
        let mut relation = Relation {
            columns: columns.iter().map(|one| one.1.clone()).collect(),
            rows: Vec::new(),
        };
        if query.columns.iter().any(|column| aggregate(&column.0)) {
            let empty = Frame::default();
            let first = frames.first().unwrap_or(&empty).clone();
            let here: Vec<&Frame> = std::iter::once(&first).chain(outer.iter().copied()).collect();
            let place = Place { frames: &here, group: Some(&frames) };
            let row: Result<Vec<Value>, Refusal> =
                columns.iter().map(|column| self.value(&column.0, place)).collect();
            relation.rows.push(row?);
            return Ok(relation);
        }
        let mut sorted: Vec<(Vec<Value>, Vec<Value>)> = Vec::new();
        for frame in &frames {
            let here: Vec<&Frame> = std::iter::once(frame).chain(outer.iter().copied()).collect();
            let place = Place { frames: &here, group: None };
            let row: Result<Vec<Value>, Refusal> =
                columns.iter().map(|column| self.value(&column.0, place)).collect();
            let row = row?;
            let keys: Result<Vec<Value>, Refusal> = query
                .order
                .iter()
                .map(|by| self.order_key(&by.0, &relation, &row, place))
                .collect();
            sorted.push((keys?, row));
        }
        sorted.sort_by(|one, other| {
            for (index, (_, down)) in query.order.iter().enumerate() {
                let order = match (one.0[index].is_null(), other.0[index].is_null()) {
                    (false, false) => one.0[index].order(&other.0[index]),
                    (one, other) => one.cmp(&other),
                };
                if order.is_ne() {
                    return if *down { order.reverse() } else { order };
                }
            }
            std::cmp::Ordering::Equal
        });
        relation.rows = sorted.into_iter().map(|one| one.1).collect();
        if let Some(limit) = query.limit {
            relation.rows.truncate(limit);
        }
        Ok(relation)
    }

    fn literal_rows(&self, query: &Query, outer: &[&Frame]) -> Result<Relation, Refusal> {
        let place = Place { frames: outer, group: None };
        let mut relation = Relation::default();
        for row in &query.values {
            let row: Result<Vec<Value>, Refusal> =
                row.iter().map(|one| self.value(one, place)).collect();
            relation.rows.push(row?);
        }
        let width = relation.rows.first().map_or(0, Vec::len);
        relation.columns = (1..=width).map(|index| format!("column{index}")).collect();
        Ok(relation)
    }

    /// An order key: an output column's number or name, or an expression.
    fn order_key(&self, by: &Expression, out: &Relation, row: &[Value], place: Place) -> Evaluated {
        let position = match by {
            Expression::Integer(number) => usize::try_from(number - 1).ok(),
            Expression::Column(None, name) => out.columns.iter().position(|one| one == name),
            _ => None,
        };
        match position.and_then(|index| row.get(index)) {
            Some(value) => Ok(value.clone()),
            None => self.value(by, place),
        }
    }

    /// Output columns with their names; `*` is spread.
    fn columns(
        &self,
        query: &Query,
        first: Option<&Frame>,
    ) -> Result<Vec<(Expression, String)>, Refusal> {
        let mut columns = Vec::new();
        for (expression, alias) in &query.columns {
            if *expression == Expression::Star {
                let spread = match first {
                    Some(frame) => frame.columns.clone(),
                    None => self.names(&query.from)?,
                };
                columns.extend(
                    spread
                        .into_iter()
                        .map(|(table, name)| (Expression::Column(Some(table), name.clone()), name)),
                );
                continue;
            }
            let name = alias.clone().unwrap_or_else(|| title(expression));
            columns.push((expression.clone(), name));
        }
        Ok(columns)
    }

    fn value(&self, expression: &Expression, place: Place) -> Evaluated {
        match expression {
            Expression::Null => Ok(Value::Null),
            Expression::Bool(truth) => Ok(Value::Bool(*truth)),
            Expression::Integer(number) => Ok(Value::Integer(*number)),
            Expression::Decimal(text) => Ok(Value::Decimal(text.clone())),
            Expression::Text(text) => Ok(Value::Text(text.clone())),
            Expression::Star => Ok(Value::Integer(1)),
            Expression::Column(table, name) => self.column(table.as_deref(), name, place),
            Expression::Call(name, arguments) => self.call(name, arguments, place),
            Expression::Query(query) => self.scalar(query, place),
            Expression::Exists(query) => {
                Ok(Value::Bool(!self.rows(query, place.frames)?.rows.is_empty()))
            }
            Expression::Not(inner) => {
                let truth = self.value(inner, place)?.truth();
                Ok(truth.map_or(Value::Null, |truth| Value::Bool(!truth)))
            }
            Expression::Negative(inner) => match self.value(inner, place)? {
                Value::Integer(number) => Ok(Value::Integer(-number)),
                Value::Decimal(text) => Ok(Value::Decimal(format!("-{text}"))),
                other => Ok(other),
            },
            Expression::IsNull(inner, wanted) => {
                Ok(Value::Bool(self.value(inner, place)?.is_null() == *wanted))
            }
            Expression::In(inner, list, not) => self.among(inner, list, *not, place),
            Expression::Operation(left, sign, right) => self.operate(left, sign, right, place),
            Expression::Cast(inner, kind) => functions::cast(self.value(inner, place)?, kind),
            Expression::Case(branches, other) => {
                for (test, then) in branches {
                    if self.value(test, place)?.truth() == Some(true) {
                        return self.value(then, place);
                    }
                }
                other.as_ref().map_or(Ok(Value::Null), |other| self.value(other, place))
            }
            Expression::Array(items) => {
                let items: Result<Vec<Value>, Refusal> =
                    items.iter().map(|one| self.value(one, place)).collect();
                let texts = items?
                    .iter()
                    .map(|one| one.shown().unwrap_or_else(|| "NULL".into()))
                    .collect::<Vec<_>>();
                Ok(Value::Text(format!("{{{}}}", texts.join(","))))
            }
        }
    }

    fn scalar(&self, query: &Query, place: Place) -> Evaluated {
        let relation = self.rows(query, place.frames)?;
        if relation.rows.len() > 1 {
            let message = "more than one row returned by a subquery used as an expression";
            return Err(Refusal::new("21000", message));
        }
        let row = relation.rows.into_iter().next();
        Ok(row.and_then(|row| row.into_iter().next()).unwrap_or(Value::Null))
    }

    fn column(&self, table: Option<&str>, name: &str, place: Place) -> Evaluated {
        for frame in place.frames {
            let found = frame.columns.iter().position(|(alias, column)| {
                column == name && table.is_none_or(|table| table == alias)
            });
            if let Some(index) = found {
                return Ok(frame.values[index].clone());
            }
        }
        let known = table.is_none_or(|table| {
            place.frames.iter().any(|frame| frame.columns.iter().any(|one| one.0 == table))
        });
        match table {
            Some(table) if !known => {
                let message = format!("missing FROM-clause entry for table \"{table}\"");
                Err(Refusal::new("42P01", &message))
            }
            Some(table) => {
                Err(Refusal::new("42703", &format!("column {table}.{name} does not exist")))
            }
            None => Err(Refusal::new("42703", &format!("column \"{name}\" does not exist"))),
        }
    }

    fn call(&self, name: &Name, arguments: &[Expression], place: Place) -> Evaluated {
        if let Some(group) = place.group.filter(|_| AGGREGATES.contains(&name.name.as_str())) {
            return self.aggregate(name, arguments, place, group);
        }
        let arguments: Result<Vec<Value>, Refusal> =
            arguments.iter().map(|one| self.value(one, place)).collect();
        functions::call(self, name, &arguments?)
    }

    fn aggregate(
        &self,
        name: &Name,
        arguments: &[Expression],
        place: Place,
        group: &[Frame],
    ) -> Evaluated {
        let mut values = Vec::new();
        for frame in group {
            let here: Vec<&Frame> =
                std::iter::once(frame).chain(place.frames.iter().skip(1).copied()).collect();
            let inner = Place { frames: &here, group: None };
            let value = arguments.first().map_or(Ok(Value::Null), |one| self.value(one, inner))?;
            if !value.is_null() {
                values.push(value);
            }
        }
        let separator = match arguments.get(1) {
            Some(one) => self.value(one, Place { frames: &[], group: None })?.shown(),
            None => None,
        };
        Ok(functions::aggregate(&name.name, &values, separator.as_deref()))
    }

    fn among(&self, inner: &Expression, list: &[Expression], not: bool, place: Place) -> Evaluated {
        let wanted = self.value(inner, place)?;
        let mut candidates = Vec::new();
        for one in list {
            match one {
                Expression::Query(query) => {
                    let rows = self.rows(query, place.frames)?.rows;
                    candidates.extend(rows.into_iter().filter_map(|row| row.into_iter().next()));
                }
                other => candidates.push(self.value(other, place)?),
            }
        }
        if wanted.is_null() {
            return Ok(Value::Null);
        }
        let found = candidates.iter().any(|one| !one.is_null() && one.order(&wanted).is_eq());
        if !found && candidates.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        Ok(Value::Bool(found != not))
    }

    fn operate(
        &self,
        left: &Expression,
        sign: &str,
        right: &Expression,
        place: Place,
    ) -> Evaluated {
        let one = self.value(left, place)?;
        if matches!(sign, "and" | "or") {
            let decisive = sign == "or";
            if one.truth() == Some(decisive) {
                return Ok(Value::Bool(decisive));
            }
            let other = self.value(right, place)?;
            return Ok(match (one.truth(), other.truth()) {
                (_, Some(truth)) if truth == decisive => Value::Bool(decisive),
                (Some(_), Some(_)) => Value::Bool(!decisive),
                _ => Value::Null,
            });
        }
        let other = self.value(right, place)?;
        functions::operate(&one, sign, &other)
    }
}

fn aggregate(expression: &Expression) -> bool {
    match expression {
        Expression::Call(name, arguments) => {
            AGGREGATES.contains(&name.name.as_str()) || arguments.iter().any(aggregate)
        }
        Expression::Not(inner)
        | Expression::Negative(inner)
        | Expression::IsNull(inner, _)
        | Expression::Cast(inner, _) => aggregate(inner),
        Expression::Operation(left, _, right) => aggregate(left) || aggregate(right),
        _ => false,
    }
}
