//! The settings that the official postgres image takes from its environment. Pure but for the reading
//! of `…_FILE` files, which is handed in. Source of the contract: reference/database.md section 1.

use std::collections::BTreeMap;
use std::io;

/// What the image's entry point would do, from its variables. Holds a password: no `Debug` on purpose.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Superuser's password; empty when none is given.
    pub(crate) password: String,
    /// Superuser's name.
    pub(crate) user: String,
    /// Database made at first start.
    pub(crate) database: String,
    /// Further arguments of `initdb`, split as a shell would.
    pub(crate) initdb_arguments: Vec<String>,
    /// Folder of the write-ahead log, when apart from the data.
    pub(crate) wal_folder: Option<String>,
    /// Method of the `host all all all` line, when not the server's own default.
    pub(crate) auth_method: Option<String>,
}

impl Settings {
    /// Reads the variables; the error is what the container says before it exits with 1.
    pub(crate) fn read(
        environment: &BTreeMap<String, String>,
        read_file: impl Fn(&str) -> io::Result<String>,
    ) -> Result<Self, String> {
        let value =
            |name: &str, default: &str| file_or_value(environment, name, default, &read_file);
        let plain = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
        let password = value("POSTGRES_PASSWORD", "")?;
        let user = value("POSTGRES_USER", "postgres")?;
        let database = value("POSTGRES_DB", &user)?;
        let initdb_arguments = split_words(&value("POSTGRES_INITDB_ARGS", "")?)?;
        Ok(Self {
            password,
            user,
            database,
            initdb_arguments,
            wal_folder: plain("POSTGRES_INITDB_WALDIR"),
            auth_method: plain("POSTGRES_HOST_AUTH_METHOD"),
        })
    }

    /// Refuses to initialise a database that nobody could log in to, as the image does.
    pub(crate) fn verify(&self) -> Result<(), String> {
        if self.password.is_empty() && self.auth_method.as_deref() != Some("trust") {
            return Err("Error: Database is uninitialized and superuser password is not specified.\n       \
                 Set POSTGRES_PASSWORD (or POSTGRES_PASSWORD_FILE) to a value that is not empty, or,\n       \
                 if nobody needs a password, POSTGRES_HOST_AUTH_METHOD to \"trust\"."
                .to_owned());
        }
        Ok(())
    }

    /// The variables as the entry point exports them to the scripts it runs.
    pub(crate) fn export(&self, environment: &mut BTreeMap<String, String>) {
        for (name, value) in [
            ("POSTGRES_PASSWORD", &self.password),
            ("PGPASSWORD", &self.password),
            ("POSTGRES_USER", &self.user),
            ("POSTGRES_DB", &self.database),
        ] {
            environment.insert(name.to_owned(), value.clone());
        }
    }
}

fn file_or_value(
    environment: &BTreeMap<String, String>,
    name: &str,
    default: &str,
    read_file: &impl Fn(&str) -> io::Result<String>,
) -> Result<String, String> {
    let given = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let file_name = format!("{name}_FILE");
    match (given(name), given(&file_name)) {
        (Some(_), Some(_)) => {
            Err(format!("error: both {name} and {file_name} are set (but are exclusive)"))
        }
        (Some(value), None) => Ok(value.clone()),
        (None, Some(path)) => read_file(path)
            .map(|text| text.trim_end_matches('\n').to_owned())
            .map_err(|error| format!("error: cannot read {path} named by {file_name}: {error}")),
        (None, None) => Ok(default.to_owned()),
    }
}

/// The data folder of the image: PostgreSQL 18's moved below its major version.
pub(crate) fn default_data_folder(major: u32) -> String {
    if major >= 18 {
        format!("/var/lib/postgresql/{major}/docker")
    } else {
        "/var/lib/postgresql/data".to_owned()
    }
}

/// Splits words as a shell does: blanks, both kinds of quotes, backslash. Expands nothing.
pub(crate) fn split_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('\''), c) => word.get_or_insert_default().push(c),
            (_, '\\') => word.get_or_insert_default().extend(characters.next()),
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(format!("error: unfinished quote in POSTGRES_INITDB_ARGS: {text}"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let environment =
            variables.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Settings::read(&environment, |path| match path {
            "/secret" => Ok("hush\n".to_owned()),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        })
    }

    #[test]
    fn values_come_from_variables_or_files() {
        let settings = check(&[
            ("POSTGRES_PASSWORD_FILE", "/secret"),
            ("POSTGRES_USER", "app"),
            ("POSTGRES_INITDB_ARGS", "--auth-host=scram-sha-256 --locale 'C'"),
        ])
        .unwrap_or_else(|error| unreachable!("{error}"));
        assert_eq!(settings.password, "hush");
        assert_eq!(settings.database, "app");
        assert_eq!(settings.initdb_arguments, ["--auth-host=scram-sha-256", "--locale", "C"]);
        assert!(settings.verify().is_ok());
    }

    #[test]
    fn what_the_image_refuses_is_refused() {
        for (variables, expected) in [
            (
                vec![("POSTGRES_PASSWORD", "x"), ("POSTGRES_PASSWORD_FILE", "/secret")],
                "both POSTGRES_PASSWORD and POSTGRES_PASSWORD_FILE are set",
            ),
            (vec![("POSTGRES_PASSWORD_FILE", "/none")], "cannot read /none"),
            (vec![], "Database is uninitialized and superuser password is not specified."),
            (vec![("POSTGRES_HOST_AUTH_METHOD", "md5")], "superuser password is not specified"),
        ] {
            let error =
                check(&variables).and_then(|settings| settings.verify()).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
        let trusting = check(&[("POSTGRES_HOST_AUTH_METHOD", "trust")]);
        assert!(trusting.and_then(|settings| settings.verify()).is_ok());
    }

    #[test]
    fn words_are_split_like_a_shells() {
        for (text, expected) in [
            ("", vec![]),
            ("a  b\tc", vec!["a", "b", "c"]),
            ("'a b' \"c d\" e\\ f ''", vec!["a b", "c d", "e f", ""]),
            ("--x='y'z", vec!["--x=yz"]),
        ] {
            assert_eq!(split_words(text).expect("well formed"), expected, "{text}");
        }
        assert!(split_words("'open").is_err());
    }

    #[test]
    fn the_data_folder_moved_with_version_18() {
        assert_eq!(default_data_folder(17), "/var/lib/postgresql/data");
        assert_eq!(default_data_folder(18), "/var/lib/postgresql/18/docker");
    }
}
