//! Reviews plans in debug builds: every plan that is carried out is linted first.
//!
//! A violation is a fault of ours: it is logged and counted, and the plan goes on, since refusing
//! it would turn a slip in a message into an outage. Release builds leave the review out.

use phased::lint::{self, Hidden, LintContext};
use phased::{Controller, Observed, Plan};

use crate::external::secret_value;
use crate::metrics::Metrics;

/// Values shorter than this are words that occur by chance.
const SHORTEST_SECRET: usize = 12;

/// Lints `plan` and tells of each violation.
pub(crate) fn review<C: Controller>(plan: &Plan, view: &Observed<C::Resource>, metrics: &Metrics) {
    if !cfg!(debug_assertions) || !plan.asks.is_empty() {
        return;
    }
    let context = LintContext {
        stored_status: view.root.value.get("status").cloned(),
        // Whether the spec asks for it is the controller's to know.
        allow_data_deletes: view.root.deletion_time().is_some()
            || C::may_delete_data(&view.resource),
        secrets: secrets(view),
        ..LintContext::new(C::ladder())
    };
    for violation in lint::check(plan, &context) {
        metrics.plan_broke_a_rule(C::NAME);
        tracing::error!(controller = C::NAME, ?violation, "a plan breaks a rule");
    }
}

fn secrets<R>(view: &Observed<R>) -> Vec<Hidden> {
    let secrets = view.objects.iter().filter(|(id, _)| id.kind.kind == "Secret");
    secrets
        .filter_map(|(_, live)| secret_value(&live.value, "password"))
        .filter_map(|bytes| String::from_utf8(bytes).ok())
        .filter(|text| text.len() >= SHORTEST_SECRET)
        .map(Hidden::new)
        .collect()
}
