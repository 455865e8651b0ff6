#!/usr/bin/env bash
# What zkServer.sh and zkCli.sh share: where things are, and Java's options. Sourced with their arguments.
# `--config FOLDER` before the command names the folder of the settings.
ZOOBINDIR=$(cd -P "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ "${1:-}" = --config ]; then
    ZOOCFGDIR=$2
    shift 2
fi
: "${ZOOCFGDIR:=$ZOOBINDIR/../conf}"
if [ -f "$ZOOCFGDIR/zookeeper-env.sh" ]; then . "$ZOOCFGDIR/zookeeper-env.sh"; fi
if [ -f "$ZOOCFGDIR/java.env" ]; then . "$ZOOCFGDIR/java.env"; fi
: "${ZOOCFG:=zoo.cfg}"
: "${ZOO_LOG_DIR:=$ZOOBINDIR/../logs}"
java=java
if [ -n "${JAVA_HOME:-}" ] && [ -x "$JAVA_HOME/bin/java" ]; then java=$JAVA_HOME/bin/java; fi
CLASSPATH="$ZOOCFGDIR:$ZOOBINDIR/../lib/*${CLASSPATH:+:$CLASSPATH}"
# Words of these variables are arguments of their own.
SERVER_JVMFLAGS="-Xmx${ZK_SERVER_HEAP:-1000}m ${SERVER_JVMFLAGS:-} ${JVMFLAGS:-}"
CLIENT_JVMFLAGS="-Xmx${ZK_CLIENT_HEAP:-256}m ${CLIENT_JVMFLAGS:-} ${JVMFLAGS:-}"
