//! The images that the tests use. Scripts and sources lie in `images/`.

use super::{Base, File, Recipe};
use crate::node::PAUSE_IMAGE;

/// All of them.
pub const ALL: &[Recipe] = &[PAUSE, POSTGRES_15, POSTGRES_17];

/// What holds a pod's namespaces open.
pub const PAUSE: Recipe = Recipe {
    names: &[PAUSE_IMAGE],
    base: Base::Program { path: "pause", source: include_str!("../../images/pause/pause.c") },
    files: &[],
    settings: r#"{"Entrypoint": ["/pause"]}"#,
};

/// PostgreSQL 15, under two names so that a change of the image can be tried.
pub const POSTGRES_15: Recipe = Recipe {
    names: &["postgres:15", "postgres:15.1"],
    base: Base::Debian {
        suite: "bookworm",
        packages: &["postgresql-15", "gosu", "libnss-wrapper", "locales", "xz-utils", "zstd"],
        prepare: include_str!("../../images/postgres/prepare.sh"),
        finish: include_str!("../../images/postgres/finish.sh"),
    },
    files: &[POSTGRES_ENTRY],
    settings: include_str!("../../images/postgres/15.json"),
};

/// PostgreSQL 17.
pub const POSTGRES_17: Recipe = Recipe {
    names: &["postgres:17"],
    base: Base::Debian {
        suite: "trixie",
        packages: &["postgresql-17", "gosu", "libnss-wrapper", "locales", "xz-utils", "zstd"],
        prepare: include_str!("../../images/postgres/prepare.sh"),
        finish: include_str!("../../images/postgres/finish.sh"),
    },
    files: &[POSTGRES_ENTRY],
    settings: include_str!("../../images/postgres/17.json"),
};

const POSTGRES_ENTRY: File = File {
    path: "usr/local/bin/docker-entrypoint.sh",
    text: include_str!("../../images/postgres/docker-entrypoint.sh"),
    executable: true,
};
