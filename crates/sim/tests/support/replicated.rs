//! A StatefulSet whose ordinal 0 is a primary and whose others are seeded from it by a script.

use std::time::Duration;

use serde_json::Value;
use sim::world::World;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

/// The seeding script: a shell that copies, as an init container of an operator would.
const SEED: &str = r#"refuse() { echo "$1" >&2; exit 1; }
control() { LC_ALL=C pg_controldata "$PGDATA" | sed -n "s/^$1: *//p"; }
if [ "$POD_INDEX" = 0 ]; then exit 0; fi
umask 077
printf '*:*:*:repl:%s\n' "$(sed 's/[\\:]/\\&/g' /etc/repl/password)" > /tmp/pgpass
why=
if [ -e "$VOLUME/seeding" ]; then
  why="an earlier copy did not end"
elif [ -s "$PGDATA/PG_VERSION" ]; then
  if [ ! -e "$PGDATA/standby.signal" ]; then refuse "NotAStandby: it follows no primary"; fi
else
  why="the volume is empty"
fi
copy() {
  rm -rf "$PGDATA"
  pg_basebackup -D "$PGDATA" -d "$(cat /etc/db/primary)" -S "slot_$POD_INDEX" \
    -X stream -c fast -w 2>/tmp/words
}
if [ -n "$why" ]; then
  echo "$why" > "$VOLUME/seeding" || exit 1
  copy || { sleep 5; copy; } ||
    refuse "CopyFailed: $(cat /tmp/words)"
  [ -n "$(control 'Database system identifier')" ] || refuse "CopyFailed: nothing came"
  echo "Written by the script." > "$PGDATA/standby.signal" || exit 1
  rm -f "$VOLUME/seeding"
fi
needed=$(control 'max_connections setting')
: > /tmp/more.conf
if [ -n "$needed" ] && [ "$needed" -gt 100 ] && [ -e /etc/db/raise ]; then
  echo "max_connections = $needed" >> /tmp/more.conf
fi
exit 0
"#;

/// Settings, host rules and connection string, as mounted files.
const FILES: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: db, namespace: default}
data:
  primary: 'host=db-0.db.default.svc user=repl passfile=/tmp/pgpass connect_timeout=10'
  pg_hba.conf: |
    local all postgres trust
    host replication all all scram-sha-256
    host all all all scram-sha-256
  postgresql.conf: |
    listen_addresses = '*'
    max_slot_wal_keep_size = '64MB'
    max_wal_size = '1GB'
    primary_conninfo = 'host=db-0.db.default.svc user=repl passfile=/tmp/pgpass connect_timeout=10'
    include_if_exists = '/tmp/more.conf'
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: default}
stringData: {password: pw-repl, superuser: secret}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: default}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: db}, ports: [{port: 5432}]}
---
";

fn script(option: &str) -> String {
    match (option, option.strip_prefix("slot=")) {
        ("noguard", _) => "exit 0".to_owned(),
        (_, slot) => {
            let script = SEED.replace('\n', "\n          ");
            slot.map_or(script.clone(), |slot| script.replace("slot_$POD_INDEX", slot))
        }
    }
}

/// The manifests of so many servers; `noguard` leaves the seeding out, `slot=…` names the slot.
pub(crate) fn set(replicas: usize, image: &str, option: &str) -> String {
    let slot = option.strip_prefix("slot=").unwrap_or("slot_$(POD_INDEX)");
    let script = script(option);
    format!(
        "{FILES}apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: default}}
spec:
  serviceName: db
  replicas: {replicas}
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      automountServiceAccountToken: false
      initContainers:
      - name: seed
        image: {image}
        terminationMessagePolicy: FallbackToLogsOnError
        command:
        - sh
        - -c
        - |
          {script}
        env: &env
        - {{name: PGDATA, value: /data/pgdata}}
        - {{name: VOLUME, value: /data}}
        - {{name: POSTGRES_PASSWORD, valueFrom: {{secretKeyRef: {{name: db, key: superuser}}}}}}
        - name: POD_INDEX
          valueFrom: {{fieldRef: {{fieldPath: \"metadata.labels['apps.kubernetes.io/pod-index']\"}}}}
        - {{name: POD_NAME, valueFrom: {{fieldRef: {{fieldPath: metadata.name}}}}}}
        volumeMounts:
        - {{name: data, mountPath: /data}}
        - {{name: files, mountPath: /etc/db}}
        - {{name: secret, mountPath: /etc/repl}}
        - {{name: tmp, mountPath: /tmp}}
      containers:
      - name: postgres
        image: {image}
        terminationMessagePolicy: FallbackToLogsOnError
        args:
        - postgres
        - -c
        - config_file=/etc/db/postgresql.conf
        - -c
        - hba_file=/etc/db/pg_hba.conf
        - -c
        - cluster_name=$(POD_NAME)
        - -c
        - primary_slot_name={slot}
        env: *env
        readinessProbe: {{exec: {{command: [pg_isready]}}}}
        volumeMounts:
        - {{name: data, mountPath: /data}}
        - {{name: files, mountPath: /etc/db}}
        - {{name: tmp, mountPath: /tmp}}
      volumes:
      - {{name: files, configMap: {{name: db}}}}
      - {{name: secret, secret: {{secretName: db}}}}
      - {{name: tmp, emptyDir: {{}}}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"
    )
}

/// Waits until so many pods are ready.
pub(crate) async fn settled(world: &World, ready: usize) {
    world.run_for(Duration::from_secs(5)).await;
    let key = sim::Key::new("apps", "statefulsets", "default", "db");
    let done = world.wait_until(Duration::from_secs(600), |store| {
        store
            .get(&key)
            .is_some_and(|set| set["status"]["readyReplicas"].as_u64() == u64::try_from(ready).ok())
    });
    let done = done.await;
    let seen = || {
        let pods = world.list("pods", "default");
        pods.iter().map(|pod| pod["status"].to_string()).collect::<Vec<_>>().join("\n")
    };
    assert!(done, "{}", seen());
    world.run_for(Duration::from_millis(100)).await;
}

/// The role and the slots that standbys need.
#[allow(dead_code, reason = "not every test that takes this file in prepares by itself")]
pub(crate) async fn prepare(world: &World, replicas: usize) {
    ask(world, 0, "CREATE ROLE repl LOGIN REPLICATION PASSWORD 'pw-repl'").await;
    for ordinal in 1..replicas {
        let sql = format!("SELECT pg_create_physical_replication_slot('slot_{ordinal}')");
        ask(world, 0, &sql).await;
    }
}

/// Rows joined by `;`, columns by `|`; or the error.
pub(crate) async fn ask(world: &World, ordinal: usize, sql: &str) -> String {
    let address = address(world, ordinal);
    let stream = match world.dial(&address, 5432) {
        Ok(stream) => stream,
        Err(error) => return error.to_string(),
    };
    let mut config = Config::new();
    config.user("postgres").password("secret").dbname("postgres");
    let (client, connection) = match config.connect_raw(stream, NoTls).await {
        Ok(connected) => connected,
        Err(error) => return error.to_string(),
    };
    let connection = tokio::spawn(connection);
    let answer = match client.simple_query(sql).await {
        Ok(messages) => rows(&messages),
        Err(error) => match error.as_db_error() {
            Some(refusal) => format!("{} {}", refusal.code().code(), refusal.message()),
            None => error.to_string(),
        },
    };
    connection.abort();
    answer
}

fn rows(messages: &[SimpleQueryMessage]) -> String {
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let cells = (0..row.len()).map(|index| row.get(index).unwrap_or("NULL"));
            Some(cells.collect::<Vec<_>>().join("|"))
        }
        _ => None,
    });
    rows.collect::<Vec<_>>().join(";")
}

/// The last words of a copy in a pod of its own.
#[allow(dead_code, reason = "not every test that takes this file in copies by itself")]
pub(crate) async fn copy(world: &World, from: &str) -> String {
    let manifest = format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: copy, namespace: default}}
spec:
  automountServiceAccountToken: false
  restartPolicy: Never
  initContainers:
  - name: copy
    image: postgres:15
    terminationMessagePolicy: FallbackToLogsOnError
    command: [sh, -c, 'pg_basebackup -D /data/copy -d \"{from}\" -S nope -X stream -c fast -w']
    volumeMounts: [{{name: data, mountPath: /data}}]
  containers: [{{name: main, image: 'postgres:15', command: [sleep]}}]
  volumes: [{{name: data, emptyDir: {{}}}}]
"
    );
    world.apply(&manifest).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    let pod = world.get("Pod", "default", "copy").expect("the pod");
    let ended = &pod["status"]["initContainerStatuses"][0]["state"]["terminated"];
    assert_eq!(ended["exitCode"], 1, "{pod}");
    world.delete("Pod", "default", "copy").expect("deleted");
    world.run_for(Duration::from_secs(10)).await;
    ended["message"].as_str().unwrap_or("").to_owned()
}

fn pod(world: &World, ordinal: usize) -> Value {
    world.get("Pod", "default", &format!("db-{ordinal}")).unwrap_or_default()
}

/// The address of a pod.
pub(crate) fn address(world: &World, ordinal: usize) -> String {
    pod(world, ordinal)["status"]["podIP"].as_str().unwrap_or("").to_owned()
}

/// The volume of a pod.
#[allow(dead_code, reason = "not every test that takes this file in breaks volumes")]
pub(crate) fn volume(world: &World, ordinal: usize) -> String {
    let claim = world.get("PersistentVolumeClaim", "default", &format!("data-db-{ordinal}"));
    claim.unwrap_or_default()["spec"]["volumeName"].as_str().unwrap_or("").to_owned()
}

/// What the server of a pod has logged since it started.
#[allow(dead_code, reason = "not every test that takes this file in reads logs")]
pub(crate) fn log(world: &World, ordinal: usize) -> String {
    let server = world.postgres("default", &format!("db-{ordinal}"));
    server.map(|server| server.log()).unwrap_or_default()
}

/// The last words of the containers of a pod.
#[allow(dead_code, reason = "not every test that takes this file in reads last words")]
pub(crate) fn end(world: &World, ordinal: usize) -> String {
    let pod = pod(world, ordinal);
    let mut words = String::new();
    for list in ["initContainerStatuses", "containerStatuses"] {
        for status in pod["status"][list].as_array().into_iter().flatten() {
            for state in ["state", "lastState"] {
                words.push_str(status[state]["terminated"]["message"].as_str().unwrap_or(""));
            }
        }
    }
    words
}
