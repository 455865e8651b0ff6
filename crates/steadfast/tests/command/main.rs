//! The commands as a person calls them: the binary, its output in a pipe, and its exit code.

mod called;

use called::{Called, Place, call, with_cluster};
use insta::assert_snapshot;

const TEST_DB: &str = include_str!("../../../../examples/test-db.yaml");

fn shown(called: &Called) -> String {
    format!("{}exit code {}\n", called.output, called.code)
}

/// Standard error, where mistakes are told.
fn told(called: &Called) -> String {
    assert_eq!(called.output, "", "nothing on standard output");
    format!("{}exit code {}\n", called.errors, called.code)
}

#[test]
fn a_first_install_is_foreseen_without_a_cluster() {
    let place = Place::new(&[("test-db.yaml", TEST_DB)]);
    let planned = call(&place, &["plan", "--offline", "-f", "test-db.yaml"]);
    assert_eq!(planned.code, 2);
    assert!(planned.output.lines().all(|line| line.chars().count() <= 80), "{}", planned.output);
    assert!(!planned.output.contains('\x1b'), "no colour in a pipe");
    assert_snapshot!(shown(&planned));
}

#[test]
fn children_are_rendered_the_same_every_time_and_without_secrets() {
    let place = Place::new(&[("test-db.yaml", TEST_DB)]);
    let first = call(&place, &["render", "-f", "test-db.yaml"]);
    let second = call(&place, &["render", "-f", "test-db.yaml"]);
    assert_eq!(first.output, second.output);
    assert!(!first.output.contains("\ndata:\n  password"), "no password");
    assert_snapshot!(shown(&first));
}

#[test]
fn the_ladder_of_a_kind_is_drawn_in_three_forms() {
    let place = Place::new(&[]);
    let drawn = |form: &str| call(&place, &["graph", "databases", "-o", form]);
    assert_snapshot!(shown(&drawn("mermaid")));
    assert!(drawn("dot").output.starts_with("digraph \"Database\" {"));
    let svg = drawn("svg").output;
    assert!(svg.starts_with("<svg ") && svg.contains("Verifying") && svg.ends_with("</svg>\n"));
}

#[test]
fn programs_read_forecasts_as_json_and_yaml() {
    let place = Place::new(&[("test-db.yaml", TEST_DB)]);
    let json = call(&place, &["plan", "--offline", "-f", "test-db.yaml", "-o", "json"]);
    let read: serde_json::Value = serde_json::from_str(&json.output).expect("JSON");
    assert_eq!(read["forecasts"][0]["outcome"], "new");
    let yaml = call(&place, &["plan", "--offline", "-f", "test-db.yaml", "-o", "yaml"]);
    let same: serde_json::Value = serde_saphyr::from_str(&yaml.output).expect("YAML");
    assert_eq!(read, same);
}

#[test]
fn standard_input_folders_and_several_documents_are_read() {
    let two = format!("{TEST_DB}---\n{}", TEST_DB.replace("test-db", "second"));
    let others = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let place = Place::new(&[("all/a.yaml", &two), ("all/b.yml", others), ("all/notes.txt", "x")]);
    let folder = call(&place, &["plan", "--offline", "-f", "all"]);
    let last = folder.output.lines().last().unwrap_or_default().to_owned();
    assert!(folder.output.contains("Plan: 2 resources (2 new)"), "{}", folder.output);
    assert!(last.ends_with("Nothing was written."), "the summary is last: {last}");
    let piped = place.pipe(&two, &["plan", "--offline", "-f", "-"]);
    assert!(piped.output.contains("(stdin#2)"), "{}", piped.output);
}

#[test]
fn mistakes_in_files_are_one_sentence_and_a_next_step() {
    let typo = TEST_DB.replace("databaseName", "databasename");
    let old = TEST_DB.replace("example.com/v1", "example.com/v1alpha1");
    let size = TEST_DB.replace("10Gi", "ten");
    let twice = format!("{TEST_DB}---\n{TEST_DB}");
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let place = Place::new(&[
        ("typo.yaml", &typo),
        ("old.yaml", &old),
        ("size.yaml", &size),
        ("twice.yaml", &twice),
        ("other.yaml", other),
        ("broken.yaml", "a: [1,\nb: }"),
        ("half.yaml", "kind: Database\n"),
        ("empty.yaml", "# nothing\n"),
        ("spaced.yaml", &TEST_DB.replace("name: test-db", "name: test-db\n  namespace: shop")),
        ("folder/notes.txt", "x"),
    ]);
    place.write_bytes("binary.yaml", b"\xff\xfe\x00");
    let mut all = String::new();
    for words in [
        "plan --offline -f typo.yaml",
        "plan --offline -f size.yaml",
        "plan --offline -f old.yaml",
        "plan --offline -f twice.yaml",
        "plan --offline -f other.yaml",
        "plan --offline -f broken.yaml",
        "plan --offline -f half.yaml",
        "plan --offline -f empty.yaml",
        "plan --offline -f missing.yaml",
        "plan --offline -f binary.yaml",
        "plan --offline -f folder",
        "plan --offline -n default -f spaced.yaml",
        "plan --offline",
        "plan --offline -f https://example.com/db.yaml",
        "render -f typo.yaml",
        "graph Databse",
        "explain Database/a b",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let called = call(&place, &words);
        let output = called.output.trim_start();
        all.push_str(&format!(
            "$ steadfast {}\n{output}{}exit code {}\n\n",
            words.join(" "),
            called.errors,
            called.code
        ));
    }
    assert_snapshot!(all);
}

#[test]
fn a_wrong_command_line_is_one_sentence_and_a_next_step() {
    let place = Place::new(&[("test-db.yaml", TEST_DB)]);
    let mut all = String::new();
    for words in [
        "plan",
        "--log info plan --offline",
        "plan --offline test-db.yaml",
        "plan --ofline -f test-db.yaml",
        "plan -f test-db.yaml -o xml",
        "plan -f test-db.yaml --force-conflicts",
        "render",
        "render test-db.yaml",
        "explain",
        "explain database -A -n shop",
        "explain database --verify-every soon",
        "graph",
        "plam -f test-db.yaml",
        "frobnicate",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let called = call(&place, &words);
        assert!(!called.errors.contains("Usage:"), "no page of usage: {}", called.errors);
        all.push_str(&format!("$ steadfast {}\n{}\n", words.join(" "), told(&called)));
    }
    assert_snapshot!(all);
}

#[test]
fn a_dump_of_a_live_object_is_planned_with_a_note() {
    let dump = TEST_DB.replace("name: test-db", "name: test-db\n  uid: u\n  resourceVersion: '7'");
    let place = Place::new(&[("dump.yaml", &format!("{dump}status:\n  phase: Ready\n"))]);
    let planned = call(&place, &["plan", "--offline", "-f", "dump.yaml"]);
    assert_eq!(planned.code, 2);
    assert_snapshot!(planned.output.lines().take(6).collect::<Vec<_>>().join("\n"));
}

#[test]
fn clusters_that_are_not_there_or_do_not_allow_are_told_apart() {
    let place = Place::new(&[("test-db.yaml", TEST_DB), ("empty", "")]);
    let nobody = place.kubeconfig("http://127.0.0.1:9");
    let gone = call(&place, &["plan", "--kubeconfig", &nobody, "-f", "test-db.yaml"]);
    let unset = call(&place, &["plan", "--kubeconfig", "no-such-file", "-f", "test-db.yaml"]);
    let silent = call(&place, &["explain", "database", "--kubeconfig", &nobody]);
    let unknown = call(&place, &["explain", "database", "--kubeconfig", "no-such-file"]);
    let all = [told_after_summary(&gone), told(&unset), told(&silent), told(&unknown)];
    assert_snapshot!(all.join("\n"));
    let (forbidden, secrets, absent, nowhere, none, elsewhere) = with_cluster(|cluster| {
        let config = place.write("kubeconfig", &cluster.kubeconfig());
        let on = |words: &[&str]| call(&place, &[words, &["--kubeconfig", &config]].concat());
        let nowhere = on(&["plan", "-n", "shop", "-f", "test-db.yaml"]);
        let none = on(&["explain", "databases"]);
        cluster.apply(&TEST_DB.replace("name: test-db", "name: orders"));
        let absent = on(&["explain", "database/order"]);
        let elsewhere = on(&["explain", "database/orders", "-n", "kube-system"]);
        cluster.forbid("list", "", "secrets");
        let secrets = on(&["explain", "database/orders"]);
        cluster.forbid("create", "database.example.com", "databases");
        let forbidden = on(&["plan", "-f", "test-db.yaml"]);
        (forbidden, secrets, absent, nowhere, none, elsewhere)
    });
    assert_snapshot!(
        [
            told_after_summary(&nowhere),
            told(&none),
            told(&absent),
            told(&elsewhere),
            told(&secrets),
            told_after_summary(&forbidden)
        ]
        .join("\n")
    );
}

/// A mistake that concerns one resource; the summary says that there is no forecast of it.
fn told_after_summary(called: &Called) -> String {
    format!("{}{}exit code {}\n", called.errors, called.output.trim_start(), called.code)
}

#[test]
fn a_resource_that_nobody_runs_is_overdue() {
    let explained = with_cluster(|cluster| {
        let place = Place::new(&[]);
        let config = place.write("kubeconfig", &cluster.kubeconfig());
        cluster.apply(TEST_DB);
        call(&place, &["explain", "database/test-db", "--kubeconfig", &config, "-o", "json"])
    });
    let read: serde_json::Value = serde_json::from_str(&explained.output).expect("JSON");
    assert_eq!(read["resource"], "Database/default/test-db");
    assert_eq!(read["ready"], false);
    assert_eq!(read["ladder"][0]["mark"], "here");
}

#[test]
fn the_binary_is_a_plugin_of_kubectl_by_its_name() {
    let place = Place::new(&[("test-db.yaml", TEST_DB)]);
    let help = place.call_as("kubectl-steadfast", &["plan", "--help"]);
    assert!(help.output.contains("Usage: kubectl steadfast plan"), "{}", help.output);
    let planned = place.call_as("kubectl-steadfast", &["plan", "--offline", "-f", "test-db.yaml"]);
    assert_eq!(planned.code, 2);
    let completed = place.call_as("kubectl_complete-steadfast", &["explain", "data"]);
    assert_eq!(completed.output, "database\n:4\n");
    let script = call(&place, &["completions", "bash"]);
    assert!(script.output.contains("complete -F _steadfast"), "a script of bash");
}
