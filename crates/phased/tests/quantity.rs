//! Quantities against the texts that a real API server stores for them.

#![allow(clippy::panic, reason = "a test fails by panicking")]

use phased::quantity::{Quantity, QuantityError};
use proptest::prelude::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn canonical_form_is_what_the_server_stores() {
    let table = [
        ("0", "0"),
        ("-0", "0"),
        ("0Gi", "0"),
        ("1", "1"),
        ("+1", "1"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5"),
        ("1.50", "1500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1500", "1500"),
        ("1000", "1k"),
        ("100000", "100k"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1000Ki", "1000Ki"),
        ("1000000k", "1G"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12e-1", "1200e-3"),
        ("100e0", "100"),
        ("1E", "1E"),
        ("1Ei", "1Ei"),
        ("7Ei", "7Ei"),
        ("9223372036854775807", "9223372036854775807"),
        ("-250m", "-250m"),
        ("-2Gi", "-2Gi"),
        ("0.0000000001", "1n"),
        ("1.0000000001u", "1001n"),
    ];
    for (text, stored) in table {
        assert_eq!(quantity(text).canonical(), stored, "{text}");
        assert_eq!(quantity(text), quantity(stored), "{text} and {stored} are one amount");
    }
}

/// Lines of "as written" and "as stored" by a real kube-apiserver 1.36 in an `emptyDir`'s size.
/// It keeps the spelling of some whole numbers, so that only the amount is compared for those.
#[test]
fn amounts_and_spellings_agree_with_a_real_server() {
    let lines = include_str!("fixtures/quantities-1.36.txt").lines();
    let (mut compared, mut respelled) = (0, 0);
    for (written, stored) in lines.filter_map(|line| line.split_once(' ')) {
        let Ok(amount) = written.parse::<Quantity>() else {
            let large: f64 = stored.parse().unwrap_or(f64::MAX);
            assert!(large >= 9.0e18 || written.ends_with('E'), "{written} is refused");
            continue;
        };
        assert_eq!(amount, quantity(stored), "{written} is stored as {stored}");
        compared += 1;
        if written != stored {
            assert_eq!(amount.canonical(), stored, "{written}");
            respelled += 1;
        }
    }
    assert!(compared > 200 && respelled > 100, "{compared} compared, {respelled} respelled");
}

#[test]
fn equal_amounts_are_equal_whatever_their_suffix() {
    for (a, b) in [("0.5", "500m"), ("1Gi", "1073741824"), ("1k", "1e3"), ("2", "2000m")] {
        assert_eq!(quantity(a), quantity(b));
    }
    for (smaller, larger) in
        [("1G", "1Gi"), ("-1", "1n"), ("-2", "-1"), ("999m", "1"), ("1n", "9E"), ("0", "1n")]
    {
        assert!(quantity(smaller) < quantity(larger), "{smaller} < {larger}");
        assert!(quantity(larger) > quantity(smaller), "{larger} > {smaller}");
    }
}

#[test]
fn other_texts_are_refused() {
    for text in ["", "-", ".", "Gi", "1gi", "1K", "1.2.3", "1 Gi", "1e", "1e+", "1ee3", "١", "1e3m"]
    {
        assert_eq!(text.parse::<Quantity>().err(), Some(QuantityError::Malformed(text.to_owned())));
    }
    for text in
        ["1e31", "999999999999999999999999999999999999999999", "1e9999", "8Ei", "5000E", "-10E"]
    {
        assert_eq!(text.parse::<Quantity>().err(), Some(QuantityError::TooLarge(text.to_owned())));
    }
}

proptest! {
    #[test]
    fn canonical_form_keeps_the_amount(
        whole in 0_u64..8_000_000,
        fraction in 0_u32..1_000_000_000,
        suffix in prop::sample::select(vec!["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti", "e3", "e-2"]),
    ) {
        let written = quantity(&format!("{whole}.{fraction:09}{suffix}"));
        let stored = quantity(&written.canonical());
        prop_assert_eq!(written, stored);
        prop_assert_eq!(written.canonical(), stored.canonical());
    }

    #[test]
    fn order_follows_whole_numbers(a in any::<i64>(), b in any::<i64>()) {
        prop_assert_eq!(quantity(&a.to_string()).cmp(&quantity(&b.to_string())), a.cmp(&b));
    }
}
