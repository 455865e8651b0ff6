//! A ladder as Markdown tables.

use insta::assert_snapshot;
use phased::Reason;
use phased::docs::markdown;
use phased::ladder::{LadderDoc, RungDoc};

static ROLLING: Reason = Reason {
    name: "RollingOut",
    meaning: "Replicas | revisions\nare moving.",
    remedy: "Passes by itself.",
};
static DEPLOYING_REASONS: &[&Reason] = &[&ROLLING];

const PENDING: RungDoc = RungDoc {
    phase: "Pending",
    leaves_when: "the spec is valid",
    effects: &[],
    gates: &[],
    reasons: &[],
    wait: "",
    tends: false,
};

fn doc() -> LadderDoc {
    let deploying = RungDoc {
        phase: "Deploying",
        leaves_when: "every replica is ready",
        effects: &["StatefulSet", "Service"],
        gates: &["rolled-out"],
        reasons: DEPLOYING_REASONS,
        wait: "until the progress deadline, then `Failed`",
        tends: true,
    };
    LadderDoc {
        kind: "Thing",
        rungs: vec![PENDING, deploying],
        aside: vec![("Failed", "in by a deadline, out by a new spec")],
        reasons: vec![&ROLLING],
        conditions: vec![("Ready", "everything holds")],
        historical: Vec::new(),
    }
}

#[test]
fn every_table_is_there() {
    assert_snapshot!(markdown(&doc()), @r"
    ## Thing

    ### Phases

    | Phase | Left when | Brings about | Gates | Waits | Reasons |
    | --- | --- | --- | --- | --- | --- |
    | `Pending` | the spec is valid | – | – | – | – |
    | `Deploying` | every replica is ready | StatefulSet, Service; repaired in every phase | `rolled-out` | until the progress deadline, then `Failed` | `RollingOut` |

    ### Phases aside

    | Phase | In and out |
    | --- | --- |
    | `Failed` | in by a deadline, out by a new spec |

    ### Conditions

    | Type | Meaning |
    | --- | --- |
    | `Ready` | everything holds |

    ### Reasons

    | Reason | Meaning | What ends it |
    | --- | --- | --- |
    | `RollingOut` | Replicas \| revisions are moving. | Passes by itself. |
    ");
}

#[test]
fn every_row_has_as_many_cells_as_its_table() {
    let text = markdown(&doc());
    let mut columns = None;
    for line in text.lines() {
        let bars = line.matches('|').count() - line.matches("\\|").count();
        match (bars, columns) {
            (0, _) => columns = None,
            (n, None) => columns = Some(n),
            (n, Some(expected)) => assert_eq!(n, expected, "{line}"),
        }
    }
}

#[test]
fn empty_tables_are_left_out() {
    let bare = LadderDoc {
        kind: "Bare",
        rungs: vec![PENDING],
        aside: Vec::new(),
        reasons: Vec::new(),
        conditions: Vec::new(),
        historical: Vec::new(),
    };
    let text = markdown(&bare);
    assert!(text.contains("### Phases\n"));
    assert_eq!(text.matches("###").count(), 1, "{text}");
}
