//! Completion: scripts for shells, and what kubectl asks of a plugin.
//!
//! kubectl calls `kubectl_complete-steadfast` with the words so far and reads candidates, one a line,
//! and a last line `:<directive>`. Must not look at a cluster: a Tab must not wait.

use std::process::ExitCode;

use clap::{Command, CommandFactory};

use crate::args::Cli;
use crate::args::foresight::Completions;
use crate::output;

/// The name under which kubectl finds the plugin.
pub const PLUGIN: &str = "kubectl-steadfast";
/// The name under which kubectl finds its completion.
pub const PLUGIN_COMPLETION: &str = "kubectl_complete-steadfast";

/// Directive of cobra: complete file names.
const FILES: &str = ":0";
/// Directive of cobra: nothing but these candidates.
const NOTHING_ELSE: &str = ":4";

/// Prints a script.
///
/// # Errors
/// Never today.
pub fn script(options: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "steadfast", &mut script);
    output::text(&String::from_utf8_lossy(&script));
    Ok(ExitCode::SUCCESS)
}

/// Answers kubectl.
pub fn plugin(words: &[String]) -> ExitCode {
    output::text(&answer(words));
    ExitCode::SUCCESS
}

/// Candidates for the last of these words.
pub fn answer(words: &[String]) -> String {
    let (last, before) = words.split_last().map_or(("", &[][..]), |(l, b)| (l.as_str(), b));
    let root = Cli::command();
    let mut command = &root;
    for word in before {
        if let Some(below) = command.find_subcommand(word) {
            command = below;
        }
    }
    let previous = before.last().map_or("", String::as_str);
    if let Some(values) = values_of(command, previous) {
        return match values {
            Some(values) => told(values.into_iter().filter(|v| v.starts_with(last)), NOTHING_ELSE),
            None => FILES.to_owned() + "\n",
        };
    }
    if last.starts_with('-') {
        return told(options(command).into_iter().filter(|o| o.starts_with(last)), NOTHING_ELSE);
    }
    let below =
        command.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name().to_owned());
    let mut candidates: Vec<String> = below.collect();
    if matches!(command.get_name(), "explain" | "graph") {
        let kinds = operators::catalog::rows();
        candidates.extend(kinds.iter().map(|row| row.kind.kind.to_lowercase()));
    }
    told(candidates.into_iter().filter(|c| c.starts_with(last)), NOTHING_ELSE)
}

fn told(candidates: impl Iterator<Item = String>, directive: &str) -> String {
    let mut text: String = candidates.map(|candidate| candidate + "\n").collect();
    text.push_str(directive);
    text.push('\n');
    text
}

fn options(command: &Command) -> Vec<String> {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    shown.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect()
}

/// What may follow an option: its values, or files (`None` inside); `None` when it takes none.
fn values_of(command: &Command, option: &str) -> Option<Option<Vec<String>>> {
    let argument = command.get_arguments().find(|argument| {
        let long = option.strip_prefix("--").is_some_and(|name| argument.get_long() == Some(name));
        let short = option.strip_prefix('-').is_some_and(|name| {
            argument.get_short().is_some_and(|letter| name == letter.to_string())
        });
        long || short
    })?;
    if !argument.get_action().takes_values() {
        return None;
    }
    let values: Vec<String> =
        argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    Some((!values.is_empty()).then_some(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> String {
        answer(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn kubectl_is_told_commands_options_values_and_kinds() {
        assert_eq!(asked(&["pl"]), "plan\n:4\n");
        assert_eq!(asked(&["explain", "da"]), "database\n:4\n");
        assert_eq!(asked(&["plan", "--off"]), "--offline\n:4\n");
        assert_eq!(asked(&["plan", "-o", "j"]), "json\n:4\n");
        assert_eq!(asked(&["plan", "-f", ""]), ":0\n", "files");
    }
}
