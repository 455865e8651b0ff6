//! What the checks need to know of a parsed Rust file: functions, test parts, modules, re-exports.
//!
//! Must not judge: the limits are in `size`, the bans in `names` and `sleeps`.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// One function with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// Name with the type or trait it belongs to, for example `Store::get`.
    pub(crate) name: String,
    /// Line of the signature.
    pub(crate) line: usize,
    /// Lines from the signature to the closing brace.
    pub(crate) lines: usize,
    /// Parameters, the receiver included.
    pub(crate) parameters: usize,
}

/// The parts of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) functions: Vec<Function>,
    /// Lines, first and last, of the items that exist in tests only.
    pub(crate) test_items: Vec<(usize, usize)>,
    /// Modules declared here: name and line.
    pub(crate) modules: Vec<(String, usize)>,
    /// Lines of `pub use` items that end in a star.
    pub(crate) glob_reexports: Vec<usize>,
}

impl Source {
    /// Whether a line belongs to an item that exists in tests only.
    pub(crate) fn in_tests(&self, line: usize) -> bool {
        self.test_items.iter().any(|(first, last)| (*first..=*last).contains(&line))
    }

    /// Lines of the file without the items that exist in tests only.
    pub(crate) fn lines_without_tests(&self, text: &str) -> usize {
        (1..=text.lines().count()).filter(|line| !self.in_tests(*line)).count()
    }
}

/// Parses one file.
pub(crate) fn parse(text: &str) -> syn::Result<Source> {
    let file = syn::parse_file(text)?;
    let mut reader = Reader::default();
    reader.visit_file(&file);
    Ok(reader.source)
}

/// Walks a file and collects its parts.
#[derive(Default)]
struct Reader {
    source: Source,
    /// The types and traits around the current item.
    around: Vec<String>,
}

impl Reader {
    fn function(&mut self, signature: &syn::Signature, block: Span) {
        let line = signature.span().start().line;
        let mut name = self.around.last().cloned().unwrap_or_default();
        if !name.is_empty() {
            name.push_str("::");
        }
        name.push_str(&signature.ident.to_string());
        let lines = block.end().line.saturating_sub(line) + 1;
        let parameters = signature.inputs.len();
        self.source.functions.push(Function { name, line, lines, parameters });
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if attributes(item).iter().any(only_in_tests) {
            let span = item.span();
            self.source.test_items.push((span.start().line, span.end().line));
        }
        visit::visit_item(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, item.block.span());
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of_type = type_name(&item.self_ty);
        let name = match &item.trait_ {
            Some((path, _)) => format!("{of_type} as {}", last_segment(path)),
            None => of_type,
        };
        self.around.push(name);
        visit::visit_item_impl(self, item);
        self.around.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, item.block.span());
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.around.push(item.ident.to_string());
        visit::visit_item_trait(self, item);
        self.around.pop();
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let end = item.default.as_ref().map_or_else(|| item.sig.span(), Spanned::span);
        self.function(&item.sig, end);
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let line = item.ident.span().start().line;
        self.source.modules.push((item.ident.to_string(), line));
        visit::visit_item_mod(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !matches!(item.vis, syn::Visibility::Inherited) && has_glob(&item.tree) {
            self.source.glob_reexports.push(item.span().start().line);
        }
    }
}

/// The attributes of the items that can be marked as belonging to tests.
fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an attribute is `#[cfg(test)]`.
fn only_in_tests(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
}

fn has_glob(tree: &syn::UseTree) -> bool {
    match tree {
        syn::UseTree::Path(path) => has_glob(&path.tree),
        syn::UseTree::Group(group) => group.items.iter().any(has_glob),
        syn::UseTree::Glob(_) => true,
        syn::UseTree::Name(_) | syn::UseTree::Rename(_) => false,
    }
}

fn type_name(of: &syn::Type) -> String {
    match of {
        syn::Type::Path(path) => last_segment(&path.path),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => "_".to_owned(),
    }
}

fn last_segment(path: &syn::Path) -> String {
    path.segments.last().map_or_else(|| "_".to_owned(), |segment| segment.ident.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_measured_from_its_signature_to_its_brace() {
        let source = parse("/// Doc.\n#[inline]\nfn two(a: u8, b: u8) -> u8 {\n    a + b\n}\n")
            .expect("valid source");
        let expected = Function { name: "two".to_owned(), line: 3, lines: 3, parameters: 2 };
        assert_eq!(source.functions, [expected]);
    }

    #[test]
    fn methods_carry_their_type_and_trait() {
        let text = "impl Store { fn get(&self) {} }\nimpl Clone for Store { fn clone(&self) {} }\n\
                    trait Seen { fn at(&self) {} }\n";
        let source = parse(text).expect("valid source");
        let names: Vec<_> = source.functions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["Store::get", "Store as Clone::clone", "Seen::at"]);
    }

    #[test]
    fn test_items_do_not_count_as_lines_of_the_file() {
        let text = "fn one() {}\n\n#[cfg(test)]\nmod tests {\n    fn two() {}\n}\n";
        let source = parse(text).expect("valid source");
        assert_eq!(source.lines_without_tests(text), 2);
        assert!(source.in_tests(5));
        assert!(!source.in_tests(1));
    }
}
