//! Conditions in the form of a replaced operator.

use phased::ladder::LadderDoc;
use phased::lint::{LintContext, Rule, check};
use phased::{Plan, StatusWrite};
use serde_json::json;

/// What a replaced operator wrote keeps its form; that it is not listed is a fault all the same.
#[test]
fn historical_conditions_are_held_to_being_listed_only() {
    let condition = json!({"type": "Upgrading", "status": "True", "reason": "Updating Zookeeper"});
    let write = StatusWrite {
        status: json!({"conditions": [condition]}),
        uid: "u".into(),
        resource_version: "1".into(),
    };
    let plan = Plan { status: Some(write), wake: phased::Wake::Now, ..Plan::idle() };
    let rules = |conditions: &[(&'static str, &'static str)], historical: &[&'static str]| {
        let ladder = LadderDoc {
            kind: "Thing",
            rungs: Vec::new(),
            aside: Vec::new(),
            reasons: Vec::new(),
            conditions: conditions.to_vec(),
            historical: historical.to_vec(),
        };
        let found = check(&plan, &LintContext::new(ladder));
        found.into_iter().map(|violation| violation.rule).collect::<Vec<Rule>>()
    };
    let listed = [("Upgrading", "")];
    assert!(rules(&listed, &[]).contains(&Rule::ConditionsAreWellFormed));
    let unlisted = rules(&[], &["Upgrading"]);
    assert!(unlisted.contains(&Rule::ReasonsAreDocumented), "{unlisted:?}");
    let sound = rules(&listed, &["Upgrading"]);
    assert!(!sound.contains(&Rule::ConditionsAreWellFormed), "{sound:?}");
    assert!(!sound.contains(&Rule::ReasonsAreDocumented), "{sound:?}");
}
