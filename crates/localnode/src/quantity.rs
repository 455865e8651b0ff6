//! Kubernetes quantities as whole numbers, for `resourceFieldRef` and the quality-of-service class.
//! Pure; exact for every value an administrator writes, and saturating beyond 2^127.

/// A quantity in thousandths, or `None` when the text is no quantity.
pub(crate) fn thousandths(text: &str) -> Option<i128> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let multiplier = multiplier_in_thousandths(suffix)?;
    let value = digits.saturating_mul(multiplier);
    // Kubernetes rounds away from zero what is finer than it can keep.
    let rounded = value / scale + i128::from(value % scale != 0);
    Some(if negative { -rounded } else { rounded })
}

fn multiplier_in_thousandths(suffix: &str) -> Option<i128> {
    let decimal = |power: u32| 10_i128.checked_pow(power);
    match suffix {
        "m" => Some(1),
        "" => decimal(3),
        "k" => decimal(6),
        "M" => decimal(9),
        "G" => decimal(12),
        "T" => decimal(15),
        "P" => decimal(18),
        "E" => decimal(21),
        "Ki" => Some(1000 << 10),
        "Mi" => Some(1000 << 20),
        "Gi" => Some(1000 << 30),
        "Ti" => Some(1000 << 40),
        "Pi" => Some(1000 << 50),
        "Ei" => Some(1000_i128 << 60),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            decimal(u32::try_from(power.checked_add(3)?).ok()?)
        }
    }
}

/// `value / divisor`, rounded up, as `resourceFieldRef` gives it.
pub(crate) fn divide(value: &str, divisor: &str) -> Option<i128> {
    let (value, divisor) = (thousandths(value)?, thousandths(divisor).filter(|d| *d > 0)?);
    Some(value / divisor + i128::from(value % divisor > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        for (text, expected) in [
            ("1", Some(1000)),
            ("500m", Some(500)),
            ("0.5", Some(500)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("1e3", Some(1_000_000)),
            ("2k", Some(2_000_000)),
            ("-1", Some(-1000)),
            ("", None),
            ("Gi", None),
            ("1Q", None),
        ] {
            assert_eq!(thousandths(text), expected, "{text}");
        }
    }

    #[test]
    fn division_rounds_up() {
        assert_eq!(divide("1500m", "1"), Some(2));
        assert_eq!(divide("1500m", "1m"), Some(1500));
        assert_eq!(divide("1Gi", "1Mi"), Some(1024));
        assert_eq!(divide("1Gi", "0"), None);
    }
}
