//! The servers' files: `zoo.cfg`, what the scripts read, and the log settings.
//!
//! The keys, and the place of the last line of `zoo.cfg`, are a contract with the scripts of the
//! image. Everything is in a fixed order, so that the same spec gives the same text.

use std::fmt::Write;

use phased::child::Desired;
use phased::digest;
use serde_json::{Value, json};

use super::blueprint::Blueprint;
use super::family::SCRIPTS_ANNOTATION;
use super::valid::{ADMIN_SERVER, CLIENT, LEADER_ELECTION, METRICS, QUORUM};

/// Annotation on StatefulSet and ConfigMap: digest of the configuration that the servers were first
/// run with.
pub const BASELINE_ANNOTATION: &str = "steadfast.dev/config-baseline";

/// Words that the operator and the probes use.
const WORDS: &str = "cons, envi, conf, crst, srvr, stat, mntr, ruok";
const METRICS_PROVIDER: &str = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";

/// Log settings of the server, and of the programs that the scripts run. Images with ZooKeeper 3.8 or
/// newer do not read them.
const LOG: &str = "\
# Written by steadfast; edits are taken back.
log4j.rootLogger=INFO, CONSOLE
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.Threshold=INFO
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n
";
const QUIET_LOG: &str = "\
# Written by steadfast; edits are taken back.
log4j.rootLogger=ERROR, CONSOLE
log4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender
log4j.appender.CONSOLE.Threshold=ERROR
log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout
log4j.appender.CONSOLE.layout.ConversionPattern=%d{ISO8601} [myid:%X{myid}] - %-5p [%t:%C{1}@%L] - %m%n
";

/// The ConfigMap.
pub fn config_map(blueprint: &Blueprint) -> Desired {
    let body = json!({
        "metadata": {"annotations": records(blueprint)},
        "data": {
            "zoo.cfg": server_settings(blueprint),
            "env.sh": environment(blueprint, Some(blueprint.valid.replicas)),
            "log4j.properties": LOG,
            "log4j-quiet.properties": QUIET_LOG,
        },
    });
    blueprint.owned(blueprint.names.config_map(), blueprint.valid.labels.clone(), body)
}

/// What is recorded on both the ConfigMap and the StatefulSet, since each may outlive the other.
pub fn records(blueprint: &Blueprint) -> Value {
    json!({
        SCRIPTS_ANNOTATION: blueprint.scripts.as_str(),
        BASELINE_ANNOTATION: blueprint.baseline(),
    })
}

/// Digest of everything that a server reads when it starts. The size is not part of it: nothing
/// reads it from here, and a change of it must restart nobody.
pub fn digest(blueprint: &Blueprint) -> String {
    let files = [&server_settings(blueprint), &environment(blueprint, None), LOG, QUIET_LOG];
    digest::of(&json!(files))
}

/// `zoo.cfg`. Of two lines of one name the server takes the later, so the operator's own come last.
fn server_settings(blueprint: &Blueprint) -> String {
    let valid = &blueprint.valid;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}={value}");
    };
    for (name, value) in &valid.settings.additional {
        line(name, value);
    }
    line("4lw.commands.whitelist", WORDS);
    line("dataDir", "/data");
    line("standaloneEnabled", "false");
    line("reconfigEnabled", "true");
    line("skipACL", "yes");
    line("metricsProvider.className", METRICS_PROVIDER);
    line("metricsProvider.httpPort", &valid.port(METRICS).to_string());
    line("metricsProvider.exportJvmInfo", "true");
    for (name, value) in &valid.settings.tuned {
        line(name, value);
    }
    line("admin.serverPort", &valid.port(ADMIN_SERVER).to_string());
    line("dynamicConfigFile", "/data/zoo.cfg.dynamic");
    text
}

/// `env.sh`, which the scripts of the image source.
fn environment(blueprint: &Blueprint, size: Option<u32>) -> String {
    let (names, valid) = (&blueprint.names, &blueprint.valid);
    let mut text = String::from("#!/usr/bin/env bash\n\n");
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name}={value}");
    };
    line("DOMAIN", &names.domain(&blueprint.cluster_domain));
    line("QUORUM_PORT", &valid.port(QUORUM).to_string());
    line("LEADER_PORT", &valid.port(LEADER_ELECTION).to_string());
    line("CLIENT_HOST", &names.client_service().name);
    line("CLIENT_PORT", &valid.port(CLIENT).to_string());
    line("ADMIN_SERVER_HOST", &names.admin_service().name);
    line("ADMIN_SERVER_PORT", &valid.port(ADMIN_SERVER).to_string());
    line("CLUSTER_NAME", &names.name);
    if let Some(size) = size {
        line("CLUSTER_SIZE", &size.to_string());
    }
    text
}
