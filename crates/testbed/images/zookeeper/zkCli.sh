#!/usr/bin/env bash
# The client: zkCli.sh [--config FOLDER] [-server HOST:PORT] [command ...]
. "$(dirname "$(readlink -f "$0")")/zkEnv.sh"
# shellcheck disable=SC2086
exec "$java" "-Dzookeeper.log.dir=$ZOO_LOG_DIR" -cp "$CLASSPATH" $CLIENT_JVMFLAGS \
    org.apache.zookeeper.ZooKeeperMain "$@"
