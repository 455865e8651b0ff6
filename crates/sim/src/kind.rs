//! Which kinds are served: built-in ones from a table, custom ones from CRDs.
//!
//! Describes kinds; the rules that apply to their objects live in `verbs`, `admit` and `schema`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::schema::{self, Schema, crd::CompiledVersion};

mod table;

/// Where the scale subresource finds its numbers, as JSON paths like `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// Wanted replicas.
    pub spec_replicas: String,
    /// Seen replicas.
    pub status_replicas: String,
    /// Serialised label selector; none if the kind has none.
    pub selector: Option<String>,
}

/// A column of `kubectl get`, from a CRD's `additionalPrinterColumns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub kind: String,
    /// `metav1.TableColumnDefinition.format`.
    pub format: String,
    /// What the column means.
    pub description: String,
    /// 0 is always shown; others with `-o wide`.
    pub priority: i64,
    /// Where the value is.
    pub json_path: String,
}

/// One served version of one kind.
#[derive(Clone)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version, for example `v1`.
    pub version: String,
    /// Kind, for example `StatefulSet`.
    pub kind: String,
    /// Plural name used in paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Short names for kubectl.
    pub short_names: Vec<String>,
    /// Categories for kubectl, for example `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether there is a status subresource.
    pub status: bool,
    /// The scale subresource, when there is one.
    pub scale: Option<ScalePaths>,
    /// Typed schema, for field ownership and strategic merge.
    pub schema: Arc<Schema>,
    /// Columns of a custom kind; built-in ones are in `table`.
    pub columns: Vec<Column>,
    /// Whether a CRD defines it.
    pub custom: bool,
    /// JSON paths usable in field selectors beside name and namespace (a CRD's `selectableFields`).
    pub selectable: Vec<String>,
    /// Validation, pruning and defaulting of a custom kind.
    pub compiled: Option<Arc<CompiledVersion>>,
    /// Whether objects carry `metadata.generation`.
    pub generation: bool,
    /// Whether an update may leave out the resourceVersion.
    pub unconditional_update: bool,
}

impl Kind {
    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `plural.group`, or the plural alone in the core group.
    pub fn resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Key of the object `name` of this kind. Both Event APIs share their storage.
    pub fn key(&self, namespace: &str, name: &str) -> crate::store::Key {
        let namespace = if self.namespaced { namespace } else { "" };
        crate::store::Key::new(self.storage_group(), &self.plural, namespace, name)
    }

    /// The group under which objects are stored: `events.k8s.io` lives with the core group.
    pub fn storage_group(&self) -> &str {
        if self.group == "events.k8s.io" { "" } else { &self.group }
    }

    /// Whether this is the built-in kind `kind` of `group`.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

/// All served kinds.
#[derive(Clone)]
pub struct Kinds {
    /// By group and plural; preferred version first.
    served: BTreeMap<(String, String), Vec<Arc<Kind>>>,
}

impl Default for Kinds {
    fn default() -> Kinds {
        let mut kinds = Kinds { served: BTreeMap::new() };
        for row in table::ROWS {
            kinds.register(table::kind(row));
        }
        kinds
    }
}

impl Kinds {
    /// The preferred version of a kind, by its plural.
    pub fn get(&self, group: &str, plural: &str) -> Option<Arc<Kind>> {
        self.versions(group, plural).first().cloned()
    }

    /// All served versions of a kind, preferred first.
    pub fn versions(&self, group: &str, plural: &str) -> &[Arc<Kind>] {
        self.served.get(&(group.to_owned(), plural.to_owned())).map_or(&[], Vec::as_slice)
    }

    /// Exactly this version.
    pub fn at(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.versions(group, plural).iter().find(|kind| kind.version == version).cloned()
    }

    /// By the `apiVersion` and `kind` that objects carry.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        self.all()
            .find(|candidate| candidate.kind == kind && candidate.api_version() == api_version)
            .cloned()
    }

    /// Every served version of every kind, by group and plural.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.served.values().flatten()
    }

    /// Serves one more version; replaces the same version of the same kind.
    pub fn register(&mut self, kind: Kind) {
        let versions = self.served.entry((kind.group.clone(), kind.plural.clone())).or_default();
        match versions.iter_mut().find(|known| known.version == kind.version) {
            Some(known) => *known = Arc::new(kind),
            None => versions.push(Arc::new(kind)),
        }
    }

    /// Stops serving a kind in all its versions.
    pub fn unregister(&mut self, group: &str, plural: &str) {
        self.served.remove(&(group.to_owned(), plural.to_owned()));
    }
}

/// The schema of a built-in kind, or one that accepts anything where none is known.
fn built_in_schema(group: &str, version: &str, kind: &str) -> Arc<Schema> {
    schema::built_in(group, version, kind).unwrap_or_else(|| Arc::new(Schema::any()))
}

/// Sort key of a version name: stable before beta before alpha, newer first; then other names.
pub(crate) fn priority(version: &str) -> (u8, std::cmp::Reverse<(u64, u64)>, String) {
    let parsed = version.strip_prefix('v').and_then(|rest| {
        let split = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, stage) = rest.split_at(split);
        let major: u64 = major.parse().ok()?;
        let (rank, minor) = match stage {
            "" => (0, ""),
            beta if beta.starts_with("beta") => (1, &beta[4..]),
            alpha if alpha.starts_with("alpha") => (2, &alpha[5..]),
            _ => return None,
        };
        let minor: u64 = if minor.is_empty() { 0 } else { minor.parse().ok()? };
        Some((rank, std::cmp::Reverse((major, minor))))
    });
    match parsed {
        Some((rank, order)) => (rank, order, String::new()),
        None => (3, std::cmp::Reverse((0, 0)), version.to_owned()),
    }
}
