//! The controller of Widgets: Pending, Provisioning, Deploying, Verifying, Ready.

use jiff::{SignedDuration, Timestamp};
use phased::child::{Owner, Standing};
use phased::fact::{Access, Password, Reply, SecretKey, SqlOutcome, SqlRequest, SqlText, Trouble};
use phased::ladder::{Finding, LadderDoc, RungDoc, Verdict};
use phased::plan::{Note, Stands, StatusWrite, Transition};
use phased::quantity::Quantity;
use phased::rollout::{self, Rollout};
use phased::step::{Action, Apply, Expect, Request};
use phased::{
    Controller, KindRef, Live, Observed, Past, Plan, Question, Reason, Settings, Step, Trigger,
    Wake, Want, Watch,
};
use serde_json::{Value, json};

use super::children::{self, id};

const fn reason(name: &'static str, remedy: &'static str) -> Reason {
    Reason { name, meaning: "what it says", remedy }
}

const ACCEPTED: Reason = reason("Accepted", "Passes by itself.");
const MISSING: Reason = reason("ChildMissing", "Passes by itself.");
const TAKEN: Reason = reason("NameTaken", "Remove or rename the other object.");
const ROLLING: Reason = reason("RollingOut", "Passes when the pods are ready.");
const SHRINK: Reason = reason("ShrinkRefused", "Restore the old size.");
const PREPARING: Reason = reason("Preparing", "Passes by itself.");
const SETTLED: Reason = reason("AllChecksPassed", "Nothing to do.");

pub enum Widget {}

fn rung(
    phase: &'static str,
    leaves_when: &'static str,
    effects: &'static [&'static str],
) -> RungDoc {
    RungDoc { phase, leaves_when, effects, gates: &[], reasons: &[], wait: "none", tends: false }
}

impl Controller for Widget {
    type Resource = Value;
    const NAME: &'static str = "widget";
    const KIND: KindRef = KindRef {
        group: "toys.example.com",
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        namespaced: true,
    };

    fn ladder() -> LadderDoc {
        LadderDoc {
            kind: "Widget",
            rungs: vec![
                rung("Pending", "the spec can be carried out", &[]),
                rung(
                    "Provisioning",
                    "the children exist",
                    &["Secret <name>-login", "StatefulSet <name>"],
                ),
                rung("Deploying", "every pod runs what was written and is ready", &[]),
                rung("Verifying", "the role exists and its login works", &["create-role"]),
                rung("Ready", "never by itself", &[]),
            ],
            aside: vec![("Failed", "entered when nothing moves; left when the spec changes")],
            reasons: vec![&ACCEPTED, &MISSING, &TAKEN, &ROLLING, &SHRINK, &PREPARING, &SETTLED],
            conditions: vec![("Ready", "True when every rung holds")],
            historical: Vec::new(),
        }
    }

    fn watches() -> Vec<Watch> {
        ["StatefulSet", "ConfigMap", "Secret", "Service", "Pod", "PersistentVolumeClaim"]
            .map(|kind| Watch {
                kind: id(kind, "").kind,
                selector: Some("app.kubernetes.io/managed-by=steadfast".to_owned()),
                trigger: Trigger::Label("app.kubernetes.io/instance"),
            })
            .to_vec()
    }

    fn wants(_: &Live) -> Vec<Want> {
        let labels: std::collections::BTreeMap<String, String> =
            serde_json::from_value(children::labels()).unwrap();
        Self::watches()
            .into_iter()
            .map(|watch| Want::Labelled {
                kind: watch.kind,
                namespace: "shop".to_owned(),
                labels: labels.clone(),
            })
            .collect()
    }

    fn plan(observed: &Observed<Value>) -> Plan {
        let mut judge = Judge { observed, steps: Vec::new(), asks: Vec::new(), notes: Vec::new() };
        let (phase, verdict) = judge.verdict();
        if !judge.asks.is_empty() {
            return Plan { asks: judge.asks, ..Plan::idle() };
        }
        judge.state(phase, verdict)
    }

    fn suppose(observed: &Observed<Value>, _: &Question, past: &Past<'_>) -> Option<Reply> {
        if observed.resource["spec"]["mystery"] == true {
            return None;
        }
        let served = observed.root.value["status"]["served"] == true;
        let exists = served || past.did("create-role");
        let rows = if exists { vec![vec![Some("t".to_owned())]] } else { Vec::new() };
        Some(Reply::Sql(SqlOutcome::Rows(vec![rows])))
    }

    fn unreadable(_: &Live, _: &str, _: &Settings, _: Timestamp) -> Plan {
        Plan::idle()
    }

    fn troubled(_: &Live, _: &Trouble, _: Timestamp) -> Plan {
        Plan::idle()
    }
}

struct Judge<'a> {
    observed: &'a Observed<Value>,
    steps: Vec<Step>,
    asks: Vec<Question>,
    notes: Vec<Note>,
}

impl Judge<'_> {
    fn verdict(&mut self) -> (&'static str, Verdict) {
        if let Some(finding) = self.shrinks() {
            return ("Pending", Verdict::Blocked(finding));
        }
        if let Some(verdict) = self.provide() {
            return ("Provisioning", verdict);
        }
        if let Some(verdict) = self.rolls() {
            return ("Deploying", verdict);
        }
        match self.verified() {
            Some(verdict) => ("Verifying", verdict),
            None => ("Ready", Verdict::Done),
        }
    }

    fn size(value: &Value) -> Quantity {
        value.as_str().unwrap_or("0").parse().unwrap()
    }

    /// A volume cannot shrink, and grows by its claims.
    fn shrinks(&mut self) -> Option<Finding> {
        let wanted = &self.observed.resource["spec"]["size"];
        for (id, claim) in self.observed.of_kind(id("PersistentVolumeClaim", "").kind) {
            let was = &claim.value["spec"]["resources"]["requests"]["storage"];
            if Self::size(wanted) < Self::size(was) {
                let message = format!("spec.size: {wanted} is smaller than the volume's {was}");
                return Some(Finding::new(&SHRINK, message));
            }
            if Self::size(wanted) > Self::size(was) {
                let ordinal = id.name.rsplit('-').next().unwrap().parse().unwrap();
                self.steps.push(Step::Apply(Apply {
                    id: id.clone(),
                    intent: children::grown(ordinal, wanted),
                    expect: Expect::Uid(claim.uid().to_owned()),
                    why: "spec.size grew".to_owned(),
                }));
            }
        }
        None
    }

    fn sight(&mut self, id: &phased::ObjectId) -> Option<Live> {
        if let Some(live) = self.observed.object(id) {
            return Some(live.clone());
        }
        let question = Question::Object(id.clone());
        match self.observed.facts.get(&question) {
            None => self.asks.push(question),
            Some(Ok(Reply::Object(found))) => return found.clone(),
            Some(_) => {}
        }
        None
    }

    fn provide(&mut self) -> Option<Verdict> {
        let root = &self.observed.root;
        let owner = Owner {
            name: "web".to_owned(),
            uid: root.uid().to_owned(),
            manager: "steadfast/widget".to_owned(),
        };
        let mut verdict = None;
        let secret = children::secret(root);
        if self.sight(&secret.id).is_none() {
            self.steps.push(Step::CreateOnce(secret));
            verdict = Some(Verdict::Working(Finding::new(&MISSING, "children are made")));
        }
        for mut desired in children::all(root) {
            let live = self.sight(&desired.id);
            if let Some(live) = live.as_ref().filter(|_| desired.id.kind.kind == "StatefulSet") {
                // The claim template cannot change.
                desired.intent["spec"]["volumeClaimTemplates"] =
                    live.value["spec"]["volumeClaimTemplates"].clone();
            }
            match desired.stand(live.as_ref(), &owner) {
                Standing::Current => {}
                Standing::Missing(step) => {
                    self.steps.push(step);
                    verdict = Some(Verdict::Working(Finding::new(&MISSING, "children are made")));
                }
                Standing::Outdated { step, .. } => {
                    let rolls = desired.id.kind.kind == "StatefulSet";
                    self.steps.push(step);
                    if rolls {
                        verdict = Some(Verdict::Working(Finding::new(&ROLLING, "the set changes")));
                    }
                }
                Standing::Foreign { owner } => {
                    let message = format!("{} belongs to {owner}", desired.id);
                    let finding = Finding::new(&TAKEN, message.clone());
                    self.notes.push(Note { about: Some(desired.id), reason: &TAKEN, message });
                    return Some(Verdict::Blocked(finding));
                }
                Standing::Terminating => {}
            }
        }
        verdict
    }

    fn rolls(&mut self) -> Option<Verdict> {
        let set = self.observed.object(&id("StatefulSet", "web"))?.read().ok()?;
        let message = match rollout::stateful_set(&set) {
            Rollout::Complete => return None,
            Rollout::Unseen => "not looked at yet".to_owned(),
            Rollout::Moving { message, .. } => message,
        };
        Some(Verdict::Waiting {
            finding: Finding::new(&ROLLING, message),
            gate: "RolledOut",
            deadline: self.observed.now.checked_add(SignedDuration::from_secs(600)).ok(),
        })
    }

    fn request(access: Access) -> SqlRequest {
        SqlRequest {
            host: "web.shop.svc".to_owned(),
            port: 5432,
            user: "root".to_owned(),
            password: Password::Secret(SecretKey {
                namespace: "shop".to_owned(),
                name: "web-login".to_owned(),
                key: "password".to_owned(),
            }),
            database: "root".to_owned(),
            access,
            statements: vec![SqlText::plain("SELECT 1")],
            timeout_seconds: 5,
        }
    }

    fn verified(&mut self) -> Option<Verdict> {
        let question = Question::Sql(Self::request(Access::ReadOnly));
        match self.observed.facts.get(&question) {
            None => {
                self.asks.push(question);
                Some(Verdict::Asking)
            }
            Some(Ok(Reply::Sql(SqlOutcome::Rows(rows)))) if rows[0].is_empty() => {
                self.steps.push(Step::Act(Action {
                    name: "create-role",
                    gate: "ServerReady",
                    request: Request::Sql(Self::request(Access::Change)),
                    why: "the role does not exist".to_owned(),
                }));
                Some(Verdict::Working(Finding::new(&PREPARING, "the role is made")))
            }
            Some(Ok(_)) => None,
            Some(Err(trouble)) => Some(Verdict::Waiting {
                finding: Finding::new(&PREPARING, trouble.message.clone()),
                gate: "ServerAnswers",
                deadline: self.observed.now.checked_add(SignedDuration::from_secs(300)).ok(),
            }),
        }
    }

    fn state(self, phase: &'static str, verdict: Verdict) -> Plan {
        let root = &self.observed.root;
        let before = &root.value["status"];
        let finding = match &verdict {
            Verdict::Working(f) | Verdict::Blocked(f) | Verdict::Failed(f) => f.clone(),
            Verdict::Waiting { finding, .. } => finding.clone(),
            Verdict::Done | Verdict::Asking => Finding::new(&SETTLED, "all is well"),
        };
        let moved = before["phase"] != phase;
        let since = if moved {
            json!(phased::condition::whole_second(self.observed.now))
        } else {
            before["phaseSince"].clone()
        };
        let done = verdict == Verdict::Done;
        let after = json!({
            "phase": phase, "phaseSince": since, "observedGeneration": root.metadata.generation,
            "served": done || before["served"] == true,
            "conditions": [{"type": "Ready", "status": if done { "True" } else { "False" },
                "reason": finding.reason.name, "message": finding.message,
                "lastTransitionTime": since}],
        });
        let transition = moved.then(|| Transition {
            from: before["phase"].as_str().unwrap_or_default().to_owned(),
            to: phase.to_owned(),
            reason: finding.reason.name,
        });
        let status = (*before != after).then(|| StatusWrite {
            status: after,
            uid: root.uid().to_owned(),
            resource_version: root.resource_version().to_owned(),
        });
        Plan {
            asks: Vec::new(),
            steps: self.steps,
            status,
            transition,
            events: Vec::new(),
            notes: self.notes,
            wake: Wake::after(self.observed.now, 5),
            stands: Some(Stands { phase, verdict }),
        }
    }
}
