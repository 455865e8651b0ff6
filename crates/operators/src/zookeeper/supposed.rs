//! What a forecast supposes that the servers answer: what the plan hopes for.
//!
//! Every ready server serves, the lowest leads, and the scripts of the image register and remove the
//! members that the set has. The record is what it was when the forecast began, and what was written
//! on the way. Must stay in step with what [`super::ensemble`] reads.

use std::fmt::Write;

use phased::fact::{Node, Reply, WordOutcome, ZooKeeperCall, ZooKeeperOutcome};
use phased::step::Request;
use phased::{Live, Past, Question};
use serde_json::Value;

use super::context::Context;
use super::size;
use crate::parts::members::Members;
use crate::parts::scene::Scene;

/// The reply that is hoped for; `None` for questions that are not to the servers.
pub(super) fn reply(context: &Context, question: &Question, past: &Past<'_>) -> Option<Reply> {
    let servers = context.servers();
    let asked = |to: &dyn Fn(u32) -> Question| {
        servers.ready.iter().copied().find(|ordinal| to(*ordinal) == *question)
    };
    let address = &context.address;
    if let Some(ordinal) = asked(&|n| address.word(n, "srvr")) {
        let leads = servers.ready.first() == Some(&ordinal);
        let mode = if leads { "leader" } else { "follower" };
        return Some(said(format!("Mode: {mode}\n")));
    }
    if let Some(ordinal) = asked(&|n| address.word(n, "conf")) {
        return Some(said(settings(context, past, ordinal)));
    }
    asked(&|n| address.records(n))?;
    let record = record(context, past);
    let parent = record.is_some().then(|| node(""));
    let told = vec![parent, record.map(|text| node(&text)), Some(node(&membership(context, past)))];
    Some(Reply::ZooKeeper(ZooKeeperOutcome::Done(told)))
}

fn said(text: String) -> Reply {
    Reply::Word(WordOutcome::Said(text))
}

fn node(data: &str) -> Node {
    Node { data: data.to_owned(), version: 0 }
}

/// What the record says: by the last write on the way, else as a cluster that has served has it.
fn record(context: &Context, past: &Past<'_>) -> Option<String> {
    let path = context.names.record();
    let written = past.done.iter().rev().find_map(|action| match &action.request {
        Request::ZooKeeper(request) => request.calls.iter().find_map(|call| match call {
            ZooKeeperCall::Create { path: at, data }
            | ZooKeeperCall::Write { path: at, data, .. }
                if *at == path =>
            {
                Some(data.clone())
            }
            ZooKeeperCall::Create { .. }
            | ZooKeeperCall::Write { .. }
            | ZooKeeperCall::Read { .. }
            | ZooKeeperCall::Reconfigure { .. } => None,
        }),
        Request::Sql(_) | Request::Exec(_) => None,
    });
    let served = past.seen.root.value["status"]["metaRootCreated"] == true;
    let set = past.seen.object(&context.set_id()).filter(|_| served);
    let count = set.and_then(|set| set.value["spec"]["replicas"].as_u64());
    written.or_else(|| Some(size::text(u32::try_from(count?).ok()?)))
}

/// The members that the set has, each with a vote, but those that were removed on the way.
fn membership(context: &Context, past: &Past<'_>) -> String {
    let mut text = String::new();
    let left = |ordinal: u32| {
        let calls = past.done.iter().flat_map(|action| match &action.request {
            Request::ZooKeeper(request) => request.calls.as_slice(),
            Request::Sql(_) | Request::Exec(_) => &[],
        });
        let id = (ordinal + 1).to_string();
        calls.into_iter().any(
            |call| matches!(call, ZooKeeperCall::Reconfigure { leaving, .. } if *leaving == id),
        )
    };
    for ordinal in (0..context.recorded.count.unwrap_or_default()).filter(|n| !left(*n)) {
        let host = context.names.pod_host(ordinal, &context.address.domain);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "server.{}={host}:2888:3888:participant;2181", ordinal + 1);
    }
    text + "version=0"
}

/// The settings that a server runs with: those of the ConfigMap when its pod was made.
fn settings(context: &Context, past: &Past<'_>, ordinal: u32) -> String {
    let text = |live: Option<&Live>| {
        let text = live.and_then(|live| live.value.pointer("/data/zoo.cfg"));
        text.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let id = context.pod_id(ordinal);
    let uid = |live: Option<&Live>| live.map(|live| live.uid().to_owned());
    let is_old = uid(past.seen.object(&id)) == uid(context.pod(ordinal));
    let config = context.names.config_map();
    if is_old { text(past.seen.object(&config)) } else { text(context.seen(&config).as_ref()) }
}
