//! Get and list: selectors, pages, versions of the past.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::convert::renames;
use super::shown;
use crate::cluster::Core;
use crate::kind::Kind;
use crate::selector::{Fields, Labels};
use crate::status::Failure;
use crate::store::Key;

/// Which objects a list or watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Namespace; none means all.
    pub(crate) namespace: Option<String>,
    pub(crate) labels: Labels,
    pub(crate) fields: Fields,
}

impl Selection {
    /// Whether an object, in the version that is asked for, is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    /// A stored object in the version of `kind`, if it is selected. What is left out is not copied: most
    /// lists and watches are about few of many objects.
    pub(crate) fn pick(&self, kind: &Kind, stored: &Value) -> Option<Value> {
        if !self.labels.matches(stored) {
            return None;
        }
        if renames(kind) {
            return Some(shown(kind, stored)).filter(|object| self.fields.matches(object));
        }
        self.fields.matches(stored).then(|| shown(kind, stored))
    }
}

/// Which part of a list is asked for, and how old it may be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) limit: usize,
    pub(crate) token: String,
    pub(crate) version: Option<u64>,
    pub(crate) exact: bool,
    /// Answer as of so many versions ago: a stale-read fault.
    pub(crate) stale: u64,
}

/// One page of a list.
pub(crate) struct Listing {
    pub(crate) items: Vec<Value>,
    pub(crate) version: u64,
    pub(crate) token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

struct Token {
    version: u64,
    after: String,
}

impl Core {
    /// One object, perhaps as it was `stale` versions ago.
    pub(crate) fn read(&self, kind: &Kind, key: &Key, stale: u64) -> Result<Value, Failure> {
        if stale == 0 {
            return self.live(kind, key);
        }
        let then = self.past(stale);
        let objects = self.store.at(then, &key.group, &key.plural, Some(&key.namespace));
        match objects.and_then(|mut objects| objects.remove(key)) {
            Some(object) => Ok(shown(kind, &object)),
            None => Err(Failure::not_found(kind, &key.name)),
        }
    }

    fn past(&self, stale: u64) -> u64 {
        self.store.version().saturating_sub(stale).max(self.store.oldest())
    }

    /// One page of a list.
    pub(crate) fn page(
        &self,
        kind: &Kind,
        selection: &Selection,
        page: &Page,
    ) -> Result<Listing, Failure> {
        let token = parse_token(&page.token)?;
        let version = self.list_version(page, token.as_ref())?;
        let namespace = selection.namespace.as_deref();
        let objects = self
            .store
            .at(version, kind.storage_group(), &kind.plural, namespace)
            .ok_or_else(expired)?;
        let after = token.map(|token| token.after).unwrap_or_default();
        let mut selected = objects
            .iter()
            .map(|(key, object)| (place(key), object))
            .filter(|(place, _)| *place > after)
            .filter_map(|(place, object)| Some((place, selection.pick(kind, object)?)));
        let mut items = Vec::new();
        let mut last = String::new();
        while page.limit == 0 || items.len() < page.limit {
            let Some((place, object)) = selected.next() else { break };
            last = place;
            items.push(object);
        }
        let remaining = if page.limit == 0 { 0 } else { selected.count() };
        let token = (remaining > 0).then(|| {
            let text = json!({ "v": "meta.k8s.io/v1", "rv": version, "start": last }).to_string();
            URL_SAFE_NO_PAD.encode(text)
        });
        Ok(Listing { items, version, token, remaining: (remaining > 0).then_some(remaining) })
    }

    /// Refuses to answer as of a version that does not exist yet.
    pub(crate) fn check_reached(&self, wanted: u64) -> Result<(), Failure> {
        self.check_reached_by(0, wanted)
    }

    /// The same for a replica that is `stale` versions behind.
    pub(crate) fn check_reached_by(&self, stale: u64, wanted: u64) -> Result<(), Failure> {
        let current = self.past(stale);
        if wanted <= current {
            return Ok(());
        }
        let text = format!("Timeout: Too large resource version: {wanted}, current: {current}");
        let cause = json!({
            "reason": "ResourceVersionTooLarge", "message": "Too large resource version",
        });
        Err(Failure::timeout(text).with(json!({ "causes": [cause], "retryAfterSeconds": 1 })))
    }

    fn list_version(&self, page: &Page, token: Option<&Token>) -> Result<u64, Failure> {
        if let Some(token) = token {
            return Ok(token.version);
        }
        match page.version {
            Some(wanted) if wanted > self.store.version() => {
                self.check_reached(wanted).map(|()| wanted)
            }
            Some(wanted) if page.exact => Ok(wanted),
            Some(wanted) if wanted > 0 => Ok(self.past(page.stale).max(wanted)),
            _ => Ok(self.past(page.stale)),
        }
    }
}

fn place(key: &Key) -> String {
    format!("{}/{}", key.namespace, key.name)
}

fn expired() -> Failure {
    Failure::gone(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
    )
}

fn parse_token(text: &str) -> Result<Option<Token>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    let bad = |why: &str| {
        Failure::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let bytes = URL_SAFE_NO_PAD
        .decode(text.trim_end_matches('='))
        .map_err(|_| bad("illegal base64 data at input byte 0"))?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| {
        let first = bytes.first().copied().unwrap_or_default();
        bad(&format!("invalid character '\\u{first:04x}' looking for beginning of value"))
    })?;
    match (value["rv"].as_u64(), value["start"].as_str()) {
        (Some(version), Some(after)) => Ok(Some(Token { version, after: after.to_owned() })),
        _ => Err(bad("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")),
    }
}
