//! Real PostgreSQL servers in pods of a real API server: what works, works over the pod's address and with
//! the password alone; what is broken in the template is said where a kubelet says it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says where")]

mod bench;

use bench::{ask, bench, container_status, is_ready, postgres_pod, waiting};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_database_with_everything_comes_ready_and_keeps_its_data() {
    let Some(mut bench) = bench().await else { return };
    bench
        .create_secret("credentials", json!({"password": "right/tmp/one", "app": "app's own"}))
        .await;
    bench.create_claim("data-db-0").await;
    bench
        .create_config_map(
            "config",
            json!({
                "postgresql.conf": "max_connections = 23\nunix_socket_directories = '/var/run/postgresql'\n\
                    hba_file = '/etc/steadfast/pg_hba.conf'\nlisten_addresses = '*'\n",
                "pg_hba.conf": "local all all trust\nhost all all all scram-sha-256\n"}),
        )
        .await;
    bench
        .create_config_map(
            "scripts",
            json!({
                "10-role.sh": "set -e\npassword=$(cat /etc/secrets/app)\n\
                    printf \"CREATE ROLE app LOGIN PASSWORD '%s'\" \"${password/\\'/\\'\\'}\" | docker_process_sql\n",
                "20-table.sql": "CREATE TABLE seen AS SELECT 'by script'::text AS how;\n"}),
        )
        .await;
    let mut pod = postgres_pod("db-0");
    let container = &mut pod["spec"]["containers"][0];
    container["args"] = json!(["postgres", "-c", "config_file=/etc/steadfast/postgresql.conf"]);
    container["env"].as_array_mut().expect("a list").extend([
        json!({"name": "POSTGRES_DB", "value": "shop"}),
        json!({"name": "POSTGRES_INITDB_ARGS", "value": "--auth-host=scram-sha-256 --data-checksums"}),
    ]);
    container["volumeMounts"] = json!([
        {"name": "data", "mountPath": "/var/lib/postgresql/data"},
        {"name": "config", "mountPath": "/etc/steadfast"},
        {"name": "secrets", "mountPath": "/etc/secrets"},
        {"name": "run", "mountPath": "/var/run/postgresql"},
        {"name": "scripts", "mountPath": "/docker-entrypoint-initdb.d/10-role.sh", "subPath": "10-role.sh"},
        {"name": "scripts", "mountPath": "/docker-entrypoint-initdb.d/20-table.sql", "subPath": "20-table.sql"}]);
    pod["spec"]["volumes"] = json!([
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}},
        {"name": "config", "configMap": {"name": "config"}},
        {"name": "secrets", "secret": {"secretName": "credentials"}},
        {"name": "run", "emptyDir": {}},
        {"name": "scripts", "configMap": {"name": "scripts"}}]);
    bench.create_pod(pod.clone()).await;
    let running = bench.until_ready("db-0").await;
    let superuser = "user=postgres password=right/tmp/one dbname=shop";
    assert_eq!(ask(&running, superuser, "SELECT how FROM seen").await.as_deref(), Ok("by script"));
    assert_eq!(ask(&running, superuser, "SHOW max_connections").await.as_deref(), Ok("23"));
    assert_eq!(
        ask(&running, superuser, "SHOW listen_addresses").await,
        Ok(bench::address(&running))
    );
    let app = "user=app password='app\\'s own' dbname=shop";
    assert_eq!(ask(&running, app, "SELECT current_user::text").await.as_deref(), Ok("app"));
    for wrong in ["user=postgres password=wrong dbname=shop", "user=app password=right dbname=shop"]
    {
        let refusal =
            ask(&running, wrong, "SELECT ''::text").await.expect_err("a wrong password is refused");
        assert!(refusal.starts_with("28P01"), "{refusal}");
    }
    let first_log =
        bench.node.as_ref().and_then(|node| node.logs(&bench.namespace, "db-0", "postgres"));
    assert!(first_log.expect("a log").contains("init process complete"));

    bench.delete_pod("db-0").await;
    bench.until_gone("db-0").await;
    assert_eq!(
        bench::processes_below(&bench.state_dir.join("c")),
        Vec::<String>::new(),
        "the server is stopped"
    );
    bench.create_pod(pod).await;
    let again = bench.until_ready("db-0").await;
    assert_eq!(ask(&again, superuser, "SELECT how FROM seen").await.as_deref(), Ok("by script"));
    let second_log =
        bench.node.as_ref().and_then(|node| node.logs(&bench.namespace, "db-0", "postgres"));
    let second_log = second_log.expect("a log");
    assert!(second_log.contains("Skipping initialization"), "{second_log}");
    bench.until_event("which is not the version asked for").await;
    let node = bench.node.take().expect("the node runs");
    node.stop().await;
    assert!(!bench.state_dir.exists(), "the node's files are removed");
    assert_eq!(bench::processes_below(&bench.state_dir), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_images_defaults_let_nobody_in_without_the_password() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    bench.create_pod(postgres_pod("plain")).await;
    let pod = bench.until_ready("plain").await;
    let good = ask(&pod, "user=postgres password=right", "SELECT current_database()::text").await;
    assert_eq!(good.as_deref(), Ok("postgres"));
    let refusal =
        ask(&pod, "user=postgres password=wrong", "SELECT ''::text").await.expect_err("refused");
    assert!(refusal.starts_with("28P01"), "{refusal}");
    let node = bench.node.as_ref().expect("the node runs");
    let question =
        ["psql", "-U", "postgres", "-Atc", "SHOW unix_socket_directories"].map(str::to_owned);
    let target = (bench.namespace.as_str(), "plain", "postgres");
    let (code, output) = node.exec(target, &question, bench::PATIENCE).await.expect("exec works");
    assert_eq!(code, 0, "{output}");
    assert!(output.trim().starts_with(bench.state_dir.to_str().expect("text")), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_cannot_be_had_is_reported_and_a_good_one_taken_up() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    let mut pod = postgres_pod("db");
    pod["spec"]["containers"][0]["image"] = json!("postgres:does-not-exist");
    bench.create_pod(pod).await;
    let reason = |wanted: &'static str| {
        move |pod: &k8s_openapi::api::core::v1::Pod| {
            waiting(pod, "postgres").is_some_and(|(r, _)| r == wanted)
        }
    };
    let stuck = bench.until("db", "ImagePullBackOff", reason("ImagePullBackOff")).await;
    let (_, message) = waiting(&stuck, "postgres").expect("waiting");
    assert!(message.contains("Back-off pulling image \"postgres:does-not-exist\""), "{message}");
    assert_eq!(stuck.status.as_ref().and_then(|s| s.phase.as_deref()), Some("Pending"));
    bench.until_event("Failed to pull image \"postgres:does-not-exist\"").await;
    let patch = kube::api::Patch::Strategic(
        json!({"spec": {"containers": [{"name": "postgres", "image": "postgres:16"}]}}),
    );
    bench
        .pods()
        .patch("db", &kube::api::PatchParams::default(), &patch)
        .await
        .expect("an image may be changed");
    bench.until_ready("db").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_configuration_is_named_and_waited_for() {
    let Some(bench) = bench().await else { return };
    bench.create_pod(postgres_pod("db")).await;
    let message_is = |text: String| {
        move |pod: &k8s_openapi::api::core::v1::Pod| {
            waiting(pod, "postgres")
                .is_some_and(|(r, m)| r == "CreateContainerConfigError" && m == text)
        }
    };
    let absent = "secret \"credentials\" not found".to_owned();
    bench.until("db", "the missing Secret named", message_is(absent)).await;
    bench.create_secret("credentials", json!({"other": "x"})).await;
    let no_key = format!("couldn't find key password in Secret {}/credentials", bench.namespace);
    bench.until("db", "the missing key named", message_is(no_key)).await;
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> =
        kube::Api::namespaced(bench.client.clone(), &bench.namespace);
    let patch = kube::api::Patch::Merge(json!({"stringData": {"password": "right"}}));
    secrets
        .patch("credentials", &kube::api::PatchParams::default(), &patch)
        .await
        .expect("the Secret is patched");
    bench.until_ready("db").await;
    bench.until_event("Error: secret \"credentials\" not found").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_a_password_and_a_bad_argument_crash_with_their_reason() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": ""})).await;
    bench.create_pod(postgres_pod("open")).await;
    let crashed = |text: &'static str| {
        move |pod: &k8s_openapi::api::core::v1::Pod| {
            let status = container_status(pod, "postgres");
            let last = status.and_then(|s| s.last_state).and_then(|s| s.terminated);
            last.is_some_and(|t| t.exit_code == 1 && t.message.unwrap_or_default().contains(text))
                && waiting(pod, "postgres").is_some_and(|(r, _)| r == "CrashLoopBackOff")
                && !is_ready(pod)
        }
    };
    let reason = "superuser password is not specified";
    let pod = bench.until("open", "CrashLoopBackOff with the image's words", crashed(reason)).await;
    assert_eq!(container_status(&pod, "postgres").map(|s| s.restart_count), Some(1));

    bench.create_secret("good", json!({"password": "right"})).await;
    let mut pod = postgres_pod("typo");
    let container = &mut pod["spec"]["containers"][0];
    container["env"][0]["valueFrom"]["secretKeyRef"]["name"] = json!("good");
    container["args"] = json!(["-c", "no_such_setting=1"]);
    bench.create_pod(pod).await;
    let reason = "unrecognized configuration parameter \"no_such_setting\"";
    bench.until("typo", "CrashLoopBackOff with the server's words", crashed(reason)).await;
    bench.until_event("Back-off restarting failed container postgres in pod typo").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_init_script_ends_the_container_and_leaves_what_the_image_leaves() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    bench.create_config_map("scripts", json!({"boom.sql": "SELECT no_such_function();\n"})).await;
    let mut pod = postgres_pod("db");
    let container = &mut pod["spec"]["containers"][0];
    container["volumeMounts"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "scripts", "mountPath": "/docker-entrypoint-initdb.d"}));
    pod["spec"]["volumes"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "scripts", "configMap": {"name": "scripts"}}));
    bench.create_pod(pod).await;
    let failed_once = |pod: &k8s_openapi::api::core::v1::Pod| {
        let last = container_status(pod, "postgres").and_then(|s| s.last_state?.terminated);
        last.is_some_and(|t| {
            t.exit_code == 3 && t.message.unwrap_or_default().contains("no_such_function")
        })
    };
    bench.until("db", "the script's exit code and words", failed_once).await;
    // The half-initialised folder is taken for a whole one at the second start, as with the real image.
    bench.until_ready("db").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_and_mounted_files_decide_about_readiness() {
    let Some(bench) = bench().await else { return };
    bench.create_secret("credentials", json!({"password": "right"})).await;
    bench.create_config_map("switch", json!({"state": "off"})).await;
    let mut pod = postgres_pod("db");
    let container = &mut pod["spec"]["containers"][0];
    container["readinessProbe"]["exec"]["command"] = json!([
        "sh",
        "-c",
        "pg_isready -U postgres && grep -q on /etc/switch/state || { echo switched off; exit 1; }"
    ]);
    container["livenessProbe"] =
        json!({"tcpSocket": {"port": "postgres"}, "initialDelaySeconds": 60});
    container["volumeMounts"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "s", "mountPath": "/etc/switch"}));
    pod["spec"]["volumes"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"name": "s", "configMap": {"name": "switch"}}));
    bench.create_pod(pod).await;
    bench.until_event("Readiness probe failed").await;
    bench.until_event("switched off").await;
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> =
        kube::Api::namespaced(bench.client.clone(), &bench.namespace);
    let set = async |state: &str| {
        let patch = kube::api::Patch::Merge(json!({"data": {"state": state}}));
        maps.patch("switch", &kube::api::PatchParams::default(), &patch)
            .await
            .expect("the ConfigMap is patched");
    };
    set("on").await;
    let pod = bench.until_ready("db").await;
    assert_eq!(container_status(&pod, "postgres").map(|s| s.restart_count), Some(0));
    set("off").await;
    bench.until("db", "not Ready again", |pod| !is_ready(pod)).await;
}
