//! Captures what is logged on this thread, so that a test can read it.

use std::io;
use std::sync::{Arc, Mutex, Once};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Everything that was logged since it began.
#[derive(Clone, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<u8>>>);

impl Logs {
    /// Begins to capture this thread's log down to `level`, until the guard is dropped.
    pub(crate) fn capture(level: tracing::Level) -> (Self, DefaultGuard) {
        // Without a subscriber for the whole process, a log line that another thread passes first is
        // taken for one that nobody wants, here too.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            let deaf = tracing_subscriber::fmt()
                .with_writer(io::sink)
                .with_max_level(tracing::Level::TRACE)
                .finish();
            let _ = tracing::subscriber::set_global_default(deaf);
        });
        let logs = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(logs.clone())
            .with_max_level(level)
            .with_ansi(false)
            .finish();
        (logs, tracing::subscriber::set_default(subscriber))
    }

    /// The text so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no writer panics")).into_owned()
    }

    /// Lines that hold `word`.
    pub(crate) fn lines_with(&self, word: &str) -> Vec<String> {
        self.text().lines().filter(|line| line.contains(word)).map(str::to_owned).collect()
    }
}

impl io::Write for Logs {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Logs {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
