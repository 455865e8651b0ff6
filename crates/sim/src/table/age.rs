//! Ages as kubectl shows them.

use jiff::Timestamp;

/// The age of an RFC 3339 time, like `5m30s`.
pub(super) fn since(at: &str, now: Timestamp) -> String {
    match at.parse::<Timestamp>() {
        Ok(at) => duration(now.duration_since(at).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

fn pair(big: i64, big_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{big}{big_unit}")
    } else {
        format!("{big}{big_unit}{small}{small_unit}")
    }
}

fn duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / (24 * 365));
    match seconds {
        s if s < -1 => "<invalid>".to_owned(),
        s if s < 0 => "0s".to_owned(),
        s if s < 120 => format!("{s}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_read_as_kubectl_prints_them() {
        let table = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (330, "5m30s"),
            (3600, "60m"),
            (4 * 3600 + 60, "4h1m"),
            (30 * 3600, "30h"),
            (50 * 3600, "2d2h"),
            (20 * 86400, "20d"),
        ];
        for (seconds, text) in table {
            assert_eq!(super::duration(seconds), text);
        }
    }
}
