//! A small POSIX shell over a container's files, for init containers that look before they leap.
//!
//! Knows functions, `if`, lists, pipes, `$(…)`, `[ … ]`, redirections and a handful of commands. What
//! it does not know ends the script with words that say so. Must not start servers.
//!
//! Some commands take time. Then the script stops where it is, and is run again from its beginning
//! once they have ended: what every command has answered is kept, so nothing is done twice.

mod command;
mod expression;
mod parse;
mod postgres;
mod program;

use std::collections::BTreeMap;

use crate::builtin::pods::program::{Exit, Launch};
use crate::external::volumes::Volumes;
use parse::{Node, Part, Redirection, Target, Word};
use postgres::Slow;
pub(crate) use program::Scripted;

/// What a command answered.
#[derive(Clone, Debug, Default)]
struct Said {
    status: i64,
    out: String,
    errors: String,
    /// Whether its outputs have gone where they were redirected.
    settled: bool,
}

impl Said {
    fn out(text: String) -> Said {
        Said { out: text, ..Said::default() }
    }

    fn failed(status: i64, text: String) -> Said {
        Said { status, errors: text, ..Said::default() }
    }
}

/// How far a script came.
enum Outcome {
    Ended(Exit),
    Waits(Slow),
}

/// Runs a script with what its container was given; `memory` has what its commands answered before.
fn run(script: &str, launch: &Launch, volumes: &mut Volumes, memory: &mut Vec<Said>) -> Outcome {
    let nodes = match parse::script(script) {
        Ok(nodes) => nodes,
        Err(what) => {
            return Outcome::Ended(Exit { code: 2, message: format!("sh: {what}\n") });
        }
    };
    let mut shell = Shell {
        launch,
        volumes,
        memory,
        next: 0,
        variables: launch.environment.clone(),
        functions: BTreeMap::new(),
        closed: false,
        log: String::new(),
    };
    let code = match shell.list(&nodes, &mut Streams::default()) {
        Ok(status) | Err(Leave::Exit(status) | Leave::Return(status)) => status,
        Err(Leave::Wait(slow)) => return Outcome::Waits(slow),
    };
    Outcome::Ended(Exit { code, message: shell.log })
}

/// Leaving before the end.
enum Leave {
    Exit(i64),
    Return(i64),
    Wait(Slow),
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
    volumes: &'a mut Volumes,
    memory: &'a mut Vec<Said>,
    /// The command that is next in the memory.
    next: usize,
    variables: BTreeMap<String, String>,
    functions: BTreeMap<String, Vec<Node>>,
    /// Whether new files are for their owner alone.
    closed: bool,
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
            Node::Simple(words, assignments, outputs) => {
                self.simple(words, assignments, outputs, streams)
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
        let Some((last, before)) = parts.split_last() else { return Ok(0) };
        for part in before {
            let mut inner = Streams { input, output: Some(String::new()) };
            self.node(part, &mut inner)?;
            input = inner.output.unwrap_or_default();
        }
        let mut inner = Streams { input, output: streams.output.take() };
        let status = self.node(last, &mut inner)?;
        streams.output = inner.output;
        Ok(status)
    }

    fn simple(
        &mut self,
        words: &[Word],
        assignments: &[(String, Word)],
        outputs: &[Redirection],
        streams: &mut Streams,
    ) -> Status {
        let before = (!words.is_empty()).then(|| self.variables.clone());
        let mut values = Vec::new();
        for (name, word) in assignments {
            values.push((name.clone(), self.expand(word)?));
        }
        let mut arguments = Vec::new();
        for word in words {
            let text = self.expand(word)?;
            // An unquoted expansion to nothing is no word at all.
            if !text.is_empty() || word.quoted {
                arguments.push(text);
            }
        }
        self.variables.extend(values);
        if arguments.first().is_some_and(|word| word == "exec") {
            arguments.remove(0);
        }
        let Some(name) = arguments.first().cloned() else { return Ok(0) };
        if let Some(body) = self.functions.get(&name).cloned() {
            return self.function(&body, &arguments, streams);
        }
        let said = self.remembered(&name, &arguments[1..], outputs, &streams.input)?;
        if let Some(before) = before.filter(|_| !assignments.is_empty()) {
            self.variables = before;
        }
        match &mut streams.output {
            Some(captured) => captured.push_str(&said.out),
            None => self.log.push_str(&said.out),
        }
        self.log.push_str(&said.errors);
        Ok(said.status)
    }

    /// A command's answer: what it was before, or what it is now.
    fn remembered(
        &mut self,
        name: &str,
        arguments: &[String],
        outputs: &[Redirection],
        input: &str,
    ) -> Result<Said, Leave> {
        let index = self.next;
        self.next += 1;
        let said = match self.memory.get(index) {
            Some(said) if said.settled => {
                let said = said.clone();
                // What it does to the shell itself is done again.
                self.shell_itself(name, arguments);
                return Ok(said);
            }
            Some(said) => said.clone(),
            None => self.command(name, arguments, input)?,
        };
        let said = self.redirect(said, outputs)?;
        self.memory.truncate(index);
        self.memory.push(said.clone());
        Ok(said)
    }

    /// Sends outputs where they are to go, in the order in which that was written.
    fn redirect(&mut self, mut said: Said, outputs: &[Redirection]) -> Result<Said, Leave> {
        for Redirection { errors, to } in outputs {
            let text = match errors {
                true => std::mem::take(&mut said.errors),
                false => std::mem::take(&mut said.out),
            };
            match to {
                Target::Nowhere => {}
                Target::Other if *errors => said.out.push_str(&text),
                Target::Other => said.errors.push_str(&text),
                Target::File(word, adds) => {
                    let path = self.expand(word)?;
                    if let Err(why) = self.write(&path, &text, *adds) {
                        said = Said::failed(2, format!("sh: cannot create {path}: {why}\n"));
                    }
                }
            }
        }
        said.settled = true;
        Ok(said)
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
}
