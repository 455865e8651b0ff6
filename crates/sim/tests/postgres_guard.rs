//! A shell script in an init container that looks at the data folder before the server may.

use std::time::Duration;

use serde_json::Value;
use sim::world::World;

const SCRIPT: &str = r#"refuse() { echo "$1" >&2; exit 1; }
if [ -s "$PGDATA/PG_VERSION" ]; then
  have=$(cat "$PGDATA/PG_VERSION")
  want=$(postgres --version 2>/dev/null | sed 's/^[^0-9]*\([0-9][0-9]*\).*$/\1/')
  if [ -n "$want" ] && [ "$have" != "$want" ]; then
    refuse "Mismatch: $have is not $want"
  fi
elif [ -d "$PGDATA" ] && [ -n "$(ls -A "$PGDATA")" ]; then
  refuse "Half: files without a version"
elif [ "$(cat /etc/guard/bootstrap)" != allowed ]; then
  refuse "Missing: nothing here"
fi
"#;

fn manifest(image: &str, bootstrap: &str) -> String {
    let script = SCRIPT.replace('\n', "\n          ");
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: guard, namespace: default}}
data: {{bootstrap: {bootstrap}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: db, namespace: default}}
spec:
  serviceName: db
  replicas: 1
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec:
      initContainers:
      - name: guard
        image: {image}
        terminationMessagePolicy: FallbackToLogsOnError
        command:
        - sh
        - -c
        - |
          {script}
        env: [{{name: PGDATA, value: /data/pgdata}}]
        volumeMounts:
        - {{name: data, mountPath: /data}}
        - {{name: guard, mountPath: /etc/guard}}
      containers:
      - name: postgres
        image: {image}
        env:
        - {{name: PGDATA, value: /data/pgdata}}
        - {{name: POSTGRES_PASSWORD, value: secret}}
        readinessProbe: {{exec: {{command: [pg_isready]}}}}
        volumeMounts: [{{name: data, mountPath: /data}}]
      volumes: [{{name: guard, configMap: {{name: guard}}}}]
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"
    )
}

/// The guard's last words, empty when it let the server start.
fn verdict(world: &World) -> String {
    let pod = world.get("Pod", "default", "db-0").expect("the pod");
    let status = &pod["status"]["initContainerStatuses"][0];
    let last = [&status["state"]["terminated"], &status["lastState"]["terminated"]];
    let failed = last.iter().find(|one| one["exitCode"].as_i64().is_some_and(|code| code != 0));
    failed.and_then(|one| one["message"].as_str()).unwrap_or("").trim().to_owned()
}

fn ready(world: &World) -> bool {
    let set = world.get("StatefulSet", "default", "db").expect("the set");
    set["status"]["readyReplicas"] == 1
}

async fn again(world: &World) {
    world.delete("Pod", "default", "db-0").expect("deleted");
    world.run_for(Duration::from_secs(60)).await;
}

#[tokio::test(start_paused = true)]
async fn the_script_decides_over_the_start() {
    let world = World::new(1);
    let driver = world.spawn();
    world.apply(&manifest("postgres:16", "refused")).expect("applied");
    world.run_for(Duration::from_secs(60)).await;
    assert_eq!(verdict(&world), "Missing: nothing here");
    world.apply(&manifest("postgres:16", "allowed")).expect("applied");
    again(&world).await;
    assert_eq!(verdict(&world), "");
    assert!(ready(&world));
    world.apply(&manifest("postgres:16", "refused")).expect("applied");
    again(&world).await;
    assert!(ready(&world), "data are there, so the word does not matter");
    world.apply(&manifest("postgres:17", "refused")).expect("applied");
    again(&world).await;
    assert_eq!(verdict(&world), "Mismatch: 16 is not 17");
    let claim = world.get("PersistentVolumeClaim", "default", "data-db-0").expect("the claim");
    let volume = claim["spec"]["volumeName"].as_str().expect("bound").to_owned();
    world.model(|model| {
        model.volumes.clear(&volume, "pgdata");
        model.volumes.write(&volume, "pgdata/base", "");
    });
    again(&world).await;
    assert_eq!(verdict(&world), "Half: files without a version");
    world.model(|model| model.volumes.clear(&volume, "pgdata"));
    again(&world).await;
    assert_eq!(verdict(&world), "Missing: nothing here");
    assert_eq!(
        world.get("Pod", "default", "db-0").map(|pod| pod["status"]["phase"].clone()),
        Some(Value::from("Pending"))
    );
    driver.abort();
}
