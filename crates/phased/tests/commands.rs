//! Commands in containers, as a plan shows them and as lint judges them.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use phased::fact::{SecretKey, SqlPiece, SqlText};
use phased::ladder::{LadderDoc, RungDoc};
use phased::lint::{LintContext, Rule, check};
use phased::render;
use phased::step::{Action, ExecRequest, Request, Step};
use phased::{KindRef, ObjectId, Plan};

const POD: KindRef =
    KindRef { group: "", version: "v1", kind: "Pod", plural: "pods", namespaced: true };

fn command() -> ExecRequest {
    let key = SecretKey { namespace: "shop".into(), name: "db-superuser".into(), key: "p".into() };
    let alter = vec![SqlPiece::Text("ALTER ROLE x PASSWORD ".into()), SqlPiece::Verifier(key)];
    ExecRequest {
        pod: ObjectId::new(POD, "shop", "db-0"),
        uid: "u-1".into(),
        container: "postgres".into(),
        command: vec!["psql".into(), "-q".into()],
        input: vec![SqlText(alter), SqlText::plain("\\q")],
        timeout_seconds: 20,
    }
}

fn step(request: ExecRequest) -> Step {
    let why = "it is refused".into();
    Step::Act(Action { name: "recover", gate: "PodReady", request: Request::Exec(request), why })
}

/// What stands in for a secret is shown, and never among the arguments.
#[test]
fn a_command_is_shown_with_its_input() {
    let expected = "do recover (gate PodReady): it is refused
exec in Pod shop/db-0 (uid u-1), container postgres, within 20 s: psql -q
  ALTER ROLE x PASSWORD <verifier of Secret shop/db-superuser key p>
  \\q";
    assert_eq!(render::step(&step(command())), expected);
}

fn broken(change: fn(&mut ExecRequest)) -> Vec<Rule> {
    let rung = RungDoc {
        phase: "Ready",
        leaves_when: "",
        effects: &[],
        gates: &["PodReady"],
        reasons: &[],
        wait: "",
        tends: false,
    };
    let context = LintContext::new(LadderDoc {
        kind: "Thing",
        rungs: vec![rung],
        aside: vec![],
        reasons: vec![],
        conditions: vec![],
        historical: vec![],
    });
    let mut request = command();
    change(&mut request);
    let plan = Plan { steps: vec![step(request)], ..Plan::idle() };
    check(&plan, &context).into_iter().map(|violation| violation.rule).collect()
}

/// A command that nothing ends, or that may meet another pod of the name, is no plan.
#[test]
fn a_command_names_its_pod_and_its_end() {
    assert_eq!(broken(|_| {}), []);
    assert_eq!(broken(|e| e.uid.clear()), [Rule::IncarnationIsNamed]);
    assert_eq!(broken(|e| e.container.clear()), [Rule::NamesAreValid]);
    let endless: [fn(&mut ExecRequest); 3] =
        [|e| e.command.clear(), |e| e.input.clear(), |e| e.timeout_seconds = 0];
    for change in endless {
        assert_eq!(broken(change), [Rule::CommandEnds]);
    }
}
