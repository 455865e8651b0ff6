//! What is known of an object in a snapshot, whatever the controller.
//!
//! Must not decide; rungs do.

use phased::child::Owner;
use phased::fact::{Question, Reply, Trouble};
use phased::{KindRef, Live, ObjectId, Observed};

/// What is known of an object.
#[derive(Clone, Debug)]
pub enum Sight {
    /// It exists.
    Seen(Box<Live>),
    /// It does not exist, by a live read.
    Absent,
    /// Not known before this question is answered.
    Unasked(Question),
    /// It could not be read, which is not absence.
    Unread(Trouble),
}

/// A controller's view of one snapshot.
pub trait Scene {
    /// The custom resource, parsed.
    type Resource;
    /// Its kind.
    const KIND: KindRef;
    /// Field manager of the controller.
    const MANAGER: &'static str;

    /// The snapshot.
    fn observed(&self) -> &Observed<Self::Resource>;

    /// Whether the resource has served: its children are repaired in every phase then.
    fn has_served(&self) -> bool;

    /// Name of the resource.
    fn name(&self) -> &str {
        self.observed().root.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its namespace.
    fn namespace(&self) -> &str {
        self.observed().root.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The resource as the kernel compares owners.
    fn owner(&self) -> Owner {
        Owner {
            name: self.name().to_owned(),
            uid: self.observed().root.uid().to_owned(),
            manager: Self::MANAGER.to_owned(),
        }
    }

    /// Whether the resource asks for no writes.
    fn paused(&self) -> bool {
        phased::pause::is_paused(&self.observed().root)
    }

    /// What is known of an object. The watches show only what carries certain labels, so what they
    /// do not show is asked for before it counts as absent.
    fn sight(&self, id: &ObjectId) -> Sight {
        let observed = self.observed();
        if let Some(live) = observed.object(id) {
            return Sight::Seen(Box::new(live.clone()));
        }
        let question = Question::Object(id.clone());
        match observed.facts.get(&question) {
            None => Sight::Unasked(question),
            Some(Ok(Reply::Object(Some(live)))) => Sight::Seen(Box::new(live.clone())),
            Some(Ok(Reply::Object(None))) => Sight::Absent,
            Some(Ok(_)) => Sight::Unasked(question),
            Some(Err(trouble)) => Sight::Unread(trouble.clone()),
        }
    }

    /// An object as the watch shows it or a live read found it.
    fn known(&self, id: &ObjectId) -> Option<&Live> {
        let observed = self.observed();
        observed.object(id).or_else(|| match observed.facts.get(&Question::Object(id.clone())) {
            Some(Ok(Reply::Object(live))) => live.as_ref(),
            _ => None,
        })
    }

    /// The same, to be kept.
    fn seen(&self, id: &ObjectId) -> Option<Live> {
        self.known(id).cloned()
    }

    /// Whether the controller of an object is an earlier incarnation of the resource.
    fn is_former(&self, live: &Live) -> bool {
        live.controller_owner().is_some_and(|o| {
            o.kind == Self::KIND.kind
                && o.name == self.name()
                && o.uid != self.observed().root.uid()
        })
    }
}
