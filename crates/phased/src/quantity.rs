//! Quantities: `1Gi`, `500m`, `1e3`, compared by value as the server does.
//!
//! Exact: no floating point is involved. Two texts are equal when the server would store the same
//! amount for both. Must not decide what an amount is good for.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// An amount as Kubernetes understands it: `mantissa` times ten to the power of `exponent`.
///
/// The server keeps nothing finer than a billionth; finer amounts are rounded away from zero, as
/// it does. Equality and order are by value; the suffix only matters to [`Quantity::canonical`].
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    negative: bool,
    mantissa: u128,
    exponent: i32,
    form: Form,
}

/// The family of suffixes in which a quantity was written, and will be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Scientific,
}

/// A text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// It does not follow the grammar `[+-]digits[.digits][suffix]`.
    #[error("{0:?} is not a quantity: write a number with an optional suffix, such as 500m or 1Gi")]
    Malformed(String),
    /// The amount is beyond 2^63-1, which the server caps or garbles.
    #[error("{0:?} is too large for a quantity")]
    TooLarge(String),
}

/// The finest power of ten that the server keeps.
const FINEST: i32 = -9;
/// The largest amount that the server keeps as it was written. It stores 2^63-1 for `9Ei` and,
/// for `5000E`, plainly `5`.
const LARGEST: Quantity = Quantity {
    negative: false,
    mantissa: 9_223_372_036_854_775_807,
    exponent: 0,
    form: Form::Decimal,
};

impl Quantity {
    /// The text under which the server stores it: the largest suffix that needs no fraction.
    ///
    /// ```
    /// # use phased::quantity::Quantity;
    /// let half: Quantity = "0.5".parse().expect("a quantity");
    /// assert_eq!(half.canonical(), "500m");
    /// ```
    pub fn canonical(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        if let Some(binary) = self.canonical_binary() {
            return format!("{sign}{binary}");
        }
        // Exponents go in steps of three; mantissas carry no trailing zeros, so the rest of the
        // division says how many zeros to put back.
        let step = if self.mantissa == 0 { 0 } else { self.exponent.div_euclid(3) * 3 };
        let step = if self.form == Form::Scientific { step } else { step.min(18) };
        let zeros = usize::try_from(self.exponent - step).unwrap_or_default();
        let suffix = match self.form {
            Form::Scientific if step == 0 => String::new(),
            Form::Scientific => format!("e{step}"),
            Form::Decimal | Form::Binary => decimal_suffix(step).to_owned(),
        };
        format!("{sign}{}{}{suffix}", self.mantissa, "0".repeat(zeros))
    }

    /// In binary suffixes, if it was written so, is whole, and is at least 1024.
    fn canonical_binary(&self) -> Option<String> {
        if self.form != Form::Binary || self.exponent < 0 {
            return None;
        }
        let power = 10_u128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let mut whole = self.mantissa.checked_mul(power)?;
        if whole < 1024 {
            return None;
        }
        let mut steps = 0;
        while whole.is_multiple_of(1024) && steps < BINARY_SUFFIXES.len() - 1 {
            whole /= 1024;
            steps += 1;
        }
        Some(format!("{whole}{}", BINARY_SUFFIXES[steps]))
    }

    fn new(negative: bool, mantissa: u128, exponent: i32, form: Form) -> Self {
        let mut it = Self { negative: negative && mantissa != 0, mantissa, exponent, form };
        if mantissa == 0 {
            it.exponent = 0;
            return it;
        }
        while it.exponent < FINEST {
            it.mantissa = it.mantissa.div_ceil(10);
            it.exponent += 1;
        }
        while it.mantissa.is_multiple_of(10) {
            it.mantissa /= 10;
            it.exponent += 1;
        }
        it
    }

    /// Compares amounts without their signs.
    fn compare_size(&self, other: &Self) -> Ordering {
        let common = self.exponent.min(other.exponent);
        // A side that overflows 128 bits at the common exponent is the larger one: the other was
        // not scaled, or it would overflow just as well and both would be compared by exponent.
        match (scaled(self, common), scaled(other, common)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (None, _) => Ordering::Greater,
            (_, None) => Ordering::Less,
        }
    }
}

fn scaled(quantity: &Quantity, exponent: i32) -> Option<u128> {
    let by = u32::try_from(quantity.exponent - exponent).ok()?;
    10_u128.checked_pow(by)?.checked_mul(quantity.mantissa)
}

const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

fn decimal_suffix(exponent: i32) -> &'static str {
    DECIMAL_SUFFIXES.iter().find(|(_, e)| *e == exponent).map_or("", |(suffix, _)| suffix)
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let malformed = || QuantityError::Malformed(text.to_owned());
        let too_large = || QuantityError::TooLarge(text.to_owned());
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
            return Err(malformed());
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let mantissa: u128 =
            if digits.is_empty() { 0 } else { digits.parse().map_err(|_| too_large())? };
        let places = i32::try_from(fraction.len()).map_err(|_| too_large())?;
        let (factor, power, form) = read_suffix(suffix).ok_or_else(malformed)?;
        let mantissa = mantissa.checked_mul(factor).ok_or_else(too_large)?;
        let amount = Self::new(negative, mantissa, power - places, form);
        if amount.compare_size(&LARGEST).is_gt() { Err(too_large()) } else { Ok(amount) }
    }
}

/// A suffix as a factor and a power of ten.
fn read_suffix(suffix: &str) -> Option<(u128, i32, Form)> {
    if let Some((_, power)) = DECIMAL_SUFFIXES.iter().find(|(s, _)| *s == suffix) {
        return Some((1, *power, Form::Decimal));
    }
    if let Some(steps) = BINARY_SUFFIXES.iter().position(|s| *s == suffix) {
        return Some((1_u128 << (10 * steps), 0, Form::Binary));
    }
    let power = suffix.strip_prefix(['e', 'E'])?;
    let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
    if digits.is_empty() || digits.len() > 4 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((1, power.parse().ok()?, Form::Scientific))
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        (self.negative, self.mantissa, self.exponent)
            == (other.negative, other.mantissa, other.exponent)
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
        match (self.negative, other.negative) {
            (false, false) => self.compare_size(other),
            (true, true) => other.compare_size(self),
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical())
    }
}
