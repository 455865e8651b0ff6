//! Expansion of `$(NAME)` references as Kubernetes defines it for env values, command and args.
//! Pure text work; a shell's own `$NAME` is none of its business.

use std::collections::BTreeMap;

/// Replaces each `$(NAME)` whose name is known; `$$` stands for one `$`; unknown references stay.
///
/// Source of the rule: the API documentation of `Container.command`, `args` and `EnvVar.value`.
pub(crate) fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            out.push('$');
            rest = escaped;
        } else if let Some((name, tail)) = after.strip_prefix('(').and_then(|s| s.split_once(')')) {
            match variables.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = tail;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_follow_the_documented_rules() {
        let variables =
            BTreeMap::from([("A".to_owned(), "1".to_owned()), ("B".to_owned(), "$(A)".to_owned())]);
        for (text, expected) in [
            ("x$(A)y", "x1y"),
            ("$(A)$(A)", "11"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$(MISSING)", "$(MISSING)"),
            ("$(B)", "$(A)"),
            ("$A ${A} $", "$A ${A} $"),
            ("$(A", "$(A"),
        ] {
            assert_eq!(expand(text, &variables), expected, "for {text:?}");
        }
    }
}
