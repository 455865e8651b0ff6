//! One snapshot, read once for all rungs: what is recorded, what is wanted, what was seen.
//!
//! Must not decide; the rungs do.

use k8s_openapi::api::core::v1::Pod;
use phased::fact::Answer;
use phased::ladder::Finding;
use phased::{KindRef, Observed, Question, child};

use super::api::{Database, DatabaseStatus};
use super::blueprint::Blueprint;
use super::held::{self, Recorded};
use super::names::Names;
use super::record::Records;
use super::valid::{self, Refusal};
use super::verify::{self, Heard, Inspection, Target};
use super::{causes, config, deploying, labels, servers, services, verifying};
use crate::parts::causes::Cause;
use crate::parts::members::Members;
use crate::parts::memory;
pub use crate::parts::scene::{Scene, Sight};

/// A rung's judgement in the making.
pub type Tending<'a> = crate::parts::tending::Tending<'a, Context>;

/// What the rungs look at.
pub struct Context {
    /// The snapshot.
    pub observed: Observed<Database>,
    /// Names of the children.
    pub names: Names,
    /// The stored status, read leniently.
    pub status: DatabaseStatus,
    /// The objects with the records, where they are there and ours.
    pub records: Records,
    /// Why the spec cannot be carried out; nothing is rendered then.
    pub refusals: Vec<Refusal>,
    /// What is refused while the rest of the spec is in force.
    pub held: Vec<Finding>,
    /// What children are rendered from; `None` when the spec cannot be carried out.
    pub blueprint: Option<Blueprint>,
}

impl Scene for Context {
    type Resource = Database;
    const KIND: KindRef = super::KIND;
    const MANAGER: &'static str = super::MANAGER;

    fn observed(&self) -> &Observed<Database> {
        &self.observed
    }

    fn has_served(&self) -> bool {
        self.status.system_identifier.is_some()
    }
}

impl Members for Context {
    fn cause_in_pod(&self, name: &str, pod: &Pod) -> Option<Cause> {
        let cause = causes::of_pod(name, pod)?;
        if !causes::is_guards(&cause) {
            return Some(cause);
        }
        Some(Cause { finding: self.with_way_out(cause.finding), ..cause })
    }
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
            records: Records::default(),
            refusals: Vec::new(),
            held: Vec::new(),
            blueprint: None,
        };
        let records = context.find_records();
        // The ConfigMap's record goes before the status, which anybody may edit and which is
        // rebuilt from it (fault catalogue G-57); a record that somebody took over goes last.
        let known = context.status.system_identifier.take();
        context.status.system_identifier = records
            .kept(config::IDENTIFIER_KEY)
            .or(known)
            .or_else(|| records.found(config::IDENTIFIER_KEY));
        context.interpret(&records);
        context.records = records;
        context
    }

    fn find_records(&self) -> Records {
        let owner = self.owner();
        let ours = |id| self.seen(&id).filter(|live| child::foreign(live, &owner).is_none());
        let claim = self.seen(&self.names.data_claim());
        Records {
            set: ours(self.names.stateful_set()),
            config: ours(self.names.config_map()),
            claim: claim.filter(|live| live.annotation(labels::RESOURCE_UID_ANNOTATION).is_some()),
        }
    }

    fn interpret(&mut self, records: &Records) {
        let recorded = Recorded::read(records);
        let spec = &self.observed.resource.spec;
        match valid::check(&self.names.name, spec) {
            Err(refusals) => self.refusals = refusals,
            Ok(valid) => {
                let held = held::hold(valid, &recorded, &self.status, self.volume_exists());
                self.held = held.findings;
                self.blueprint = Some(self.draw(held.valid, held.growth, recorded, records));
                self.learn_identifier();
                self.learn_lost_slots();
            }
        }
    }

    fn draw(
        &self,
        valid: valid::Valid,
        growth: Option<String>,
        recorded: Recorded,
        records: &Records,
    ) -> Blueprint {
        let uid = self.observed.root.uid().to_owned();
        let identifier = self.status.system_identifier.clone();
        let accepted = self.observed.root.annotation(labels::ACCEPT_DATA_LOSS_ANNOTATION);
        let wanted = valid.replicas;
        let blueprint = Blueprint {
            names: self.names.clone(),
            count: wanted.min(self.count_now(wanted)),
            several: wanted > 1 || self.pods().any(|(ordinal, _)| ordinal > 0),
            reseed: (1..wanted)
                .filter_map(|n| Some((n, records.kept(&config::reseed_key(n))?)))
                .collect(),
            growth,
            valid,
            cluster_domain: self.observed.settings.cluster_domain.clone(),
            identity: recorded.identity.unwrap_or_else(|| uid.clone()),
            loss_accepted: identifier.is_some() && accepted == identifier.as_deref(),
            identifier,
            template_uid: recorded.template_uid.unwrap_or_else(|| uid.clone()),
            uid,
        };
        if self.may_add_servers(&blueprint) {
            Blueprint { count: wanted, ..blueprint }
        } else {
            blueprint
        }
    }

    /// How many servers there are: by the StatefulSet; by the pods that it left behind; by what is
    /// wanted, where there is nothing yet.
    fn count_now(&self, wanted: u32) -> u32 {
        let set = self.stateful_set().map(|set| set.spec.and_then(|s| s.replicas).unwrap_or(1));
        let left = self.pods().map(|(ordinal, _)| ordinal + 1).max();
        let by_set = set.map(|count| u32::try_from(count).unwrap_or(1).max(1));
        by_set.or(left).unwrap_or(wanted)
    }

    /// Whether servers may be added. Not before the client Service, if there is one, leads to the
    /// primary alone. And not before the primary runs the template that is to be in force: a set adds
    /// servers before it rolls those that are there, and waits for each; a new standby in turn may wait
    /// for what only the primary's new template brings.
    fn may_add_servers(&self, blueprint: &Blueprint) -> bool {
        let set = self.stateful_set();
        let apart = match self.sight(&self.names.client_service()) {
            Sight::Seen(service) => services::tells_roles_apart(&service),
            Sight::Absent => true,
            Sight::Unasked(_) | Sight::Unread(_) => set.is_none(),
        };
        apart
            && match &set {
                Some(set) => deploying::primary_runs(self, blueprint, set),
                None => self.pod(0).is_none_or(|pod| servers::is_made_from(pod, blueprint)),
            }
    }

    /// A standby whose slot the primary gave up can never catch up: the very pass that sees it asks
    /// for it to be seeded anew, by the uid of its present pod.
    fn learn_lost_slots(&mut self) {
        let Some(found) = self.inspection() else { return };
        let Some(blueprint) = &self.blueprint else { return };
        let wanted = blueprint.standbys();
        let lost = found.replication.slots.iter().filter(|slot| slot.is_lost());
        let pods: Vec<(u32, String)> = lost
            .filter(|slot| wanted.contains(&slot.ordinal))
            .filter_map(|slot| Some((slot.ordinal, self.pod(slot.ordinal)?.uid().to_owned())))
            .collect();
        if let Some(blueprint) = &mut self.blueprint {
            blueprint.reseed.extend(pods);
        }
    }

    /// A finding with the way out in its message, in the words of this resource.
    pub fn with_way_out(&self, finding: Finding) -> Finding {
        let way = finding.reason.way_out(&self.observed.root);
        Finding { message: format!("{}. {way}", finding.message), ..finding }
    }

    /// The answer to a session: to the second asking, where there was one.
    pub fn heard(&self, question: &Question) -> Option<&Answer> {
        let facts = &self.observed.facts;
        let second = verify::patiently(question).and_then(|second| facts.get(&second));
        second.or_else(|| facts.get(question))
    }

    /// What is to be asked for a session to be judged: the question, then, of a server that was
    /// verified and did not answer, the same once more with patience. `None` when both are answered.
    pub fn unheard(&self, question: &Question) -> Option<Question> {
        let facts = &self.observed.facts;
        let Some(answer) = facts.get(question) else { return Some(question.clone()) };
        let verified = self.status.ready == Some(true)
            && self.status.observed_generation == self.observed.root.metadata.generation;
        let second = verify::patiently(question).filter(|_| verified && verify::is_late(answer));
        second.filter(|second| !facts.contains_key(second))
    }

    /// What the superuser found in a server that is ours.
    pub fn inspection(&self) -> Option<Inspection> {
        let blueprint = self.blueprint.as_ref()?;
        let answer = self.heard(&self.target()?.inspect())?;
        let Heard::Clear(found) = verify::inspected(answer) else { return None };
        verifying::recognise(blueprint, &found.identity).is_ok().then_some(found)
    }

    /// Takes over the identifier of a server that proved to be ours, so that the very pass that
    /// first verifies it also forbids another bootstrap.
    fn learn_identifier(&mut self) {
        let Some(target) = self.target() else { return };
        let Some(Heard::Clear(evidence)) = self.heard(&target.probe()).map(verify::probed) else {
            return;
        };
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
            domain: blueprint.cluster_domain.clone(),
            database: blueprint.valid.database.clone(),
            username: blueprint.valid.username.clone(),
            major: self.status.server_version.as_deref().and_then(held::major_of),
        })
    }

    /// Whether the data's claim was ever seen. A claim that could not be read is not known to be
    /// absent; one that nobody asked for yet counts as absent only until somebody decides on it.
    pub fn volume_exists(&self) -> bool {
        self.status.volume.is_some()
            || self.status.system_identifier.is_some()
            || matches!(self.sight(&self.names.data_claim()), Sight::Seen(_) | Sight::Unread(_))
    }
}
