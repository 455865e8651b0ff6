//! The images that the tests use. Scripts and sources lie in `images/`.

use super::{Base, File, Jars, Recipe};
use crate::node::PAUSE_IMAGE;

/// All of them.
pub const ALL: &[Recipe] = &[PAUSE, POSTGRES_15, POSTGRES_17, ZOOKEEPER, RABBITMQ];

/// What holds a pod's namespaces open.
pub const PAUSE: Recipe = Recipe {
    names: &[PAUSE_IMAGE],
    base: Base::Program { path: "pause", source: include_str!("../../images/pause/pause.c") },
    jars: None,
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
    jars: None,
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
    jars: None,
    files: &[POSTGRES_ENTRY],
    settings: include_str!("../../images/postgres/17.json"),
};

const POSTGRES_ENTRY: File = program(
    "usr/local/bin/docker-entrypoint.sh",
    include_str!("../../images/postgres/docker-entrypoint.sh"),
);

/// ZooKeeper: Apache's own archives on Debian's Java.
pub const ZOOKEEPER: Recipe = Recipe {
    names: &["zookeeper:3.9", "zookeeper:3.9.4"],
    base: Base::Debian {
        suite: "bookworm",
        packages: &["openjdk-17-jre-headless", "gosu", "netcat-openbsd"],
        prepare: include_str!("../../images/zookeeper/prepare.sh"),
        finish: include_str!("../../images/zookeeper/finish.sh"),
    },
    jars: Some(Jars {
        pom: include_str!("../../images/zookeeper/pom.xml"),
        folder: "apache-zookeeper-3.9.4-bin/lib",
    }),
    files: &[
        program(
            "docker-entrypoint.sh",
            include_str!("../../images/zookeeper/docker-entrypoint.sh"),
        ),
        program(
            "apache-zookeeper-3.9.4-bin/bin/zkServer.sh",
            include_str!("../../images/zookeeper/zkServer.sh"),
        ),
        program(
            "apache-zookeeper-3.9.4-bin/bin/zkCli.sh",
            include_str!("../../images/zookeeper/zkCli.sh"),
        ),
        program(
            "apache-zookeeper-3.9.4-bin/bin/zkEnv.sh",
            include_str!("../../images/zookeeper/zkEnv.sh"),
        ),
        File {
            path: "conf/logback.xml",
            text: include_str!("../../images/zookeeper/logback.xml"),
            executable: false,
        },
    ],
    settings: include_str!("../../images/zookeeper/3.9.json"),
};

/// RabbitMQ, as Debian packages it.
pub const RABBITMQ: Recipe = Recipe {
    names: &["rabbitmq:4.0-management", "rabbitmq:4-management"],
    base: Base::Debian {
        suite: "trixie",
        packages: &["rabbitmq-server", "gosu"],
        prepare: include_str!("../../images/rabbitmq/prepare.sh"),
        finish: include_str!("../../images/rabbitmq/finish.sh"),
    },
    jars: None,
    files: &[program(
        "usr/local/bin/docker-entrypoint.sh",
        include_str!("../../images/rabbitmq/docker-entrypoint.sh"),
    )],
    settings: include_str!("../../images/rabbitmq/4.json"),
};

/// What the operator runs in; its program is put in by [`Recipe::with_program`]. The release's C library is newer than
/// that of the machines which build the program.
pub const OPERATOR: Recipe = Recipe {
    names: &["steadfast:built-here"],
    base: Base::Debian { suite: "trixie", packages: &["ca-certificates"], prepare: "", finish: "" },
    jars: None,
    files: &[],
    settings: r#"{"Entrypoint": ["steadfast"], "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"]}"#,
};

const fn program(path: &'static str, text: &'static str) -> File {
    File { path, text, executable: true }
}
