//! Phase order by table: forward one rung a write, back at once, aside, dwell, tending.

use jiff::Timestamp;
use phased::ladder::{Finding, Judgement, Rung, RungDoc, Stand};
use phased::step::Finalizer;
use phased::{EventNote, KindRef, Ladder, Note, ObjectId, Question, Reason, Step, Verdict, Wake};

static REASON: Reason = Reason { name: "Because", meaning: "m", remedy: "r" };

/// What each of the four rungs finds.
type World = [Verdict; 4];

const MARKS: [&str; 4] = ["a", "b", "c", "d"];

/// A judgement that leaves a trace in every field, so that merging can be seen.
fn judge<const RUNG: usize>(world: &World) -> Judgement {
    let kind = KindRef { group: "", version: "v1", kind: "T", plural: "ts", namespaced: false };
    let id = ObjectId::new(kind, "", MARKS[RUNG]);
    let second = i64::try_from(RUNG).expect("four rungs");
    Judgement {
        verdict: world[RUNG].clone(),
        asks: vec![Question::Object(id.clone())],
        steps: vec![Step::Finalizer(Finalizer::Add(MARKS[RUNG]))],
        notes: vec![Note { about: Some(id), reason: &REASON, message: String::new() }],
        events: vec![EventNote {
            warning: false,
            reason: MARKS[RUNG],
            action: "A",
            message: String::new(),
        }],
        wake: Wake::At(Timestamp::from_second(100 - second).expect("a time")),
    }
}

const fn doc(phase: &'static str, tends: bool) -> RungDoc {
    RungDoc { phase, leaves_when: "", effects: &[], gates: &[], reasons: &[], wait: "", tends }
}

/// The second and the last rung tend their children.
static RUNGS: [Rung<World>; 4] = [
    Rung { doc: doc("Pending", false), judge: judge::<0> },
    Rung { doc: doc("Making", true), judge: judge::<1> },
    Rung { doc: doc("Rolling", false), judge: judge::<2> },
    Rung { doc: doc("Ready", true), judge: judge::<3> },
];

static LADDER: Ladder<World> = Ladder { rungs: &RUNGS };

fn finding() -> Finding {
    Finding::new(&REASON, "text")
}

fn not_done() -> [Verdict; 5] {
    [
        Verdict::Working(finding()),
        Verdict::Waiting { finding: finding(), gate: "g", deadline: None },
        Verdict::Blocked(finding()),
        Verdict::Failed(finding()),
        Verdict::Asking,
    ]
}

/// The first `done` rungs are done, the next is `verdict`, the others are done.
fn world(done: usize, verdict: &Verdict) -> World {
    let mut world = [Verdict::Done, Verdict::Done, Verdict::Done, Verdict::Done];
    if let Some(rung) = world.get_mut(done) {
        *rung = verdict.clone();
    }
    world
}

/// Every stand with the highest rung that may follow it.
fn stands() -> Vec<(Stand, usize)> {
    let mut stands = vec![(Stand::New, 0), (Stand::Aside, 3)];
    for index in 0..4 {
        stands.push((Stand::At { index, may_advance: true }, (index + 1).min(3)));
        stands.push((Stand::At { index, may_advance: false }, index));
    }
    stands
}

/// Marks of the rungs whose steps are in the result.
fn acted(judgement: &Judgement) -> Vec<&'static str> {
    judgement
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Finalizer(Finalizer::Add(mark)) => Some(*mark),
            _ => None,
        })
        .collect()
}

#[test]
fn the_first_rung_not_done_is_the_phase_within_the_limit() {
    for (stand, limit) in stands() {
        for first in 0..=4 {
            for verdict in not_done() {
                let climb = LADDER.climb(&world(first, &verdict), stand);
                let case = format!("{stand:?}, rung {first} is {verdict:?}");
                let (index, shown) =
                    if first <= limit { (first, verdict) } else { (limit, Verdict::Done) };
                assert_eq!(climb.index, index.min(3), "{case}");
                assert_eq!(climb.phase, RUNGS[climb.index].doc.phase, "{case}");
                assert_eq!(climb.verdict, shown, "{case}");
                assert_eq!(climb.judgement.verdict, shown, "{case}");
            }
        }
    }
}

#[test]
fn a_bring_up_shows_every_phase_in_order() {
    let all_done = world(4, &Verdict::Done);
    let mut stand = Stand::New;
    let mut shown = Vec::new();
    loop {
        let climb = LADDER.climb(&all_done, stand);
        shown.push(climb.phase);
        if climb.judgement.wake != Wake::Now {
            break;
        }
        stand = Stand::At { index: climb.index, may_advance: true };
    }
    assert_eq!(shown, ["Pending", "Making", "Rolling", "Ready"]);
}

#[test]
fn no_effect_comes_before_its_phase() {
    let all_done = world(4, &Verdict::Done);
    for (stand, limit) in stands() {
        let climb = LADDER.climb(&all_done, stand);
        assert_eq!(acted(&climb.judgement), MARKS[..=limit], "{stand:?}");
        assert_eq!(climb.judgement.asks.len(), limit + 1, "{stand:?}");
    }
}

#[test]
fn going_back_takes_one_write_from_any_rung() {
    for index in 0..4 {
        for may_advance in [true, false] {
            let stand = Stand::At { index, may_advance };
            let climb = LADDER.climb(&world(0, &Verdict::Working(finding())), stand);
            assert_eq!((climb.index, climb.phase), (0, "Pending"), "{stand:?}");
        }
    }
}

#[test]
fn above_a_rung_not_done_only_tending_rungs_act_and_ask_nothing() {
    let waiting = Verdict::Waiting { finding: finding(), gate: "g", deadline: None };
    let table: [(usize, Stand, &[&str]); 5] = [
        (0, Stand::Aside, &["a", "b", "d"]),
        (1, Stand::Aside, &["a", "b", "d"]),
        (2, Stand::Aside, &["a", "b", "c", "d"]),
        (0, Stand::At { index: 1, may_advance: true }, &["a", "b"]),
        (0, Stand::New, &["a"]),
    ];
    for (first, stand, expected) in table {
        let judgement = LADDER.climb(&world(first, &waiting), stand).judgement;
        let case = format!("{stand:?}, rung {first} waits");
        assert_eq!(acted(&judgement), expected, "{case}");
        let events: Vec<&str> = judgement.events.iter().map(|event| event.reason).collect();
        assert_eq!(events, expected, "{case}");
        assert_eq!(judgement.notes.len(), expected.len(), "{case}");
        assert_eq!(judgement.asks.len(), first + 1, "{case}: questions of the rungs that count");
    }
}

#[test]
fn a_tending_rung_cannot_hide_the_first_that_is_not_done() {
    let mut world = world(1, &Verdict::Blocked(finding()));
    world[3] = Verdict::Failed(finding());
    let climb = LADDER.climb(&world, Stand::Aside);
    assert_eq!((climb.index, climb.verdict), (1, Verdict::Blocked(finding())));
}

#[test]
fn the_wake_up_is_the_earliest_of_all_that_acted() {
    let at = |second| Wake::At(Timestamp::from_second(second).expect("a time"));
    let waiting = Verdict::Waiting { finding: finding(), gate: "g", deadline: None };
    let stand = Stand::At { index: 0, may_advance: true };
    assert_eq!(LADDER.climb(&world(0, &waiting), stand).judgement.wake, at(99));
    assert_eq!(LADDER.climb(&world(2, &waiting), Stand::Aside).judgement.wake, at(97));
}

#[test]
fn a_done_rung_below_the_top_moves_on_at_once_unless_it_dwells() {
    let all_done = world(4, &Verdict::Done);
    for (stand, limit) in stands() {
        let wake = LADDER.climb(&all_done, stand).judgement.wake;
        let dwells = matches!(stand, Stand::At { may_advance: false, .. });
        let expected = limit < 3 && !dwells;
        assert_eq!(wake == Wake::Now, expected, "{stand:?}");
    }
}

#[test]
fn a_phase_leads_back_to_its_rung() {
    for (index, rung) in RUNGS.iter().enumerate() {
        assert_eq!(LADDER.index_of(rung.doc.phase), Some(index));
    }
    assert_eq!(LADDER.index_of("Failed"), None);
}
