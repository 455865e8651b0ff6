//! The commands that the shell knows, over mounted files and volumes.
//!
//! Must not know PostgreSQL's programs; `postgres` does.

use super::{Leave, Said, Shell, expression};

impl Shell<'_> {
    pub(super) fn command(
        &mut self,
        name: &str,
        arguments: &[String],
        input: &str,
    ) -> Result<Said, Leave> {
        let number = |index: usize| arguments.get(index).and_then(|text| text.parse::<i64>().ok());
        let status = |status: i64| Said { status, ..Said::default() };
        self.shell_itself(name, arguments);
        Ok(match name {
            "true" | ":" | "umask" | "sync" => status(0),
            "false" => status(1),
            "exit" => return Err(Leave::Exit(number(0).unwrap_or(0))),
            "return" => return Err(Leave::Return(number(0).unwrap_or(0))),
            "echo" => Said::out(format!("{}\n", arguments.join(" "))),
            "printf" => Said::out(printf(arguments)),
            "[" | "test" => status(self.test(name, arguments)),
            "cat" if arguments.is_empty() => Said::out(input.to_owned()),
            "cat" => self.cat(arguments),
            "ls" => self.ls(arguments),
            "sed" => self.sed(arguments, input),
            "rm" => self.rm(arguments),
            "chmod" => self.chmod(arguments),
            other => match self.program(other, arguments)? {
                Some(said) => said,
                None => Said::failed(127, format!("sh: {other}: not found in the model's shell\n")),
            },
        })
    }

    /// What a command does to the shell itself.
    pub(super) fn shell_itself(&mut self, name: &str, arguments: &[String]) {
        if let ("umask", Some(mask)) = (name, arguments.first()) {
            self.closed = mask.ends_with("77");
        }
    }

    fn cat(&self, paths: &[String]) -> Said {
        let mut said = Said::default();
        for path in paths {
            match self.file(path) {
                Some(content) => said.out.push_str(content),
                None => {
                    said.status = 1;
                    said.errors.push_str(&format!("cat: {path}: No such file or directory\n"));
                }
            }
        }
        said
    }

    fn ls(&self, arguments: &[String]) -> Said {
        let Some(path) = arguments.iter().find(|word| !word.starts_with('-')) else {
            return Said::default();
        };
        match self.is_folder(path) {
            true => Said::out(self.names(path).iter().map(|name| format!("{name}\n")).collect()),
            false => {
                Said::failed(2, format!("ls: cannot access '{path}': No such file or directory\n"))
            }
        }
    }

    fn sed(&self, arguments: &[String], input: &str) -> Said {
        let mut words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let quiet = words.first() == Some(&"-n");
        if quiet {
            words.remove(0);
        }
        let Some((script, files)) = words.split_first() else { return unknown("sed alone") };
        let mut said = Said::default();
        let mut text = String::new();
        for path in files {
            match self.file(path) {
                Some(content) => text.push_str(content),
                None => {
                    said.status = 2;
                    let line = format!("sed: can't read {path}: No such file or directory\n");
                    said.errors.push_str(&line);
                }
            }
        }
        let source = if files.is_empty() { input } else { &text };
        match expression::substitute(script, source, quiet) {
            Some(out) => Said { out, ..said },
            None => unknown(&format!("sed '{script}'")),
        }
    }

    fn rm(&mut self, arguments: &[String]) -> Said {
        let (options, paths): (Vec<&String>, Vec<&String>) =
            arguments.iter().partition(|word| word.starts_with('-'));
        let option = |letter: char| options.iter().any(|word| word.contains(letter));
        for path in paths {
            if path.contains('*') {
                return unknown("rm with patterns");
            }
            let Some((volume, rest)) = self.launch.volume_of(path) else {
                return Said::failed(
                    1,
                    format!("rm: cannot remove '{path}': Read-only file system\n"),
                );
            };
            let (file, folder) = (self.file(path).is_some(), self.is_folder(path));
            if folder && !option('r') && !option('R') {
                return Said::failed(1, format!("rm: cannot remove '{path}': Is a directory\n"));
            }
            if !file && !folder && !option('f') {
                let text = format!("rm: cannot remove '{path}': No such file or directory\n");
                return Said::failed(1, text);
            }
            self.volumes.unlink(&volume, &rest);
            self.volumes.clear(&volume, &rest);
        }
        Said::default()
    }

    fn chmod(&mut self, arguments: &[String]) -> Said {
        let Some((mode, paths)) = arguments.split_first() else { return unknown("chmod alone") };
        if mode.is_empty() || !mode.chars().all(|c| c.is_digit(8)) {
            return unknown("chmod with other than numbers");
        }
        for path in paths {
            if let Some((volume, rest)) = self.launch.volume_of(path) {
                self.volumes.close(&volume, &rest, mode.ends_with("00"));
            }
        }
        Said::default()
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
            [left, sign, right] if sign.starts_with('-') => {
                let (Ok(left), Ok(right)) = (left.parse::<i64>(), right.parse::<i64>()) else {
                    return 2;
                };
                match *sign {
                    "-eq" => left == right,
                    "-ne" => left != right,
                    "-gt" => left > right,
                    "-ge" => left >= right,
                    "-lt" => left < right,
                    "-le" => left <= right,
                    _ => return 2,
                }
            }
            [text] => !text.is_empty(),
            _ => return 2,
        };
        i64::from(!holds)
    }

    /// Writes a file of a volume, or says why not.
    pub(super) fn write(&mut self, path: &str, text: &str, adds: bool) -> Result<(), &'static str> {
        if self.launch.files.contains_key(path) {
            return Err("Read-only file system");
        }
        let Some((volume, rest)) = self.launch.volume_of(path) else {
            return Err("Read-only file system");
        };
        if self.volumes.is_full(&volume) {
            return Err("No space left on device");
        }
        let before = self.volumes.file(&volume, &rest);
        let new = before.is_none();
        let whole = before.filter(|_| adds).unwrap_or("").to_owned() + text;
        self.volumes.write(&volume, &rest, &whole);
        if new {
            self.volumes.close(&volume, &rest, self.closed);
        }
        Ok(())
    }

    pub(super) fn file(&self, path: &str) -> Option<&str> {
        if let Some(text) = self.launch.files.get(path) {
            return Some(text);
        }
        let (volume, rest) = self.launch.volume_of(path)?;
        self.volumes.file(&volume, &rest)
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        self.launch.mounts.contains_key(path) || !self.names(path).is_empty()
    }

    pub(super) fn names(&self, path: &str) -> Vec<String> {
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

/// `printf` with `%s`, `%d` and the common escapes.
fn printf(arguments: &[String]) -> String {
    let Some((format, rest)) = arguments.split_first() else { return String::new() };
    let mut values = rest.iter();
    let mut text = String::new();
    loop {
        let left = values.len();
        let mut signs = format.chars();
        while let Some(c) = signs.next() {
            match (c, signs.clone().next()) {
                ('\\', Some(next)) => {
                    signs.next();
                    text.push(match next {
                        'n' => '\n',
                        't' => '\t',
                        other => other,
                    });
                }
                ('%', Some('%')) => {
                    signs.next();
                    text.push('%');
                }
                ('%', Some('s' | 'd')) => {
                    signs.next();
                    text.push_str(values.next().map_or("", String::as_str));
                }
                (c, _) => text.push(c),
            }
        }
        // The format is used again while there are values that it takes.
        if values.len() == 0 || values.len() == left {
            return text;
        }
    }
}

pub(super) fn unknown(what: &str) -> Said {
    Said::failed(2, format!("the model's shell does not know {what}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printf_by_table() {
        let said = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            printf(&words)
        };
        assert_eq!(said(&["*:%s\\n", "a\\b"]), "*:a\\b\n");
        assert_eq!(said(&["%s-%d%%"]), "-%");
        assert_eq!(said(&["%s\\n", "a", "b"]), "a\nb\n");
        assert_eq!(said(&["plain"]), "plain");
    }
}
