#!/usr/bin/env bash
# Entry point of the test image `zookeeper`, with the contract of the official image: the same settings in the
# environment, and files that are there already are left as they are. Written anew for this project.
set -e

# The settings that are always written: key of zoo.cfg and variable.
settings='dataDir=ZOO_DATA_DIR
dataLogDir=ZOO_DATA_LOG_DIR
tickTime=ZOO_TICK_TIME
initLimit=ZOO_INIT_LIMIT
syncLimit=ZOO_SYNC_LIMIT
autopurge.snapRetainCount=ZOO_AUTOPURGE_SNAPRETAINCOUNT
autopurge.purgeInterval=ZOO_AUTOPURGE_PURGEINTERVAL
maxClientCnxns=ZOO_MAX_CLIENT_CNXNS
standaloneEnabled=ZOO_STANDALONE_ENABLED
admin.enableServer=ZOO_ADMINSERVER_ENABLED'

configuration() {
    local line variable
    for line in $settings; do
        variable=${line#*=}
        echo "${line%%=*}=${!variable}"
    done
    # Several words in one variable are several lines.
    for line in ${ZOO_SERVERS:-server.1=localhost:2888:3888;2181}; do
        echo "$line"
    done
    if [ -n "${ZOO_4LW_COMMANDS_WHITELIST:-}" ]; then
        echo "4lw.commands.whitelist=$ZOO_4LW_COMMANDS_WHITELIST"
    fi
    for line in ${ZOO_CFG_EXTRA:-}; do
        echo "$line"
    done
}

if [ "$1" = zkServer.sh ] && [ "$(id -u)" = 0 ]; then
    chown -R zookeeper "$ZOO_DATA_DIR" "$ZOO_DATA_LOG_DIR" "$ZOO_LOG_DIR"
    exec gosu zookeeper "$0" "$@"
fi
if [ ! -f "$ZOO_CONF_DIR/zoo.cfg" ]; then
    configuration >"$ZOO_CONF_DIR/zoo.cfg"
fi
if [ ! -f "$ZOO_DATA_DIR/myid" ]; then
    echo "${ZOO_MY_ID:-1}" >"$ZOO_DATA_DIR/myid"
fi
exec "$@"
