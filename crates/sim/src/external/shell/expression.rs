//! `sed 's/…/…/'` with basic regular expressions: `^ $ . [set] * \( \)`.
//!
//! Must not know files.

#[derive(Clone, Debug)]
enum Atom {
    Any,
    One(char),
    Set(Vec<(char, char)>, bool),
    Open,
    Close,
}

struct Pattern {
    atoms: Vec<(Atom, bool)>,
    start: bool,
    end: bool,
}

/// Applies a substitution to each line; none when the script is not understood. `quiet` is `-n`:
/// only what the flag `p` asks for is printed.
pub(super) fn substitute(script: &str, input: &str, quiet: bool) -> Option<String> {
    let rest = script.strip_prefix('s')?;
    let mark = rest.chars().next()?;
    let parts: Vec<&str> = rest[mark.len_utf8()..].split(mark).collect();
    let [pattern, replacement, flags] = parts.as_slice() else { return None };
    if !flags.chars().all(|flag| matches!(flag, 'g' | 'p')) {
        return None;
    }
    let pattern = compile(pattern)?;
    let mut out = String::new();
    for line in input.lines() {
        let replaced = replace(&pattern, replacement, line, flags.contains('g'));
        let again = replaced.is_some() && flags.contains('p');
        let line = replaced.unwrap_or_else(|| line.to_owned());
        for _ in 0..usize::from(!quiet) + usize::from(again) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    Some(out)
}

fn compile(text: &str) -> Option<Pattern> {
    let mut chars: Vec<char> = text.chars().collect();
    let start = chars.first() == Some(&'^');
    let end = chars.last() == Some(&'$') && !text.ends_with("\\$");
    if start {
        chars.remove(0);
    }
    if end {
        chars.pop();
    }
    let mut atoms: Vec<(Atom, bool)> = Vec::new();
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        at += 1;
        let atom = match c {
            '*' => {
                atoms.last_mut()?.1 = true;
                continue;
            }
            '.' => Atom::Any,
            '[' => set(&chars, &mut at)?,
            '\\' => {
                let next = *chars.get(at)?;
                at += 1;
                match next {
                    '(' => Atom::Open,
                    ')' => Atom::Close,
                    other if other.is_alphanumeric() => return None,
                    other => Atom::One(other),
                }
            }
            other => Atom::One(other),
        };
        atoms.push((atom, false));
    }
    Some(Pattern { atoms, start, end })
}

fn set(chars: &[char], at: &mut usize) -> Option<Atom> {
    let not = chars.get(*at) == Some(&'^');
    *at += usize::from(not);
    let mut ranges = Vec::new();
    loop {
        let first = *chars.get(*at)?;
        *at += 1;
        if first == ']' && !ranges.is_empty() {
            return Some(Atom::Set(ranges, not));
        }
        let last = match (chars.get(*at), chars.get(*at + 1)) {
            (Some('-'), Some(last)) if *last != ']' => {
                *at += 2;
                *last
            }
            _ => first,
        };
        ranges.push((first, last));
    }
}

fn fits(atom: &Atom, c: char) -> bool {
    match atom {
        Atom::Any => true,
        Atom::One(one) => *one == c,
        Atom::Set(ranges, not) => ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) != *not,
        Atom::Open | Atom::Close => false,
    }
}

/// Where a match that starts at `at` ends, with the bounds of its groups.
fn find(
    pattern: &Pattern,
    atom: usize,
    line: &[char],
    at: usize,
    groups: &mut Vec<(usize, usize)>,
) -> Option<usize> {
    let Some((current, starred)) = pattern.atoms.get(atom) else {
        return (!pattern.end || at == line.len()).then_some(at);
    };
    match current {
        Atom::Open => {
            groups.push((at, at));
            let found = find(pattern, atom + 1, line, at, groups);
            if found.is_none() {
                groups.pop();
            }
            return found;
        }
        Atom::Close => {
            let before = groups.last().copied()?;
            *groups.last_mut()? = (before.0, at);
            let found = find(pattern, atom + 1, line, at, groups);
            if found.is_none() {
                *groups.last_mut()? = before;
            }
            return found;
        }
        _ => {}
    }
    if !starred {
        let c = *line.get(at)?;
        return fits(current, c).then(|| find(pattern, atom + 1, line, at + 1, groups)).flatten();
    }
    let longest = line[at..].iter().take_while(|c| fits(current, **c)).count();
    (0..=longest).rev().find_map(|count| find(pattern, atom + 1, line, at + count, groups))
}

/// The line with its first match, or all, replaced; none without a match.
fn replace(pattern: &Pattern, replacement: &str, line: &str, all: bool) -> Option<String> {
    let chars: Vec<char> = line.chars().collect();
    let text = |from: usize, to: usize| chars[from..to].iter().collect::<String>();
    let (mut done, mut out, mut at) = (0, String::new(), 0);
    let mut found = false;
    while at <= chars.len() && !(pattern.start && at > 0) {
        let mut groups = Vec::new();
        let Some(end) = find(pattern, 0, &chars, at, &mut groups) else {
            at += 1;
            continue;
        };
        found = true;
        out.push_str(&text(done, at));
        out.push_str(&filled(replacement, &text(at, end), &groups, &chars));
        done = end;
        if !all {
            break;
        }
        // An empty match moves on by a sign, so that it is not found again.
        at = end.max(at + 1);
    }
    found.then(|| out + &text(done, chars.len()))
}

fn filled(replacement: &str, whole: &str, groups: &[(usize, usize)], line: &[char]) -> String {
    let mut new = String::new();
    let mut signs = replacement.chars();
    while let Some(c) = signs.next() {
        match c {
            '&' => new.push_str(whole),
            '\\' => match signs.next() {
                Some(digit) if digit.is_ascii_digit() => {
                    let index = digit.to_digit(10).unwrap_or(0) as usize;
                    let group = groups.get(index.wrapping_sub(1));
                    new.extend(group.iter().flat_map(|(a, b)| &line[*a..*b]));
                }
                Some(other) => new.push(other),
                None => {}
            },
            other => new.push(other),
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitutions_by_table() {
        let cases = [
            (
                r"s/^[^0-9]*\([0-9][0-9]*\).*$/\1/",
                "postgres (PostgreSQL) 17.7 (Debian)",
                Some("17\n"),
            ),
            ("s/a/b/", "cat", Some("cbt\n")),
            ("s/x*$//", "axx", Some("a\n")),
            ("s,a,[&],", "cat", Some("c[a]t\n")),
            ("s/a/b/g", "banana", Some("bbnbnb\n")),
            (r"s/[\\:]/\\&/g", r"a:b\c", Some("a\\:b\\\\c\n")),
            ("s/x*/-/g", "abc", Some("-a-b-c-\n")),
            ("s/a/b/w", "cat", None),
            ("p", "cat", None),
        ];
        for (script, input, expected) in cases {
            assert_eq!(substitute(script, input, false).as_deref(), expected, "{script}");
        }
        let lines = "one setting:   1\nother: 2\n";
        assert_eq!(substitute("s/^one setting: *//p", lines, true).as_deref(), Some("1\n"));
    }
}
