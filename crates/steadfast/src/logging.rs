//! Structured logs on standard error.

use tracing_subscriber::EnvFilter;

use crate::args::LogFormat;

/// Starts logging. `demo` shows the phases itself, so it leaves colour and the level of the
/// library crates alone and writes to standard error as the others do.
pub fn start(filter: &str, format: LogFormat, demo: bool) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|error| {
        eprintln!("steadfast: log filter `{filter}` is not understood ({error}); using `info`");
        EnvFilter::new("info")
    });
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(!demo)
        .with_ansi(terminal);
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
}
