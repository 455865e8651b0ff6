//! Sizes of files, functions and parameter lists against what the house allows (STYLE.md, rule 4).
//!
//! Must not decide about exceptions: those are in the ratchet.

use crate::tidy::ratchet::{Item, Measure};
use crate::tidy::source;
use crate::tree::Tree;

/// A set of limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Lines of a file, items for tests left out.
    pub(crate) file_lines: usize,
    /// Lines of a function from its signature to its closing brace.
    pub(crate) function_lines: usize,
    /// Parameters of a function, the receiver included.
    pub(crate) parameters: usize,
}

/// What must not be passed.
pub(crate) const STOP: Limits = Limits { file_lines: 400, function_lines: 70, parameters: 6 };
/// What is aimed at.
pub(crate) const AIM: Limits = Limits { file_lines: 250, function_lines: 30, parameters: 4 };

/// How many items there are, and how many of them lie over the aim.
#[derive(Debug, Default)]
pub(crate) struct Aims {
    pub(crate) files: usize,
    pub(crate) files_over: usize,
    pub(crate) functions: usize,
    pub(crate) functions_over: usize,
    pub(crate) parameters_over: usize,
}

/// Everything that passes a limit, with its size.
pub(crate) fn oversize(tree: &Tree) -> Vec<Item> {
    let mut items = Vec::new();
    for file in tree.rust() {
        let Ok(source) = source::parse(&file.text) else { continue };
        let mut add = |measure, name: &str, size: usize, limit: usize| {
            if size > limit {
                items.push(Item { measure, path: file.path.clone(), name: name.to_owned(), size });
            }
        };
        add(Measure::File, "", source.lines_without_tests(&file.text), STOP.file_lines);
        for function in &source.functions {
            add(Measure::Function, &function.name, function.lines, STOP.function_lines);
            add(Measure::Parameters, &function.name, function.parameters, STOP.parameters);
        }
    }
    items
}

/// Counts what lies over the aim.
pub(crate) fn aims(tree: &Tree) -> Aims {
    let mut aims = Aims::default();
    for file in tree.rust() {
        let Ok(source) = source::parse(&file.text) else { continue };
        aims.files += 1;
        aims.files_over += usize::from(source.lines_without_tests(&file.text) > AIM.file_lines);
        for function in &source.functions {
            aims.functions += 1;
            aims.functions_over += usize::from(function.lines > AIM.function_lines);
            aims.parameters_over += usize::from(function.parameters > AIM.parameters);
        }
    }
    aims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sample;

    fn measures(text: &str) -> Vec<(Measure, usize)> {
        let items = oversize(&sample(&[("crates/a/src/lib.rs", text)]));
        items.into_iter().map(|item| (item.measure, item.size)).collect()
    }

    #[test]
    fn a_long_file_is_oversize() {
        assert_eq!(measures(&"// line\n".repeat(401)), [(Measure::File, 401)]);
        assert_eq!(measures(&"// line\n".repeat(400)), []);
    }

    #[test]
    fn the_inline_test_module_does_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    // line\n".repeat(500));
        assert_eq!(measures(&tests), []);
    }

    #[test]
    fn a_long_function_is_oversize() {
        let body = "    let _ = 1;\n".repeat(69);
        assert_eq!(measures(&format!("fn long() {{\n{body}}}\n")), [(Measure::Function, 71)]);
    }

    #[test]
    fn a_long_parameter_list_is_oversize() {
        let text = "fn wide(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8) {}\n";
        assert_eq!(measures(text), [(Measure::Parameters, 7)]);
    }
}
