//! The images `zookeeper` and `rabbitmq` start in pods, and keep what other people's manifests expect of the official
//! images.

#[allow(dead_code, reason = "this program makes pods of its own")]
mod pods;

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{LogParams, PostParams};
use pods::exec;
use serde_json::{Value, json};
use testbed::images::{RABBITMQ, ZOOKEEPER};
use testbed::{Cluster, node};

async fn place(prefix: &str) -> Result<Option<(kube::Client, String)>> {
    if !node::require_or_skip(&[ZOOKEEPER, RABBITMQ])? {
        return Ok(None);
    }
    let cluster = Cluster::shared().await?;
    let namespace = cluster.plane().create_namespace(prefix).await?;
    Ok(Some((cluster.plane().client().await?, namespace)))
}

/// A pod of one container that is ready when a command in it succeeds.
fn pod(name: &str, image: &str, ready: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "containers": [{
                "name": "server",
                "image": image,
                "readinessProbe":
                    {"exec": {"command": ready}, "periodSeconds": 3, "timeoutSeconds": 30},
            }],
        },
    })
}

const ASK_ZOOKEEPER: [&str; 3] = ["sh", "-c", "echo srvr | nc -w 5 127.0.0.1 2181 | grep Mode"];

#[tokio::test]
async fn zookeeper_serves_as_its_user_with_settings_from_the_environment() -> Result<()> {
    let Some((client, namespace)) = place("zookeeper").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(client, &namespace);
    let mut wanted = pod("zk", "zookeeper:3.9", &ASK_ZOOKEEPER);
    wanted["spec"]["containers"][0]["env"] = json!([
        {"name": "ZOO_MY_ID", "value": "7"},
        {"name": "ZOO_TICK_TIME", "value": "1000"},
        {"name": "ZOO_SERVERS", "value": "server.7=localhost:2888:3888;2181"},
        {"name": "ZOO_4LW_COMMANDS_WHITELIST", "value": "srvr,ruok"},
        {"name": "ZOO_CFG_EXTRA", "value": "reconfigEnabled=true \
            metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider \
            metricsProvider.httpPort=7000"},
    ]);
    pods::run(&pods, wanted).await?;

    let said = async |words: &str| exec(&pods, "zk", &["sh", "-c", words]).await;
    let answer = said("echo ruok | nc -w 5 127.0.0.1 2181").await?;
    ensure!(answer == "imok", "{answer}");
    let answer = said("echo srvr | nc -w 5 127.0.0.1 2181").await?;
    ensure!(
        answer.contains("Zookeeper version: 3.9") && answer.contains("Mode: standalone"),
        "{answer}"
    );
    let owners = said("stat -c %u /data/myid /datalog/version-2 && cat /data/myid").await?;
    ensure!(owners.split_whitespace().eq(["1000", "1000", "7"]), "{owners}");
    let settings = said("cat /conf/zoo.cfg").await?;
    for line in ["dataDir=/data", "tickTime=1000", "reconfigEnabled=true"] {
        ensure!(settings.lines().any(|found| found == line), "no {line} in {settings}");
    }
    // Server and client as other people's scripts call them.
    let status = said("zkServer.sh status").await?;
    ensure!(status.contains("Mode: standalone"), "{status}");
    let made = said("zkCli.sh -server localhost:2181 create /seen there 2>&1").await?;
    ensure!(made.contains("Created /seen"), "{made}");
    let read = said("zkCli.sh -server localhost:2181 get /seen 2>/dev/null").await?;
    ensure!(read.lines().any(|line| line == "there"), "{read}");
    let request = "printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' | nc -w 5 127.0.0.1 7000";
    let metrics = said(&format!("{request} | grep -c ^znode_count")).await?;
    ensure!(metrics == "1", "{metrics}");
    Ok(())
}

/// Settings in a folder of the pod's own, any user, a root file system that cannot be written.
#[tokio::test]
async fn zookeeper_takes_its_configuration_from_a_folder_that_is_mounted() -> Result<()> {
    let Some((client, namespace)) = place("zookeeper").await? else { return Ok(()) };
    let settings = json!({"metadata": {"name": "conf"}, "data": {"zoo.cfg":
        "dataDir=/data\ntickTime=2000\ninitLimit=10\nsyncLimit=2\nclientPort=2181\n\
         admin.enableServer=false\n4lw.commands.whitelist=*\n"}});
    let maps = Api::<ConfigMap>::namespaced(client.clone(), &namespace);
    maps.create(&PostParams::default(), &serde_json::from_value(settings)?).await?;
    let pods = Api::<Pod>::namespaced(client, &namespace);
    let mut wanted = pod("zk", "zookeeper:3.9", &ASK_ZOOKEEPER);
    wanted["spec"]["securityContext"] = json!({"runAsUser": 12345, "fsGroup": 12345});
    wanted["spec"]["volumes"] =
        json!([{"name": "conf", "configMap": {"name": "conf"}}, {"name": "data", "emptyDir": {}}]);
    let container = &mut wanted["spec"]["containers"][0];
    container["command"] = json!(["zkServer.sh", "--config", "/mounted", "start-foreground"]);
    container["volumeMounts"] = json!([
        {"name": "conf", "mountPath": "/mounted"}, {"name": "data", "mountPath": "/data"}]);
    container["securityContext"] = json!({"readOnlyRootFilesystem": true});
    container["env"] = json!([{"name": "JMXDISABLE", "value": "true"},
        {"name": "SERVER_JVMFLAGS", "value": "-XX:-UsePerfData"}]);
    pods::run(&pods, wanted).await
}

#[tokio::test]
async fn rabbitmq_answers_its_ping_with_the_plugins_of_its_file() -> Result<()> {
    let Some((client, namespace)) = place("rabbitmq").await? else { return Ok(()) };
    let plugins = json!({"metadata": {"name": "plugins"}, "data":
        {"enabled_plugins": "[rabbitmq_management,rabbitmq_shovel]."}});
    let maps = Api::<ConfigMap>::namespaced(client.clone(), &namespace);
    maps.create(&PostParams::default(), &serde_json::from_value(plugins)?).await?;
    let pods = Api::<Pod>::namespaced(client, &namespace);
    let mut wanted = pod("mq", RABBITMQ.name(), &["rabbitmq-diagnostics", "ping"]);
    wanted["spec"]["volumes"] = json!([{"name": "plugins", "configMap": {"name": "plugins"}}]);
    let container = &mut wanted["spec"]["containers"][0];
    container["volumeMounts"] = json!([{"name": "plugins", "subPath": "enabled_plugins",
        "mountPath": "/etc/rabbitmq/enabled_plugins"}]);
    container["env"] = json!([
        {"name": "RABBITMQ_DEFAULT_USER", "value": "ann"},
        {"name": "RABBITMQ_DEFAULT_PASS", "value": pods::PASSWORD},
        {"name": "RABBITMQ_DEFAULT_VHOST", "value": "shop"},
        {"name": "RABBITMQ_ERLANG_COOKIE", "value": "of this test"},
    ]);
    pods::run(&pods, wanted).await?;

    let said = async |words: &[&str]| exec(&pods, "mq", words).await;
    let enabled = said(&["rabbitmq-plugins", "list", "-E", "-m", "-q"]).await?;
    ensure!(enabled.split_whitespace().eq(["rabbitmq_management", "rabbitmq_shovel"]), "{enabled}");
    said(&["rabbitmqctl", "authenticate_user", "ann", pods::PASSWORD]).await?;
    let hosts = said(&["rabbitmqctl", "-q", "list_vhosts", "--no-table-headers"]).await?;
    ensure!(hosts == "shop", "{hosts}");
    let cookie = said(&["stat", "-c", "%u %a", "/var/lib/rabbitmq/.erlang.cookie"]).await?;
    ensure!(cookie == "999 600", "{cookie}");
    Ok(())
}

#[tokio::test]
async fn rabbitmq_runs_as_its_user_and_refuses_settings_that_it_would_not_honour() -> Result<()> {
    let Some((client, namespace)) = place("rabbitmq").await? else { return Ok(()) };
    let pods = Api::<Pod>::namespaced(client, &namespace);
    let mut refused = pod("refused", RABBITMQ.name(), &["true"]);
    refused["spec"]["restartPolicy"] = json!("Never");
    refused["spec"]["containers"][0]["env"] =
        json!([{"name": "RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "value": "0.3"}]);
    pods.create(&PostParams::default(), &serde_json::from_value(refused)?).await?;
    let failed = |pod: Option<&Pod>| {
        pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) == Some("Failed")
    };
    pods::wait(&pods, "refused", failed).await?;
    let log = pods.logs("refused", &LogParams::default()).await?;
    ensure!(log.contains("RABBITMQ_VM_MEMORY_HIGH_WATERMARK is set but deprecated"), "{log}");

    let mut wanted = pod("mq", RABBITMQ.name(), &["rabbitmq-diagnostics", "ping"]);
    wanted["spec"]["securityContext"] =
        json!({"runAsUser": 999, "runAsGroup": 999, "fsGroup": 999, "runAsNonRoot": true});
    wanted["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    wanted["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/var/lib/rabbitmq"}]);
    pods::run(&pods, wanted).await?;
    let owner = exec(&pods, "mq", &["sh", "-c", "stat -c %u /var/lib/rabbitmq/mnesia"]).await?;
    ensure!(owner == "999", "the data belong to {owner}");
    Ok(())
}
