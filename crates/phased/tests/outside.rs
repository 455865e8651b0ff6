//! Questions and actions beyond Kubernetes and SQL, as a plan shows them.

use phased::Question;
use phased::fact::{WordRequest, ZooKeeperCall, ZooKeeperRequest};
use phased::render;
use phased::step::{Action, Request, Step};

fn session(calls: Vec<ZooKeeperCall>) -> ZooKeeperRequest {
    ZooKeeperRequest { host: "zk-0".into(), port: 2181, calls, timeout_seconds: 5 }
}

#[test]
fn words_and_sessions_are_shown_whole() {
    let word =
        WordRequest { host: "zk-0".into(), port: 2181, word: "srvr".into(), timeout_seconds: 5 };
    assert_eq!(render::question(&Question::Word(word)), "say srvr to zk-0:2181 within 5 s");
    let reads = session(vec![ZooKeeperCall::Read { path: "/a".into() }]);
    let shown = render::question(&Question::ZooKeeper(reads));
    assert_eq!(shown, "ZooKeeper at zk-0:2181 within 5 s\n  read /a");
    let calls = vec![
        ZooKeeperCall::Create { path: "/a".into(), data: String::new() },
        ZooKeeperCall::Write { path: "/a/b".into(), data: "SIZE=3".into(), version: 7 },
        ZooKeeperCall::Reconfigure { joining: String::new(), leaving: "4".into(), from: 0x1a },
    ];
    let action = Action {
        name: "record-size",
        gate: "QuorumServes",
        request: Request::ZooKeeper(session(calls)),
        why: "it differs".into(),
    };
    let expected = "do record-size (gate QuorumServes): it differs
ZooKeeper at zk-0:2181 within 5 s
  create /a \"\"
  write /a/b \"SIZE=3\" over version 7
  reconfigure version 1a, joining \"\", leaving \"4\"";
    assert_eq!(render::step(&Step::Act(action)), expected);
}

/// A question changes nothing; the runner holds plans to it.
#[test]
fn only_reads_are_told_from_changes() {
    let read = || ZooKeeperCall::Read { path: "/a".into() };
    let write = ZooKeeperCall::Write { path: "/a".into(), data: "b".into(), version: 0 };
    assert!(session(vec![read(), read()]).only_reads());
    assert!(!session(vec![read(), write]).only_reads());
}
