//! A command line that cannot be meant, in one sentence with a next step.
//!
//! The parser's own words are kept where nothing better is known. Must not act.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use foresight::mistake::Mistake;

use crate::args::Cli;

/// How each command that needs words is called rightly.
const EXAMPLES: [(&str, &str); 6] = [
    ("plan", "plan -f db.yaml"),
    ("render", "render -f db.yaml"),
    ("explain", "explain database/test-db"),
    ("graph", "graph database"),
    ("completions", "completions bash"),
    ("demo", "demo -f db.yaml"),
];

/// What is wrong with the words after the program's name, and what to write; `None` for help and the
/// version, which are no mistakes.
pub fn mistake(error: &clap::Error, program: &str, words: &[String]) -> Option<Mistake> {
    let call = Call { program, command: command(words), words };
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => None,
        ErrorKind::MissingRequiredArgument => Some(call.lacking(error)),
        ErrorKind::UnknownArgument => Some(call.unknown(error)),
        ErrorKind::InvalidSubcommand => Some(call.no_command(error)),
        _ => Some(Mistake::new(first_line(error), call.help())),
    }
}

/// The command among the words.
pub fn command(words: &[String]) -> Option<&str> {
    let known = Cli::command();
    words.iter().map(String::as_str).find(|word| known.find_subcommand(word).is_some())
}

/// What was called.
struct Call<'a> {
    program: &'a str,
    command: Option<&'a str>,
    words: &'a [String],
}

impl Call<'_> {
    /// What is called, for a sentence.
    fn name(&self) -> &str {
        self.command.unwrap_or(self.program)
    }

    /// What is called, to be typed.
    fn line(&self) -> String {
        format!("{} {}", self.program, self.command.unwrap_or_default()).trim_end().to_owned()
    }

    fn help(&self) -> String {
        format!("`{} --help` shows what it takes.", self.line())
    }

    /// How this command is called rightly.
    fn example(&self) -> Option<String> {
        let known = EXAMPLES.iter().find(|(command, _)| Some(*command) == self.command);
        known.map(|(_, example)| format!("{} {example}", self.program))
    }

    fn or_help(&self, next: Option<String>) -> String {
        next.unwrap_or_else(|| self.help())
    }

    fn lacking(&self, error: &clap::Error) -> Mistake {
        let lacking = texts(error, ContextKind::InvalidArg);
        let takes_files = lacking.iter().any(|word| word.starts_with("--filename"));
        let lacks = format!("{} needs {}.", self.name(), lacking.join(" and "));
        if takes_files {
            let sentence = format!("{} was not told which manifests: -f is missing.", self.name());
            let next = self.example().map(|example| {
                format!("Name a file, a folder, or `-` for standard input, such as: {example}")
            });
            return Mistake::new(sentence, self.or_help(next));
        }
        if lacking.iter().all(|word| word.starts_with('-')) {
            return Mistake::new(lacks, format!("Add {}.", lacking.join(" and ")));
        }
        let next = self.example().map(|example| format!("Write, for example: {example}"));
        Mistake::new(lacks, self.or_help(next))
    }

    fn unknown(&self, error: &clap::Error) -> Mistake {
        let word = texts(error, ContextKind::InvalidArg).join(" ");
        let sentence = format!("{} does not take `{word}`.", self.name());
        let meant = texts(error, ContextKind::SuggestedArg);
        let next = if let Some(meant) = meant.last() {
            Some(format!("Did you mean {meant}?"))
        } else if !word.starts_with('-') && self.takes_files() {
            Some(format!("If it is a manifest, write: {} -f {word}", self.line()))
        } else {
            None
        };
        Mistake::new(sentence, self.or_help(next))
    }

    /// Whether manifests could be meant that nothing names yet.
    fn takes_files(&self) -> bool {
        let named = self.words.iter().any(|word| word.starts_with("-f") || word == "--filename");
        !named && self.example().is_some_and(|example| example.contains(" -f "))
    }

    fn no_command(&self, error: &clap::Error) -> Mistake {
        let word = texts(error, ContextKind::InvalidSubcommand).join(" ");
        let meant = texts(error, ContextKind::SuggestedSubcommand);
        let next = match meant.last() {
            Some(meant) => format!("Did you mean {meant}?"),
            None => format!("`{} --help` lists the commands.", self.program),
        };
        Mistake::new(format!("{} has no command `{word}`.", self.program), next)
    }
}

/// What the parser says of one thing.
fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    }
}

/// The parser's own sentence.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    foresight::words::sentence(line.strip_prefix("error: ").unwrap_or(line))
}
