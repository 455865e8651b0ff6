//! Names at and beyond their limits; errors must name the limit and the value.

use phased::KindRef;
use phased::name::{
    NameError, dns_1035_label, dns_label, dns_subdomain, label_key, label_value, object_name,
};

type Check = fn(&str) -> Result<(), NameError>;

#[test]
fn names_within_the_rules_pass() {
    let table: [(Check, &str); 16] = [
        (dns_label, "a"),
        (dns_label, "0-9"),
        (dns_label, &"a".repeat(63)),
        (dns_1035_label, "a-0"),
        (dns_subdomain, "a.b-c.0"),
        (dns_subdomain, &"a".repeat(253)),
        (label_value, ""),
        (label_value, "A_b.c-9"),
        (label_value, &"Z".repeat(63)),
        (label_key, "app"),
        (label_key, "app.kubernetes.io/name"),
        (label_key, "Case_ok.9"),
        (|n| object_name(kind("", "Service"), n), "orders"),
        (|n| object_name(kind("apps", "StatefulSet"), n), &"s".repeat(52)),
        (|n| object_name(kind("rbac.authorization.k8s.io", "ClusterRole"), n), "a:b:C"),
        (|n| object_name(kind("", "ConfigMap"), n), "0.a"),
    ];
    for (check, value) in table {
        assert_eq!(check(value), Ok(()), "{value}");
    }
}

#[test]
fn names_beyond_the_rules_are_refused_with_their_text() {
    let table: [(Check, &str); 24] = [
        (dns_label, "-a"),
        (dns_label, "a-"),
        (dns_label, "A"),
        (dns_label, "a.b"),
        (dns_label, "ä"),
        (dns_label, &"a".repeat(64)),
        (dns_1035_label, "0a"),
        (dns_1035_label, &"a".repeat(64)),
        (dns_subdomain, "a..b"),
        (dns_subdomain, ".a"),
        (dns_subdomain, "a_b"),
        (dns_subdomain, &"a".repeat(254)),
        (label_value, "-"),
        (label_value, "a b"),
        (label_value, "a/b"),
        (label_value, &"a".repeat(64)),
        (label_key, "a/b/c"),
        (label_key, "A.io/x"),
        (label_key, &"a".repeat(64)),
        (|n| object_name(kind("", "Service"), n), "9lives"),
        (|n| object_name(kind("", "Namespace"), n), "a.b"),
        (|n| object_name(kind("apps", "StatefulSet"), n), &"s".repeat(53)),
        (|n| object_name(kind("rbac.authorization.k8s.io", "Role"), n), "a/b"),
        (|n| object_name(kind("", "Secret"), n), "Upper"),
    ];
    for (check, value) in table {
        let refusal = check(value).expect_err(value).to_string();
        let part = value.split('/').next_back().unwrap_or(value);
        assert!(refusal.contains(part) || refusal.contains("prefix"), "{value}: {refusal}");
    }
}

#[test]
fn a_refusal_says_what_is_allowed() {
    let long = dns_label(&"x".repeat(64)).expect_err("too long").to_string();
    assert!(long.contains("has 64 characters, at most 63"), "{long}");
    let set = object_name(kind("apps", "StatefulSet"), &"x".repeat(60)).expect_err("too long");
    assert!(set.to_string().contains("at most 52"), "{set}");
    let service = dns_1035_label("1a").expect_err("starts with a digit").to_string();
    assert_eq!(
        service,
        "Service name \"1a\" is not allowed: use lower-case letters, digits and '-', with a letter \
         first and a letter or digit last"
    );
    assert_eq!(dns_label("").expect_err("empty").to_string(), "DNS label must not be empty");
    assert_eq!(label_key("a/").expect_err("empty").to_string(), "label key must not be empty");
    assert_eq!(
        label_key("/a").expect_err("empty").to_string(),
        "prefix of a label key must not be empty"
    );
}

fn kind(group: &'static str, kind: &'static str) -> KindRef {
    KindRef { group, version: "v1", kind, plural: "things", namespaced: true }
}
