//! What is written down about the data, each value twice: in an annotation of the StatefulSet and
//! under a key of the ConfigMap, so that the loss of one object loses nothing. What the data were made
//! with lies a third time on the claim of ordinal 0, which outlives the Database: another one of the
//! same name finds it there (issue 2).
//!
//! A copy that another manager took over is drift to be taken back, not a record: `kubectl set image`
//! or `kubectl annotate` on a child must never become what the data are said to be (design.md section
//! 2, "Children"; issue 2). Must not decide what a record forbids; [`super::held`] does.

use phased::compare::Path;
use phased::{Live, ownership};

use super::context::{Context, Sight, Tending};
use crate::parts::scene::Scene;

/// Annotation and key of one value.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Annotation of the StatefulSet.
    pub annotation: &'static str,
    /// Key of the ConfigMap.
    pub key: &'static str,
}

/// The database that the data hold.
pub const DATABASE: Place = Place { annotation: "steadfast.dev/database", key: "database" };
/// The role that owns it.
pub const USERNAME: Place = Place { annotation: "steadfast.dev/username", key: "username" };
/// What the server calls itself, checked by verification.
pub const IDENTITY: Place = Place { annotation: "steadfast.dev/identity", key: "identity" };
/// The image in force, which says by which major version the data were made.
pub const IMAGE: Place = Place { annotation: "steadfast.dev/image", key: "image" };

/// The objects that hold records, where they are ours.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The StatefulSet.
    pub set: Option<Live>,
    /// The ConfigMap.
    pub config: Option<Live>,
    /// The claim of ordinal 0, where a Database wrote on it, this one or a former one.
    pub claim: Option<Live>,
}

/// One copy of a value.
struct Copy {
    text: String,
    /// Nobody else took it over.
    is_kept: bool,
}

impl Records {
    /// Whether this very Database wrote something down.
    pub fn has_begun(&self) -> bool {
        self.set.is_some() || self.config.is_some()
    }

    /// The value written at `place`: a copy that nobody took over, or else any, for a restored
    /// backup is held by whoever restored it.
    pub fn read(&self, place: Place) -> Option<String> {
        let noted = |live: &Option<Live>| {
            live.as_ref().and_then(|live| copy(live, &ANNOTATIONS, place.annotation))
        };
        let copies = [noted(&self.set), self.entry(place.key), noted(&self.claim)];
        let mut all = copies.into_iter().flatten().collect::<Vec<_>>();
        // Stable: the set goes first among equals, and the claim last.
        all.sort_by_key(|copy| !copy.is_kept);
        all.into_iter().next().map(|copy| copy.text)
    }

    /// The value under a key that only the ConfigMap has, unless somebody took it over.
    pub fn kept(&self, key: &str) -> Option<String> {
        self.entry(key).filter(|copy| copy.is_kept).map(|copy| copy.text)
    }

    /// The value under a key that only the ConfigMap has, whoever wrote it.
    pub fn found(&self, key: &str) -> Option<String> {
        self.entry(key).map(|copy| copy.text)
    }

    fn entry(&self, key: &str) -> Option<Copy> {
        self.config.as_ref().and_then(|config| copy(config, &["data"], key))
    }
}

const ANNOTATIONS: [&str; 2] = ["metadata", "annotations"];

fn copy(live: &Live, parents: &[&str], key: &str) -> Option<Copy> {
    let place = parents.iter().chain([&key]);
    let text = place.clone().try_fold(&live.value, |value, name| value.get(name))?.as_str()?;
    let path = place.fold(Path::default(), |path, name| path.field(name));
    let is_kept = ownership::holder(live, &path, super::MANAGER).is_none();
    (!text.is_empty()).then(|| Copy { text: text.to_owned(), is_kept })
}

/// Before anything is written down about the data, the volume that a former Database of this name
/// may have left is read: what its data were made with must not be lost to a watch that is late.
/// Answers what of it is not known yet.
pub fn unknown(context: &Context) -> Option<Sight> {
    if context.records.has_begun() {
        return None;
    }
    match context.sight(&context.names.data_claim()) {
        Sight::Seen(_) | Sight::Absent => None,
        unknown => Some(unknown),
    }
}

/// Asks for it, or waits until it can be read.
pub fn await_known(tending: &mut Tending<'_>) {
    match unknown(tending.context) {
        Some(Sight::Unasked(question)) => {
            tending.ask(question);
        }
        Some(Sight::Unread(trouble)) => {
            let id = tending.context.names.data_claim();
            tending.unread(&id, &trouble);
        }
        Some(Sight::Seen(_) | Sight::Absent) | None => {}
    }
}
