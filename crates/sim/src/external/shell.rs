//! A small POSIX shell over a container's files, for init containers that look before they leap.
//!
//! Knows functions, `if`, lists, pipes, `$(…)`, `[ … ]` and a handful of commands. What it does not
//! know ends the script with words that say so. Must not start servers.

mod expression;
mod parse;

use std::collections::BTreeMap;

use crate::builtin::pods::program::{Exit, Launch};
use crate::external::volumes::Volumes;
use parse::{Node, Part, Word};

/// Runs a script with what its container was given.
pub(crate) fn run(script: &str, launch: &Launch, volumes: &Volumes) -> Exit {
    let nodes = match parse::script(script) {
        Ok(nodes) => nodes,
        Err(what) => return Exit { code: 2, message: format!("sh: {what}\n") },
    };
    let mut shell = Shell {
        launch,
        volumes,
        variables: launch.environment.clone(),
        functions: BTreeMap::new(),
        log: String::new(),
    };
    let code = match shell.list(&nodes, &mut Streams::default()) {
        Ok(status) => status,
        Err(Leave::Exit(code)) => code,
        Err(Leave::Return(status)) => status,
    };
    Exit { code, message: shell.log }
}

/// Leaving before the end.
enum Leave {
    Exit(i64),
    Return(i64),
}

type Status = Result<i64, Leave>;

/// Standard input and, when it is captured, standard output.
#[derive(Default)]
struct Streams {
    input: String,
    output: Option<String>,
}

struct Shell<'a> {
    launch: &'a Launch,
    volumes: &'a Volumes,
    variables: BTreeMap<String, String>,
    functions: BTreeMap<String, Vec<Node>>,
    log: String,
}

impl Shell<'_> {
    fn list(&mut self, nodes: &[Node], streams: &mut Streams) -> Status {
        let mut status = 0;
        for node in nodes {
            status = self.node(node, streams)?;
        }
        Ok(status)
    }

    fn node(&mut self, node: &Node, streams: &mut Streams) -> Status {
        match node {
            Node::Simple(words, assignments, quiet) => {
                self.simple(words, assignments, *quiet, streams)
            }
            Node::Pipe(parts) => self.pipe(parts, streams),
            Node::And(left, right) => match self.node(left, streams)? {
                0 => self.node(right, streams),
                status => Ok(status),
            },
            Node::Or(left, right) => match self.node(left, streams)? {
                0 => Ok(0),
                _ => self.node(right, streams),
            },
            Node::Not(inner) => Ok(i64::from(self.node(inner, streams)? == 0)),
            Node::If(branches, other) => {
                for (test, then) in branches {
                    if self.list(test, streams)? == 0 {
                        return self.list(then, streams);
                    }
                }
                self.list(other, streams)
            }
            Node::Group(nodes) => self.list(nodes, streams),
            Node::Function(name, body) => {
                self.functions.insert(name.clone(), body.clone());
                Ok(0)
            }
        }
    }

    fn pipe(&mut self, parts: &[Node], streams: &mut Streams) -> Status {
        let mut input = std::mem::take(&mut streams.input);
        let mut status = 0;
        let Some((last, before)) = parts.split_last() else { return Ok(0) };
        for part in before {
            let mut inner = Streams { input, output: Some(String::new()) };
            self.node(part, &mut inner)?;
            input = inner.output.unwrap_or_default();
        }
        let mut inner = Streams { input, output: streams.output.take() };
        status += self.node(last, &mut inner)?;
        streams.output = inner.output;
        Ok(status)
    }

    fn simple(
        &mut self,
        words: &[Word],
        assignments: &[(String, Word)],
        quiet: bool,
        streams: &mut Streams,
    ) -> Status {
        for (name, word) in assignments {
            let value = self.expand(word)?;
            self.variables.insert(name.clone(), value);
        }
        let mut arguments = Vec::new();
        for word in words {
            let text = self.expand(word)?;
            // An unquoted expansion to nothing is no word at all.
            if !text.is_empty() || word.quoted {
                arguments.push(text);
            }
        }
        if arguments.first().is_some_and(|word| word == "exec") {
            arguments.remove(0);
        }
        let Some(name) = arguments.first().cloned() else { return Ok(0) };
        if let Some(body) = self.functions.get(&name).cloned() {
            return self.function(&body, &arguments, streams);
        }
        let (status, text) = self.command(&name, &arguments[1..], &streams.input)?;
        match &mut streams.output {
            Some(captured) if !quiet => captured.push_str(&text),
            _ if !quiet => self.log.push_str(&text),
            _ => {}
        }
        Ok(status)
    }

    fn function(&mut self, body: &[Node], arguments: &[String], streams: &mut Streams) -> Status {
        let before = self.variables.clone();
        for (index, argument) in arguments.iter().enumerate().skip(1) {
            self.variables.insert(index.to_string(), argument.clone());
        }
        let status = match self.list(body, streams) {
            Err(Leave::Return(status)) => Ok(status),
            other => other,
        };
        for index in 1..arguments.len() {
            let index = index.to_string();
            match before.get(&index) {
                Some(old) => drop(self.variables.insert(index, old.clone())),
                None => drop(self.variables.remove(&index)),
            }
        }
        status
    }

    fn expand(&mut self, word: &Word) -> Result<String, Leave> {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Variable(name) => {
                    text.push_str(self.variables.get(name).map_or("", String::as_str));
                }
                Part::Command(nodes) => {
                    let mut inner = Streams { input: String::new(), output: Some(String::new()) };
                    match self.list(nodes, &mut inner) {
                        Ok(_) | Err(Leave::Exit(_)) => {}
                        Err(leave) => return Err(leave),
                    }
                    text.push_str(inner.output.unwrap_or_default().trim_end_matches('\n'));
                }
            }
        }
        Ok(text)
    }

    fn command(
        &mut self,
        name: &str,
        arguments: &[String],
        input: &str,
    ) -> Result<(i64, String), Leave> {
        let number = |index: usize| arguments.get(index).and_then(|text| text.parse().ok());
        Ok(match name {
            ":" | "true" => (0, String::new()),
            "set" => (0, String::new()),
            "false" => (1, String::new()),
            "exit" => return Err(Leave::Exit(number(0).unwrap_or(0))),
            "return" => return Err(Leave::Return(number(0).unwrap_or(0))),
            "echo" => (0, format!("{}\n", arguments.join(" "))),
            "printf" => (0, arguments.join(" ").replace("\\n", "\n")),
            "[" | "test" => (self.test(name, arguments), String::new()),
            "cat" if arguments.is_empty() => (0, input.to_owned()),
            "cat" => self.cat(arguments),
            "ls" => self.ls(arguments),
            "sed" => match arguments {
                [script] => match expression::substitute(script, input) {
                    Some(text) => (0, text),
                    None => unknown(&format!("sed '{script}'")),
                },
                _ => unknown("sed with files or options"),
            },
            "postgres" if arguments == ["--version"] => {
                let version = crate::external::postgres::Version::of_image(self.launch.image());
                (0, format!("postgres (PostgreSQL) {}\n", version.shown()))
            }
            other => (127, format!("sh: {other}: not found in the model's shell\n")),
        })
    }

    fn cat(&self, paths: &[String]) -> (i64, String) {
        let mut text = String::new();
        for path in paths {
            match self.file(path) {
                Some(content) => text.push_str(content),
                None => return (1, format!("cat: {path}: No such file or directory\n")),
            }
        }
        (0, text)
    }

    fn ls(&self, arguments: &[String]) -> (i64, String) {
        let Some(path) = arguments.iter().find(|word| !word.starts_with('-')) else {
            return (0, String::new());
        };
        match self.is_folder(path) {
            true => (0, self.names(path).iter().map(|name| format!("{name}\n")).collect()),
            false => (2, format!("ls: cannot access '{path}': No such file or directory\n")),
        }
    }

    fn test(&self, name: &str, arguments: &[String]) -> i64 {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let words = match (name, words.split_last()) {
            ("[", Some((&"]", rest))) => rest.to_vec(),
            ("[", _) => return 2,
            _ => words,
        };
        let holds = match words.as_slice() {
            ["!", rest @ ..] => {
                let rest: Vec<String> = rest.iter().map(|word| (*word).to_owned()).collect();
                self.test("test", &rest) != 0
            }
            ["-n", text] => !text.is_empty(),
            ["-z", text] => text.is_empty(),
            ["-s", path] => self.file(path).is_some_and(|text| !text.is_empty()),
            ["-f" | "-r", path] => self.file(path).is_some(),
            ["-d", path] => self.is_folder(path),
            ["-e", path] => self.file(path).is_some() || self.is_folder(path),
            [left, "=" | "==", right] => left == right,
            [left, "!=", right] => left != right,
            [text] => !text.is_empty(),
            _ => return 2,
        };
        i64::from(!holds)
    }

    fn file(&self, path: &str) -> Option<&str> {
        if let Some(text) = self.launch.files.get(path) {
            return Some(text);
        }
        let (volume, rest) = self.launch.volume_of(path)?;
        self.volumes.file(&volume, &rest)
    }

    fn is_folder(&self, path: &str) -> bool {
        self.launch.mounts.contains_key(path) || !self.names(path).is_empty()
    }

    fn names(&self, path: &str) -> Vec<String> {
        let mut names: Vec<String> = self
            .launch
            .files
            .keys()
            .filter_map(|file| file.strip_prefix(path)?.strip_prefix('/'))
            .filter_map(|rest| rest.split('/').next())
            .map(str::to_owned)
            .collect();
        if let Some((volume, rest)) = self.launch.volume_of(path) {
            names.extend(self.volumes.names(&volume, &rest).map(str::to_owned));
        }
        names.sort();
        names.dedup();
        names
    }
}

fn unknown(what: &str) -> (i64, String) {
    (2, format!("the model's shell does not know {what}\n"))
}
