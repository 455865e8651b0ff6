#!/usr/bin/env bash
# Entry point of the test image `rabbitmq`, with the contract of the official image: the data belong to the user
# `rabbitmq`, the cookie comes from the environment once, and settings that moved into the configuration file are
# refused. Default user, password and virtual host are read from the environment by the server itself. Written anew
# for this project.
set -eu

if [[ "$1" == rabbitmq* ]] && [ "$(id -u)" = 0 ]; then
    if [ "$1" = rabbitmq-server ]; then
        find /var/lib/rabbitmq \! -user rabbitmq -exec chown rabbitmq '{}' +
    fi
    exec gosu rabbitmq "${BASH_SOURCE[0]}" "$@"
fi

# The settings that the official image has given up, and whose silent loss would surprise.
given_up() {
    local variable
    for variable in $(compgen -e); do
        case $variable in
        RABBITMQ_DEFAULT_PASS_FILE | RABBITMQ_DEFAULT_USER_FILE | RABBITMQ_VM_MEMORY_HIGH_WATERMARK) ;;
        RABBITMQ_SSL_* | RABBITMQ_MANAGEMENT_SSL_* | RABBITMQ_HIPE_COMPILE) ;;
        *) continue ;;
        esac
        echo "error: $variable is set but deprecated"
    done
}
refused=$(given_up)
if [ -n "$refused" ]; then
    echo >&2 "$refused"
    echo >&2 'error: deprecated environment variables detected; use a configuration file instead'
    exit 1
fi

if [ -n "${RABBITMQ_ERLANG_COOKIE:-}" ]; then
    cookie=/var/lib/rabbitmq/.erlang.cookie
    if [ ! -e "$cookie" ]; then
        (umask 077 && echo "$RABBITMQ_ERLANG_COOKIE" >"$cookie")
    elif [ "$(cat "$cookie" 2>/dev/null)" != "$RABBITMQ_ERLANG_COOKIE" ]; then
        echo >&2 "warning: $cookie contents do not match RABBITMQ_ERLANG_COOKIE"
    fi
fi

exec "$@"
