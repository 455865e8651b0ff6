//! Facts about this machine that a node reports. Only looks.

/// Memory assumed where the system does not tell.
const ASSUMED_MEMORY_BYTES: u64 = 8 << 30;

/// Bytes of memory of this machine.
pub(crate) fn memory_bytes() -> u64 {
    std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(ASSUMED_MEMORY_BYTES, |kibibytes| kibibytes << 10)
}

/// Number of processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The architecture as Kubernetes names it.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
