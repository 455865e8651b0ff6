//! The log of a container in a bounded file: when the file is full it becomes the old half and a new one
//! begins, so that the newest lines are always there and the disk never fills.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of one half of a log.
const HALF_BYTES: u64 = 1 << 20;
/// What `FallbackToLogsOnError` takes at most (API documentation of `terminationMessagePolicy`).
const FALLBACK_BYTES: usize = 2048;
const FALLBACK_LINES: usize = 80;

/// A container's log; clones write to the same file.
#[derive(Debug, Clone)]
pub(crate) struct LogFile {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    written: u64,
}

impl LogFile {
    /// Begins an empty log, replacing what was there.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        // Usually there is none.
        let _ = fs::remove_file(older(path));
        let inner = Inner { path: path.to_path_buf(), file: begin(path)?, written: 0 };
        Ok(Self { inner: Arc::new(Mutex::new(inner)) })
    }

    /// Appends bytes of output. A full disk loses log lines, never the container.
    pub(crate) fn append(&self, bytes: &[u8]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.written >= HALF_BYTES
            && fs::rename(&inner.path, older(&inner.path)).is_ok()
            && let Ok(file) = begin(&inner.path)
        {
            inner.file = file;
            inner.written = 0;
        }
        if inner.file.write_all(bytes).is_ok() {
            inner.written += bytes.len() as u64;
        }
    }

    /// Appends one line of the node's own stand-in for the image's entry point.
    pub(crate) fn line(&self, text: &str) {
        self.append(format!("{text}\n").as_bytes());
    }

    /// Everything that is kept.
    pub(crate) fn read(&self) -> String {
        let path = self.inner.lock().unwrap_or_else(PoisonError::into_inner).path.clone();
        let mut bytes = fs::read(older(&path)).unwrap_or_default();
        bytes.extend(fs::read(&path).unwrap_or_default());
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("old")
}

fn begin(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// The end of a log as a termination message.
pub(crate) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let mut text = lines[lines.len().saturating_sub(FALLBACK_LINES)..].join("\n");
    if text.len() > FALLBACK_BYTES {
        let mut start = text.len() - FALLBACK_BYTES;
        while !text.is_char_boundary(start) {
            start += 1;
        }
        text = text.split_off(start);
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_keeps_its_newest_lines_within_bounds() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let log = LogFile::create(&place.path().join("log")).expect("created");
        let block = vec![b'x'; 1 << 19];
        for _ in 0..7 {
            log.append(&block);
        }
        log.line("last");
        let kept = log.read();
        assert!(kept.ends_with("last\n"));
        assert!(kept.len() as u64 <= 3 * HALF_BYTES, "{} bytes", kept.len());
    }

    #[test]
    fn the_tail_is_bounded_by_lines_and_bytes() {
        let many: String = (0..200).map(|n| format!("{n}\n")).collect();
        assert!(tail(&many).starts_with("120\n") && tail(&many).ends_with("199\n"));
        assert!(tail(&"é".repeat(3000)).len() <= FALLBACK_BYTES + 1);
        assert_eq!(tail(""), "");
    }
}
