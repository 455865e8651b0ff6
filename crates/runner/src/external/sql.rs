//! One SQL session over PostgreSQL's wire protocol, simple queries only.
//!
//! The search path is fixed and statements are bounded in time before the first of them runs, so
//! that nothing planted by a user of the database runs with our rights (fault catalogue PG-15) and
//! no lock holds us (PG-39).

use std::time::Duration;

use phased::fact::{Access, SqlOutcome, SqlRequest};
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::dial::Dialer;

/// A session with its secrets resolved.
pub(crate) struct Session<'a> {
    pub(crate) request: &'a SqlRequest,
    pub(crate) password: &'a [u8],
    pub(crate) statements: &'a [String],
}

type Rows = Vec<Vec<Option<String>>>;

impl Session<'_> {
    /// Connects, runs the statements, and ends.
    pub(crate) async fn run(&self, dialer: &dyn Dialer) -> SqlOutcome {
        let bound = Duration::from_secs(u64::from(self.request.timeout_seconds));
        match tokio::time::timeout(bound, self.connect(dialer)).await {
            Ok(Ok((client, driver))) => {
                let outcome = self.converse(&client).await;
                drop(client);
                driver.abort();
                outcome
            }
            Ok(Err(outcome)) => outcome,
            Err(_) => self.unreachable("no answer in time"),
        }
    }

    async fn connect(
        &self,
        dialer: &dyn Dialer,
    ) -> Result<(Client, tokio::task::JoinHandle<()>), SqlOutcome> {
        let stream = dialer
            .dial(&self.request.host, self.request.port)
            .await
            .map_err(|e| self.unreachable(&e.to_string()))?;
        let (client, connection) =
            self.config().connect_raw(stream, NoTls).await.map_err(|e| self.explain(&e, None))?;
        let driver = tokio::spawn(async move {
            // The client sees the same error on its next call; here there is nobody to tell.
            let _ = connection.await;
        });
        Ok((client, driver))
    }

    fn config(&self) -> Config {
        let milliseconds = u64::from(self.request.timeout_seconds) * 1000;
        let mut config = Config::new();
        config
            .user(&self.request.user)
            .password(self.password)
            .dbname(&self.request.database)
            .application_name("steadfast")
            .options(format!(
                "-c search_path=pg_catalog -c statement_timeout={milliseconds} \
                 -c lock_timeout={milliseconds} \
                 -c idle_in_transaction_session_timeout={milliseconds}"
            ));
        config
    }

    async fn converse(&self, client: &Client) -> SqlOutcome {
        let (open, close) = match self.request.access {
            Access::ReadOnly => (Some("BEGIN READ ONLY"), Some("ROLLBACK")),
            Access::Probe => (Some("BEGIN"), Some("ROLLBACK")),
            Access::Change => (None, None),
        };
        if let Some(open) = open
            && let Err(outcome) = self.query(client, open, None).await
        {
            return outcome;
        }
        let mut results = Vec::new();
        for (index, statement) in self.statements.iter().enumerate() {
            match self.query(client, statement, Some(index)).await {
                Ok(rows) => results.push(rows),
                Err(outcome) => return outcome,
            }
        }
        match close {
            Some(close) => match self.query(client, close, None).await {
                Ok(_) => SqlOutcome::Rows(results),
                Err(outcome) => outcome,
            },
            None => SqlOutcome::Rows(results),
        }
    }

    async fn query(
        &self,
        client: &Client,
        statement: &str,
        index: Option<usize>,
    ) -> Result<Rows, SqlOutcome> {
        let bound = Duration::from_secs(u64::from(self.request.timeout_seconds) + 1);
        let messages = tokio::time::timeout(bound, client.simple_query(statement))
            .await
            .map_err(|_| self.unreachable("the server did not answer a statement in time"))?
            .map_err(|e| self.explain(&e, index))?;
        Ok(messages.iter().filter_map(row).collect())
    }

    /// The server's own words, without the statement, which may hold a verifier.
    fn explain(&self, error: &tokio_postgres::Error, statement: Option<usize>) -> SqlOutcome {
        match error.as_db_error() {
            Some(refusal) => SqlOutcome::Refused {
                code: refusal.code().code().to_owned(),
                message: refusal.message().to_owned(),
                statement,
            },
            None => self.unreachable(&chain(error)),
        }
    }

    fn unreachable(&self, what: &str) -> SqlOutcome {
        SqlOutcome::Unreachable {
            message: format!("{}:{}: {what}", self.request.host, self.request.port),
        }
    }
}

fn row(message: &SimpleQueryMessage) -> Option<Vec<Option<String>>> {
    match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|i| row.get(i).map(str::to_owned)).collect())
        }
        _ => None,
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
