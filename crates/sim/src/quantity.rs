//! Resource quantities: exact parsing, comparison and the text the API server stores.
//!
//! The server keeps the text it was sent when that text already looks canonical by a cheap test, and writes the canonical form otherwise; both are
//! reproduced here, since a difference of spelling is a difference of stored object. Nothing in this file may round silently other than up to a nano.
//!
//! Source of the rules: `k8s.io/apimachinery` `pkg/api/resource` 0.36.

use std::cmp::Ordering;
use std::fmt;

/// How a quantity was spelled, which decides how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// Suffixes `n u m k M G T P E`.
    Decimal,
    /// Suffixes `Ki` to `Ei`.
    Binary,
    /// `e3`, `E-3`.
    Exponent,
}

/// A resource quantity, `mantissa * 10^scale`, with the spelling it came in.
///
/// Equality and order go by value: `"1Gi" == "1024Mi"`.
#[derive(Clone, Debug)]
pub struct Quantity {
    mantissa: i128,
    scale: i32,
    format: Format,
    /// The text as sent, kept where the server keeps it.
    text: Option<String>,
}

/// Why a text is not a quantity; the wording is the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text has another shape than a quantity.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Shape,
    /// The digits do not make a number that can be held.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The unit is not known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The smallest exponent a quantity can have; finer amounts are rounded up to it.
const NANO: i32 = -9;
/// The exponent to which lists of resources are rounded.
const MILLI: i32 = -3;
/// Digits that the server's fast path handles in decimal notation.
const FAST_DIGITS: i64 = 18;
/// The largest binary quantity: 2^63 - 1.
const LARGEST: i128 = i64::MAX as i128;

/// The parts of a quantity text.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// Splits a text into sign, digits and unit, leading zeros dropped.
fn split(text: &str) -> Result<Parts<'_>, ParseError> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let rest = rest.trim_start_matches('0');
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = rest.split_at(digits(rest));
    let whole = if whole.is_empty() { "0" } else { whole };
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(digits(after)),
        None => ("", rest),
    };
    let letters = rest.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
    let mut tail = &rest[letters..];
    if let Some(after) = tail.strip_prefix(['-', '+']) {
        tail = after;
    }
    if tail.bytes().all(|b| b.is_ascii_digit()) {
        Ok(Parts { negative, whole, fraction, suffix: rest })
    } else {
        Err(ParseError::Shape)
    }
}

/// Base, exponent and format of a unit.
fn unit(suffix: &str) -> Option<(u32, i32, Format)> {
    let decimal = |exponent| Some((10, exponent, Format::Decimal));
    let binary = |exponent| Some((2, exponent, Format::Binary));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((10, exponent, Format::Exponent))
        }
    }
}

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    ///
    /// The server's own words for a text that is not a quantity.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ParseError::Shape);
        }
        let parts = split(text)?;
        let (base, exponent, format) = unit(parts.suffix).ok_or(ParseError::Suffix)?;
        let digits = format!("{}{}", parts.whole, parts.fraction);
        let value: i128 = digits.parse().map_err(|_| ParseError::Number)?;
        let magnitude = if base == 2 {
            value.checked_mul(1 << exponent).ok_or(ParseError::Number)?
        } else {
            value
        };
        let fraction = i32::try_from(parts.fraction.len()).map_err(|_| ParseError::Number)?;
        let scale = if base == 2 {
            -fraction
        } else {
            exponent.checked_sub(fraction).ok_or(ParseError::Number)?
        };
        let mut quantity = Self { mantissa: magnitude, scale, format, text: None };
        if text == "0" || keeps_text(&parts, &digits, scale, exponent, format) {
            quantity.text = Some(text.to_owned());
        } else {
            quantity.settle(&parts, exponent);
        }
        if parts.negative {
            quantity.mantissa = -quantity.mantissa;
        }
        Ok(quantity)
    }

    /// Rounds up to a nano, caps a binary amount, and drops the binary notation of an amount below one.
    fn settle(&mut self, parts: &Parts<'_>, exponent: i32) {
        if self.scale < NANO {
            let drop = (NANO - self.scale).unsigned_abs();
            let power = 10_i128.checked_pow(drop);
            let (kept, rest) = match power {
                Some(power) => (self.mantissa / power, self.mantissa % power),
                None => (0, self.mantissa),
            };
            self.mantissa = kept + i128::from(rest != 0);
            self.scale = NANO;
        }
        if fast(parts, exponent, self.format) || self.format != Format::Binary {
            return;
        }
        if self.compare_to(LARGEST) == Ordering::Greater {
            self.mantissa = LARGEST;
            self.scale = 0;
        }
        if self.mantissa > 0 && self.compare_to(1) == Ordering::Less {
            self.format = Format::Decimal;
        }
    }

    fn compare_to(&self, whole: i128) -> Ordering {
        order((self.mantissa, self.scale), (whole, 0))
    }

    /// Whether the amount is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// Whether the amount is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        self.mantissa < 0
    }

    /// The amount in units of `10^scale`, rounded up away from zero; `None` if it cannot be held.
    #[must_use]
    pub fn scaled(&self, scale: i32) -> Option<i128> {
        let shift = self.scale.checked_sub(scale)?;
        let power = 10_i128.checked_pow(shift.unsigned_abs());
        if shift >= 0 {
            return self.mantissa.checked_mul(power?);
        }
        let Some(power) = power else { return Some(self.mantissa.signum()) };
        let rest = self.mantissa % power;
        Some(self.mantissa / power + if rest == 0 { 0 } else { rest.signum() })
    }

    /// The amount rounded up, away from zero, to thousandths, as the server keeps the amounts of a
    /// list of resources. An amount that is no finer keeps its spelling.
    #[must_use]
    pub fn in_thousandths(self) -> Self {
        if self.scale >= MILLI {
            return self;
        }
        let mantissa = self.scaled(MILLI).unwrap_or(self.mantissa);
        Self { mantissa, scale: MILLI, format: self.format, text: None }
    }

    /// The sum of two amounts, in the notation of the first; `None` if it cannot be held.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let scale = self.scale.min(other.scale);
        let mantissa = self.scaled(scale)?.checked_add(other.scaled(scale)?)?;
        let format = if self.is_zero() { other.format } else { self.format };
        Some(Self { mantissa, scale, format, text: None })
    }

    /// The canonical spelling, whatever was sent.
    #[must_use]
    pub fn canonical(&self) -> String {
        if self.mantissa == 0 {
            return "0".to_owned();
        }
        let small = order((self.mantissa.abs(), self.scale), (1024, 0)) == Ordering::Less;
        let whole = self
            .scaled(0)
            .filter(|whole| order((*whole, 0), (self.mantissa, self.scale)) == Ordering::Equal);
        match (self.format, whole) {
            (Format::Binary, Some(whole)) if !small => binary_text(whole),
            (Format::Exponent, _) => decimal_text(self.mantissa, self.scale, true),
            _ => decimal_text(self.mantissa, self.scale, false),
        }
    }
}

/// Whether the server's fast path takes this text.
fn fast(parts: &Parts<'_>, exponent: i32, format: Format) -> bool {
    let whole = parts.whole.len() as i64;
    let fraction = parts.fraction.len() as i64;
    match format {
        Format::Binary => fraction == 0 && 15 - whole - i64::from(exponent) * 3 / 10 > 0,
        Format::Decimal | Format::Exponent => {
            FAST_DIGITS - whole - fraction >= 0 && i64::from(exponent) - fraction >= i64::from(NANO)
        }
    }
}

/// Whether the server stores the text as sent, taking it for canonical.
fn keeps_text(parts: &Parts<'_>, digits: &str, scale: i32, exponent: i32, format: Format) -> bool {
    if !fast(parts, exponent, format) {
        return false;
    }
    match format {
        Format::Binary => digits.parse::<i64>().is_ok_and(|value| value & 7 != 0),
        Format::Decimal | Format::Exponent => {
            scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
        }
    }
}

fn binary_text(mut whole: i128) -> String {
    let mut step = 0;
    while whole % 1024 == 0 && step < 6 {
        whole /= 1024;
        step += 1;
    }
    let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][step];
    format!("{whole}{suffix}")
}

fn decimal_text(mut mantissa: i128, mut scale: i32, exponent: bool) -> String {
    while mantissa % 10 == 0 {
        mantissa /= 10;
        scale += 1;
    }
    let shift = scale.rem_euclid(3);
    mantissa *= 10_i128.pow(shift.unsigned_abs());
    scale -= shift;
    if exponent {
        return if scale == 0 { mantissa.to_string() } else { format!("{mantissa}e{scale}") };
    }
    let suffix = match scale {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    };
    format!("{mantissa}{suffix}")
}

/// Orders `a.0 * 10^a.1` and `b.0 * 10^b.1` exactly.
fn order(a: (i128, i32), b: (i128, i32)) -> Ordering {
    let signs = a.0.signum().cmp(&b.0.signum());
    if signs != Ordering::Equal || a.0 == 0 {
        return signs;
    }
    let shift = a.1.saturating_sub(b.1);
    let larger = |mantissa: i128| {
        10_i128.checked_pow(shift.unsigned_abs()).and_then(|power| mantissa.checked_mul(power))
    };
    if shift >= 0 {
        match larger(a.0) {
            Some(value) => value.cmp(&b.0),
            // Too big to hold, hence further from zero than anything that can be held.
            None => a.0.cmp(&0),
        }
    } else {
        match larger(b.0) {
            Some(value) => a.0.cmp(&value),
            None => 0.cmp(&b.0),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => f.write_str(&self.canonical()),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        order((self.mantissa, self.scale), (other.mantissa, other.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(text: &str) -> String {
        Quantity::parse(text).expect(text).to_string()
    }

    #[test]
    fn stored_text_is_the_servers() {
        for (sent, want) in [
            ("0", "0"),
            ("0.0", "0"),
            ("000", "0"),
            ("0m", "0"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.5", "1500m"),
            ("1.500", "1.500"),
            ("0100m", "0100m"),
            ("100m", "100m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("1024Mi", "1Gi"),
            ("1025Mi", "1025Mi"),
            ("8Gi", "8Gi"),
            ("16Gi", "16Gi"),
            ("512Mi", "512Mi"),
            ("2048Mi", "2Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("0.1Gi", "107374182400m"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("1000e0", "1e3"),
            ("1e-3", "1e-3"),
            ("1.1n", "2n"),
            ("0.1n", "1n"),
            ("-5", "-5"),
            ("-0.5", "-500m"),
            ("+1", "+1"),
            ("16Ei", "9223372036854775807"),
            ("100E", "100E"),
            ("512Ki", "512Ki"),
            ("1023Ki", "1023Ki"),
            ("1024", "1024"),
            (" 1 ", "1"),
        ] {
            assert_eq!(stored(sent), want, "stored form of {sent:?}");
        }
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for (sent, want) in [
            ("", ParseError::Shape),
            ("1.2.3", ParseError::Shape),
            ("1 Gi", ParseError::Shape),
            ("ten", ParseError::Shape),
            ("1kk", ParseError::Suffix),
            ("1gi", ParseError::Shape),
            ("1K", ParseError::Suffix),
            ("1e", ParseError::Suffix),
        ] {
            assert_eq!(Quantity::parse(sent).err(), Some(want), "{sent:?}");
        }
    }

    /// Random texts, and what kube-apiserver 1.36.3 stored for each in a list of resources or said
    /// against it.
    #[test]
    fn random_texts_are_stored_as_recorded() {
        let rows: Vec<Vec<Option<String>>> =
            serde_json::from_str(include_str!("quantity.json")).expect("a recording");
        let mut differences = Vec::new();
        for row in rows {
            let sent = row[0].clone().expect("every row starts with what was sent");
            let ours = match Quantity::parse(&sent) {
                Ok(quantity) => vec![Some(sent), Some(quantity.in_thousandths().to_string())],
                Err(error) => vec![Some(sent), None, Some(error.to_string())],
            };
            if ours != row {
                differences.push(format!("ours {ours:?}, theirs {row:?}"));
            }
        }
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    }

    #[test]
    fn order_is_by_value() {
        let q = |text| Quantity::parse(text).expect("valid in this test");
        assert_eq!(q("1Gi"), q("1024Mi"));
        assert!(q("1G") < q("1Gi"));
        assert!(q("1e30") > q("1Ei"));
        assert!(q("-1e30") < q("-1"));
        assert!(q("1n") > q("0"));
        assert_eq!(q("1Gi").plus(&q("1Mi")).map(|sum| sum.to_string()), Some("1025Mi".to_owned()));
    }

    proptest! {
        #[test]
        fn canonical_form_is_stable_and_equal(mantissa in -1_000_000_000_i64..1_000_000_000, suffix in "n|u|m||k|M|G|T|Ki|Mi|Gi|e3|e-6") {
            let quantity = Quantity::parse(&format!("{mantissa}{suffix}")).expect("built from the grammar");
            let again = Quantity::parse(&quantity.canonical()).expect("canonical text parses");
            prop_assert_eq!(&quantity, &again);
            prop_assert_eq!(again.canonical(), quantity.canonical());
            let stored = Quantity::parse(&quantity.to_string()).expect("stored text parses");
            prop_assert_eq!(stored.to_string(), quantity.to_string());
        }

        #[test]
        fn order_agrees_with_integers(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
            let left = Quantity::parse(&format!("{a}m")).expect("built from the grammar");
            let right = Quantity::parse(&format!("{b}m")).expect("built from the grammar");
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
        }
    }
}
