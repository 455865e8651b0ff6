//! What a test has asked for, shared between the test and the worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::sync::Notify;

use super::Outcome;

/// Namespace and name.
pub(crate) type Key = (String, String);

/// A test's own decision about pods.
pub(crate) type Rule = Arc<dyn Fn(&Pod) -> Option<Outcome> + Send + Sync>;

/// The wishes themselves.
#[derive(Default)]
pub(crate) struct Plot {
    pub(crate) outcomes: BTreeMap<Key, Outcome>,
    pub(crate) rule: Option<Rule>,
    pub(crate) held: BTreeSet<Key>,
    pub(crate) claims_held: bool,
}

/// The wishes, and word of their change.
#[derive(Default)]
pub(crate) struct Script {
    plot: Mutex<Plot>,
    changed: Notify,
}

impl Script {
    /// Changes a wish and wakes the worker.
    pub(crate) fn change<T>(&self, edit: impl FnOnce(&mut Plot) -> T) {
        edit(&mut self.plot.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Waits for the next change.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(crate) fn outcome(&self, pod: &Pod) -> Outcome {
        let plot = self.plot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = plot.outcomes.get(&key(pod)) {
            return outcome.clone();
        }
        let rule = plot.rule.clone();
        // The rule is the test's code: it must not run under our lock.
        drop(plot);
        rule.and_then(|rule| rule(pod)).unwrap_or_else(|| Outcome::usual(pod))
    }

    pub(crate) fn holds_termination(&self, pod: &Pod) -> bool {
        self.plot.lock().unwrap_or_else(PoisonError::into_inner).held.contains(&key(pod))
    }

    pub(crate) fn holds_claims(&self) -> bool {
        self.plot.lock().unwrap_or_else(PoisonError::into_inner).claims_held
    }
}

/// Namespace and name of an object; the namespace is empty for cluster-wide ones.
pub(crate) fn key<K: ResourceExt>(object: &K) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}
