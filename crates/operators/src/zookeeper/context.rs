//! One snapshot, read once for all rungs: what is recorded, what is wanted, what was seen and heard.
//!
//! Must not write; the rungs do.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use phased::ladder::Finding;
use phased::{KindRef, Live, Observed};

use super::api::{Scripts, Written, ZookeeperClusterStatus};
use super::blueprint::Blueprint;
use super::ensemble::Address;
use super::family::CONTAINER;
use super::hearing::Servers;
use super::held::{self, Recorded};
use super::leavers::Leavers;
use super::names::Names;
use super::rolls::{self, Revisions, Rolling};
use super::size::{self, Ground, Sizing};
use super::upgrade::{self, Outcome, State};
use super::valid::{self, CLIENT, LEADER_ELECTION, QUORUM, Valid};
use super::{servers, status};
use crate::parts::members::Members;
use crate::parts::memory;
use crate::parts::refusal::Refusal;
use crate::parts::scene::Scene;

/// A rung's judgement in the making.
pub type Tending<'a> = crate::parts::tending::Tending<'a, Context>;

/// A server that has run for so long has registered, if it ever does, in seconds.
const LASTING_SECONDS: i64 = 120;

/// What the rungs look at.
pub struct Context {
    /// The snapshot.
    pub observed: Observed<Written>,
    /// Names of the children.
    pub names: Names,
    /// The stored status, read leniently.
    pub status: ZookeeperClusterStatus,
    /// What the live objects record.
    pub recorded: Recorded,
    /// The set's revisions; `None` when there is no set.
    pub revisions: Option<Revisions>,
    /// Why the spec cannot be carried out; nothing is rendered then.
    pub refusals: Vec<Refusal>,
    /// What is refused while the rest of the spec is in force.
    pub held: Vec<Finding>,
    /// How the servers are reached.
    pub address: Address,
    /// The upgrade machine after this look.
    pub upgrade: Outcome,
    /// Claims of members that left.
    pub leavers: Leavers,
    /// Ordinals whose servers have run for long.
    pub lasting: BTreeSet<u32>,
    /// The size of the set.
    pub sizing: Sizing,
    /// How far a roll is released.
    pub rolling: Rolling,
    /// What children are rendered from; `None` when the spec cannot be carried out.
    pub blueprint: Option<Blueprint>,
}

impl Scene for Context {
    type Resource = Written;
    const KIND: KindRef = super::KIND;
    const MANAGER: &'static str = super::MANAGER;

    fn observed(&self) -> &Observed<Written> {
        &self.observed
    }

    fn has_served(&self) -> bool {
        self.status.meta_root_created == Some(true)
    }
}

impl Members for Context {}

impl Context {
    /// Reads a snapshot.
    pub fn read(observed: &Observed<Written>) -> Self {
        let metadata = &observed.root.metadata;
        let names = Names {
            name: metadata.name.clone().unwrap_or_default(),
            namespace: metadata.namespace.clone().unwrap_or_default(),
        };
        let mut context = Self {
            observed: observed.clone(),
            address: Address {
                names: names.clone(),
                domain: observed.settings.cluster_domain.clone(),
                port: 2181,
            },
            names,
            status: memory::status(&observed.root),
            recorded: Recorded::default(),
            revisions: None,
            refusals: Vec::new(),
            held: Vec::new(),
            upgrade: Outcome::default(),
            leavers: Leavers::default(),
            lasting: BTreeSet::new(),
            sizing: Sizing::default(),
            rolling: Rolling::default(),
            blueprint: None,
        };
        context.interpret();
        context
    }

    fn interpret(&mut self) {
        let (set, config) = (self.seen(&self.set_id()), self.seen(&self.names.config_map()));
        self.recorded = Recorded::read(set.as_ref(), config.as_ref());
        self.revisions = self.stateful_set().map(|set| Revisions::read(&set));
        match valid::check(&self.names.name, &self.observed.resource) {
            Err(refusals) => {
                self.refusals = refusals;
                self.upgrade = self.advance(None);
            }
            Ok(valid) => self.draw(valid),
        }
    }

    fn draw(&mut self, valid: Valid) {
        let (mut valid, findings) = held::hold(valid, &self.recorded);
        let (scripts, refused) = held::family(&mut valid, &self.recorded);
        self.held = findings;
        self.held.extend(refused);
        if scripts == Scripts::Operator {
            let message = format!(
                "{} brings no scripts, and this release brings none either; write an image of \
                 {}, or set scripts: Image if this one brings them",
                valid.image_name(),
                super::family::DEFAULT_REPOSITORY
            );
            self.refusals = vec![Refusal::new("spec.image", message)];
            self.upgrade = self.advance(None);
            return;
        }
        if let Some(domain) = &valid.cluster_domain {
            self.address.domain.clone_from(domain);
        }
        self.address.port = valid.port(CLIENT);
        self.upgrade = self.advance(Some(&valid));
        self.leavers = self.leavers(&valid);
        self.lasting = self.lasting();
        self.sizing = self.size(&valid);
        let mut blueprint = Blueprint {
            names: self.names.clone(),
            uid: self.observed.root.uid().to_owned(),
            cluster_domain: self.address.domain.clone(),
            scripts,
            recorded: self.recorded.clone(),
            count: self.sizing.count,
            partition: 0,
            valid,
        };
        self.rolling = self.roll(&blueprint);
        blueprint.partition = self.rolling.partition;
        self.blueprint = Some(blueprint);
    }

    fn advance(&self, valid: Option<&Valid>) -> Outcome {
        let other_image = valid.is_some_and(|valid| {
            self.recorded.image.as_ref().is_some_and(|image| *image != valid.image_name())
        });
        let troubled = self.observed.trouble_of(&self.set_id()).is_some() || self.paused();
        let sight = self.revisions.as_ref().map(|revisions| upgrade::Sight {
            observed: revisions.observed,
            revisions_equal: revisions.current == revisions.update,
            update_revision: revisions.update.clone(),
            updated: revisions.updated,
            wanted: revisions.wanted,
            ready: revisions.ready,
            tag: self.recorded.tag().unwrap_or_default().to_owned(),
            released: revisions.partition == 0,
            image_is_to_change: other_image && !troubled,
        });
        let mut memory = status::remembered(&self.status);
        if let Some(revisions) = &self.revisions {
            let inherited = || status::inherited(&self.status, &revisions.update);
            memory.progress = memory.progress.take().or_else(inherited);
        }
        let patience = valid.map_or(600, |valid| valid.progress_deadline_seconds);
        upgrade::advance(&memory, sight.as_ref(), patience, self.observed.now)
    }

    /// Whether the set and its configuration are left alone.
    pub fn is_failed(&self) -> bool {
        self.upgrade.memory.state == State::Failed
    }

    /// The servers of the snapshot.
    pub fn servers(&self) -> Servers<'_> {
        Servers::new(&self.address, &self.observed.facts, self.pods())
    }

    fn size(&self, valid: &Valid) -> Sizing {
        if self.is_failed() {
            let count = self.recorded.count.unwrap_or(valid.replicas);
            return Sizing { count, ..Sizing::default() };
        }
        size::decide(&self.ground(valid, &self.servers()))
    }

    /// What the size rests on.
    pub fn ground<'a>(&'a self, valid: &Valid, servers: &'a Servers<'a>) -> Ground<'a> {
        Ground {
            wanted: valid.replicas,
            live: self.recorded.count,
            was_recorded: self.status.meta_root_created == Some(true),
            servers,
            leavers: &self.leavers,
            lasting: &self.lasting,
            ports: [QUORUM, LEADER_ELECTION, CLIENT].map(|name| valid.port(name)),
        }
    }

    /// Ordinals whose servers have run for long.
    fn lasting(&self) -> BTreeSet<u32> {
        let lasts = |pod: &Live| {
            let statuses = pod.value["status"]["containerStatuses"].as_array();
            let server = statuses.into_iter().flatten().find(|c| c["name"] == CONTAINER);
            let since = server.and_then(|c| c["state"]["running"]["startedAt"].as_str());
            let since = since.and_then(|text| text.parse::<Timestamp>().ok());
            let bound = SignedDuration::from_secs(LASTING_SECONDS);
            since.is_some_and(|since| self.observed.now.duration_since(since) >= bound)
        };
        let stays = |pod: &Live| pod.deletion_time().is_none() && lasts(pod);
        self.pods().filter(|(_, pod)| stays(pod)).map(|(ordinal, _)| ordinal).collect()
    }

    fn leavers(&self, valid: &Valid) -> Leavers {
        let uid = self.observed.root.uid();
        let left = self.claims().filter(|(ordinal, claim)| {
            self.pod(*ordinal).is_none() && claim.label("uid") == Some(uid)
        });
        Leavers {
            claims: left.map(|(n, claim)| (n, (self.claim_id(n), claim.clone()))).collect(),
            reclaims: valid.reclaims(),
        }
    }

    /// The partition. The write that changes the template releases nobody yet.
    fn roll(&self, blueprint: &Blueprint) -> Rolling {
        let (Some(revisions), Some(set)) = (&self.revisions, self.seen(&self.set_id())) else {
            return Rolling::default();
        };
        if self.is_failed() {
            return Rolling { partition: revisions.partition, ..Rolling::default() };
        }
        if servers::changes_template(blueprint, &set) {
            return Rolling {
                partition: self.recorded.count.unwrap_or_default(),
                ..Rolling::default()
            };
        }
        if self.upgrade.let_go {
            return Rolling::default();
        }
        rolls::release(revisions, &self.servers())
    }

    /// Whether the live set is as it should be.
    pub fn set_is_written(&self) -> bool {
        let Some(blueprint) = &self.blueprint else { return true };
        let live = self.seen(&self.set_id());
        let stands = servers::stateful_set(blueprint).stand(live.as_ref(), &self.owner());
        stands == phased::child::Standing::Current
    }
}
