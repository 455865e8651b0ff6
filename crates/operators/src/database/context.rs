//! One snapshot, read once for all rungs: what is recorded, what is wanted, what was seen.
//!
//! Must not decide; the rungs do.

use k8s_openapi::api::apps::v1::StatefulSet;
use phased::fact::{Question, Reply, Trouble};
use phased::ladder::Finding;
use phased::{Live, ObjectId, Observed};

use super::api::{Database, DatabaseStatus};
use super::blueprint::Blueprint;
use super::held::{self, Recorded};
use super::names::Names;
use super::valid::{self, Refusal};
use super::verify::{self, Heard, Target};
use super::{config, labels, memory};

/// What the rungs look at.
pub struct Context {
    /// The snapshot.
    pub observed: Observed<Database>,
    /// Names of the children.
    pub names: Names,
    /// The stored status, read leniently.
    pub status: DatabaseStatus,
    /// Why the spec cannot be carried out; nothing is rendered then.
    pub refusals: Vec<Refusal>,
    /// What is refused while the rest of the spec is in force.
    pub held: Vec<Finding>,
    /// What children are rendered from; `None` when the spec cannot be carried out.
    pub blueprint: Option<Blueprint>,
}

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

impl Context {
    /// Reads a snapshot.
    pub fn read(observed: &Observed<Database>) -> Self {
        let metadata = &observed.root.metadata;
        let name = metadata.name.clone().unwrap_or_default();
        let names = Names::new(metadata.namespace.clone().unwrap_or_default(), name);
        let status = memory::status(&observed.root);
        let mut context = Self {
            observed: observed.clone(),
            names,
            status,
            refusals: Vec::new(),
            held: Vec::new(),
            blueprint: None,
        };
        // The ConfigMap's record goes before the status, which anybody may edit and which is
        // rebuilt from it (fault catalogue G-57).
        if let Some(recorded) = context.written(config::IDENTIFIER_KEY) {
            context.status.system_identifier = Some(recorded);
        }
        context.interpret();
        context
    }

    /// A value of the ConfigMap that lies there.
    fn written(&self, key: &str) -> Option<String> {
        let config = self.seen(&self.names.config_map())?;
        let value = config.value.get("data")?.get(key)?.as_str()?;
        (!value.is_empty()).then(|| value.to_owned())
    }

    fn interpret(&mut self) {
        let set = self.seen(&self.names.stateful_set());
        let recorded = Recorded::read(set.as_ref());
        let spec = &self.observed.resource.spec;
        match valid::check(&self.names.name, spec) {
            Err(refusals) => self.refusals = refusals,
            // More servers than this release runs: nothing is rendered, and the first rung says so.
            Ok(_) if spec.replicas > 1 => {}
            Ok(valid) => {
                let (valid, held) =
                    held::hold(valid, &recorded, &self.status, self.volume_exists());
                self.held = held;
                self.blueprint = Some(self.draw(valid, recorded));
                self.learn_identifier();
            }
        }
    }

    fn draw(&self, valid: valid::Valid, recorded: Recorded) -> Blueprint {
        let uid = self.observed.root.uid().to_owned();
        let identifier = self.status.system_identifier.clone();
        let accepted = self.observed.root.annotation(labels::ACCEPT_DATA_LOSS_ANNOTATION);
        Blueprint {
            names: self.names.clone(),
            valid,
            cluster_domain: self.observed.settings.cluster_domain.clone(),
            identity: recorded
                .identity
                .or_else(|| self.written(config::IDENTITY_KEY))
                .unwrap_or_else(|| uid.clone()),
            loss_accepted: identifier.is_some() && accepted == identifier.as_deref(),
            identifier,
            template_uid: recorded.template_uid.unwrap_or_else(|| uid.clone()),
            uid,
        }
    }

    /// Takes over the identifier of a server that proved to be ours, so that the very pass that
    /// first verifies it also forbids another bootstrap.
    fn learn_identifier(&mut self) {
        let Some(target) = self.target() else { return };
        let Some(answer) = self.observed.facts.get(&target.probe()) else { return };
        let Heard::Clear(evidence) = verify::probed(answer) else { return };
        let Some(blueprint) = &mut self.blueprint else { return };
        let ours = evidence.identity.resource.as_deref() == Some(blueprint.identity.as_str());
        if ours && blueprint.may_bootstrap() {
            blueprint.identifier = Some(evidence.identity.system_identifier);
            blueprint.loss_accepted = false;
        }
    }

    /// Whom verification asks.
    pub fn target(&self) -> Option<Target> {
        let blueprint = self.blueprint.as_ref()?;
        Some(Target {
            names: self.names.clone(),
            host: self.names.host(&blueprint.cluster_domain),
            database: blueprint.valid.database.clone(),
            username: blueprint.valid.username.clone(),
            major: self.status.server_version.as_deref().and_then(held::major_of),
        })
    }

    /// An object as the watch shows it or a live read found it.
    pub fn seen(&self, id: &ObjectId) -> Option<Live> {
        match self.sight(id) {
            Sight::Seen(live) => Some(*live),
            Sight::Absent | Sight::Unasked(_) | Sight::Unread(_) => None,
        }
    }

    /// What is known of an object. The watches show only what carries our labels, so what they do
    /// not show is asked for before it counts as absent.
    pub fn sight(&self, id: &ObjectId) -> Sight {
        if let Some(live) = self.observed.object(id) {
            return Sight::Seen(Box::new(live.clone()));
        }
        let question = Question::Object(id.clone());
        match self.observed.facts.get(&question) {
            None => Sight::Unasked(question),
            Some(Ok(Reply::Object(Some(live)))) => Sight::Seen(Box::new(live.clone())),
            Some(Ok(Reply::Object(None))) => Sight::Absent,
            Some(Ok(_)) => Sight::Unasked(question),
            Some(Err(trouble)) => Sight::Unread(trouble.clone()),
        }
    }

    /// The StatefulSet, typed.
    pub fn stateful_set(&self) -> Option<StatefulSet> {
        self.seen(&self.names.stateful_set())?.read().ok()
    }

    /// Whether the data's claim was ever seen. A claim that could not be read is not known to be
    /// absent; one that nobody asked for yet counts as absent only until somebody decides on it.
    pub fn volume_exists(&self) -> bool {
        self.status.volume.is_some()
            || self.status.system_identifier.is_some()
            || matches!(self.sight(&self.names.data_claim()), Sight::Seen(_) | Sight::Unread(_))
    }

    /// Whether the resource asks for no writes.
    pub fn paused(&self) -> bool {
        self.observed.root.annotation(labels::PAUSED_ANNOTATION) == Some("true")
    }
}
