//! Where a query's rows come from: tables, functions, sub-queries, joins.
//!
//! Must not filter or order; the query does.

use super::{Frame, Place, Scope};
use crate::external::postgres::ast::{From, Source};
use crate::external::postgres::refusal::Refusal;
use crate::external::postgres::value::{Relation, Value};
use crate::external::postgres::{catalog, functions};

impl Scope<'_> {
    pub(super) fn names(&self, from: &[From]) -> Result<Vec<(String, String)>, Refusal> {
        let mut names = Vec::new();
        for one in from {
            let (alias, relation) = self.source(one, &[])?;
            names.extend(relation.columns.into_iter().map(|name| (alias.clone(), name)));
        }
        Ok(names)
    }

    pub(super) fn source(
        &self,
        from: &From,
        outer: &[&Frame],
    ) -> Result<(String, Relation), Refusal> {
        let (name, relation) = match &from.source {
            Source::Table(name) => (name.name.clone(), catalog::relation(self, name)?),
            Source::Query(query) => (String::new(), self.rows(query, outer)?),
            Source::Function(name, arguments) => {
                let place = Place { frames: outer, group: None };
                let arguments: Result<Vec<Value>, Refusal> =
                    arguments.iter().map(|one| self.value(one, place)).collect();
                let called = functions::table(self, name, &arguments?)?;
                (name.name.clone(), called)
            }
        };
        let mut relation = relation;
        for (column, alias) in relation.columns.iter_mut().zip(&from.columns) {
            column.clone_from(alias);
        }
        Ok((from.alias.clone().unwrap_or(name), relation))
    }

    pub(super) fn sources(&self, from: &[From], outer: &[&Frame]) -> Result<Vec<Frame>, Refusal> {
        let mut frames = vec![Frame::default()];
        for one in from {
            let mut joined = Vec::new();
            for left in &frames {
                let here: Vec<&Frame> =
                    std::iter::once(left).chain(outer.iter().copied()).collect();
                let (alias, relation) = self.source(one, &here)?;
                let names = relation.columns.iter().map(|name| (alias.clone(), name.clone()));
                let columns: Vec<(String, String)> =
                    left.columns.iter().cloned().chain(names).collect();
                let before = joined.len();
                for row in &relation.rows {
                    let values = left.values.iter().chain(row).cloned().collect();
                    let frame = Frame { columns: columns.clone(), values };
                    if self.joins(one, &frame, outer)? {
                        joined.push(frame);
                    }
                }
                if one.left && joined.len() == before {
                    let missing = relation.columns.iter().map(|_| Value::Null);
                    let values = left.values.iter().cloned().chain(missing).collect();
                    joined.push(Frame { columns, values });
                }
            }
            frames = joined;
        }
        Ok(frames)
    }

    pub(super) fn joins(
        &self,
        from: &From,
        frame: &Frame,
        outer: &[&Frame],
    ) -> Result<bool, Refusal> {
        let Some(on) = &from.on else { return Ok(true) };
        let here: Vec<&Frame> = std::iter::once(frame).chain(outer.iter().copied()).collect();
        Ok(self.value(on, Place { frames: &here, group: None })?.truth() == Some(true))
    }
}
