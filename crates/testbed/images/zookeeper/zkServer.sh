#!/usr/bin/env bash
# The server: zkServer.sh [--config FOLDER] COMMAND [FILE]. Commands as in Apache's own script, for a container:
# the log goes to where the command's own output goes.
. "$(dirname "$(readlink -f "$0")")/zkEnv.sh"

command=${1:-}
case ${2:-} in
'') file=$ZOOCFGDIR/$ZOOCFG ;;
/*) file=$2 ;;
*) file=$ZOOCFGDIR/$2 ;;
esac

setting() { sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*//p" "$file" 2>/dev/null | tail -n 1; }

management() {
    if [ "${JMXDISABLE:-}" = true ]; then return; fi
    echo "-Dcom.sun.management.jmxremote -Dcom.sun.management.jmxremote.local.only=${JMXLOCALONLY:-false}"
    if [ -n "${JMXPORT:-}" ]; then
        echo "-Dcom.sun.management.jmxremote.port=$JMXPORT"
        echo "-Dcom.sun.management.jmxremote.authenticate=${JMXAUTH:-false}"
        echo "-Dcom.sun.management.jmxremote.ssl=${JMXSSL:-false}"
    fi
}

# shellcheck disable=SC2046,SC2086
line() {
    printf '%s\n' "$java" "-Dzookeeper.log.dir=$ZOO_LOG_DIR" -XX:+HeapDumpOnOutOfMemoryError \
        '-XX:OnOutOfMemoryError=kill -9 %p' -cp "$CLASSPATH" $SERVER_JVMFLAGS $(management) \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$file"
}
mapfile -t server < <(line)

process=$(setting dataDir)/zookeeper_server.pid

# Where clients of this server connect: in the file, in the dynamic file, or at the end of its own server line.
client_port() {
    local dynamic port
    port=$(setting clientPort)
    dynamic=$(setting dynamicConfigFile)
    if [ -z "$port" ]; then
        port=$(cat "$file" ${dynamic:+"$dynamic"} 2>/dev/null |
            sed -n "s/^server\.$(cat "$(setting dataDir)/myid")=.*;\(.*:\)\{0,1\}\([0-9]*\)$/\2/p" | tail -n 1)
    fi
    echo "${port:-2181}"
}

status() {
    local port answer
    port=$(client_port)
    echo "Client port found: $port. Client address: localhost."
    # shellcheck disable=SC2086
    answer=$("$java" -cp "$CLASSPATH" $CLIENT_JVMFLAGS org.apache.zookeeper.client.FourLetterWordMain \
        localhost "$port" srvr 2>/dev/null | grep Mode)
    if [ -z "$answer" ]; then
        echo "Error contacting service. It is probably not running."
        exit 1
    fi
    echo "$answer"
}

start() {
    if [ -f "$process" ] && kill -0 "$(cat "$process")" 2>/dev/null; then
        echo "already running as process $(cat "$process")."
        exit 1
    fi
    nohup "${server[@]}" >>"$ZOO_LOG_DIR/zookeeper.out" 2>&1 </dev/null &
    echo $! >"$process"
    echo STARTED
}

stop() {
    if [ ! -f "$process" ]; then
        echo "no zookeeper to stop (could not find file $process)"
        return
    fi
    kill "$(cat "$process")" && rm "$process" && echo STOPPED
}

echo "ZooKeeper JMX $([ "${JMXDISABLE:-}" = true ] && echo disabled by user request || echo enabled by default)" >&2
echo "Using config: $file" >&2
case $command in
start-foreground) exec "${server[@]}" ;;
start) start ;;
stop) stop ;;
restart) stop && start ;;
status) status ;;
version) exec "$java" -cp "$CLASSPATH" org.apache.zookeeper.version.VersionInfoMain ;;
print-cmd) printf '%q ' "${server[@]}" && echo ;;
*)
    echo "Usage: $0 [--config <conf-dir>] {start|start-foreground|stop|version|restart|status|print-cmd}" >&2
    exit 1
    ;;
esac
