//! How things are named and counted in sentences.

use jiff::Timestamp;
use phased::ObjectId;

/// `Kind/namespace/name`, or `Kind/name`.
pub fn named(id: &ObjectId) -> String {
    if id.namespace.is_empty() {
        format!("{}/{}", id.kind.kind, id.name)
    } else {
        format!("{}/{}/{}", id.kind.kind, id.namespace, id.name)
    }
}

/// `1 pod`, `3 pods`.
pub fn count(number: usize, one: &str) -> String {
    if number == 1 {
        return format!("1 {one}");
    }
    if let Some(stem) = one.strip_suffix("child") {
        return format!("{number} {stem}children");
    }
    match one.strip_suffix('y') {
        Some(stem) if !one.ends_with("ay") && !one.ends_with("ey") => {
            format!("{number} {stem}ies")
        }
        _ if one.ends_with('s') => format!("{number} {one}es"),
        _ => format!("{number} {one}s"),
    }
}

/// A list in a line; a long one is folded in the middle, and its last item stays.
pub fn folded(items: &[String], longest: usize) -> String {
    if items.len() <= longest || longest < 3 {
        return items.join(", ");
    }
    let shown = longest - 2;
    let left = items.len() - shown - 1;
    let last = items.last().map_or("", String::as_str);
    format!("{}, … {left} more …, {last}", items[..shown].join(", "))
}

/// A span of time in its two largest units: `4 min 12 s`.
pub fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let units = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let Some(first) = units.iter().position(|(size, _)| seconds >= *size) else {
        return "0 s".to_owned();
    };
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (size, unit) in &units[first..units.len().min(first + 2)] {
        if rest >= *size {
            parts.push(format!("{} {unit}", rest / size));
        }
        rest %= size;
    }
    parts.join(" ")
}

/// How long ago, or how long from now.
pub fn from_now(at: Timestamp, now: Timestamp) -> String {
    let seconds = at.as_second() - now.as_second();
    match seconds {
        0 => "now".to_owned(),
        later if later > 0 => format!("in {}", span(later)),
        earlier => format!("{} ago", span(-earlier)),
    }
}

/// A sentence that begins with a capital letter and ends with a stop.
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return String::new() };
    // A path or a name keeps its letters.
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_word = word.chars().all(|c| c.is_alphabetic() || c == ',');
    let first = if is_word { first.to_uppercase().to_string() } else { first.to_string() };
    let stop = if text.ends_with(['.', '!', '?', ':', '…']) { "" } else { "." };
    format!("{first}{}{stop}", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        let shown = [0, 59, 60, 252, 3600, 7260, 90_061].map(span);
        assert_eq!(shown, ["0 s", "59 s", "1 min", "4 min 12 s", "1 h", "2 h 1 min", "1 d 1 h"]);
    }

    #[test]
    fn a_long_list_keeps_both_ends() {
        let pods: Vec<String> = (0..12).rev().map(|n| format!("a-{n}")).collect();
        assert_eq!(folded(&pods, 5), "a-11, a-10, a-9, … 8 more …, a-0");
        assert_eq!(folded(&pods[..3], 5), "a-11, a-10, a-9");
    }

    #[test]
    fn plurals_are_those_of_the_words_we_use() {
        let shown = ["child", "policy", "pod"].map(|word| count(2, word));
        assert_eq!(shown, ["2 children", "2 policies", "2 pods"]);
    }
}
