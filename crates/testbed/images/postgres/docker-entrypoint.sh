#!/usr/bin/env bash
# Entry point of the test image `postgres`, with the contract of the official image: the same settings in the
# environment, the same order of steps, the same refusals. Written anew for this project; what it leaves out is
# listed in ../README.md.
set -Eeo pipefail

# file_or_value VAR [DEFAULT]: takes VAR, or the contents of the file that VAR_FILE names, and exports VAR.
file_or_value() {
    local name=$1 value=${2:-} file_name=${1}_FILE
    if [ -n "${!name:-}" ] && [ -n "${!file_name:-}" ]; then
        echo >&2 "error: both $name and $file_name are set (but are exclusive)"
        exit 1
    fi
    if [ -n "${!name:-}" ]; then
        value=${!name}
    elif [ -n "${!file_name:-}" ]; then
        value=$(<"${!file_name}")
    fi
    export "$name=$value"
    unset "$file_name"
}

# Whether the arguments ask the server for words rather than for service.
asks_for_help() {
    local argument
    for argument; do
        case $argument in
        -\? | --help | --describe-config | -V | --version) return 0 ;;
        esac
    done
    return 1
}

read_settings() {
    file_or_value POSTGRES_PASSWORD
    file_or_value POSTGRES_USER postgres
    file_or_value POSTGRES_DB "$POSTGRES_USER"
    file_or_value POSTGRES_INITDB_ARGS
    : "${POSTGRES_HOST_AUTH_METHOD:=}"
}

make_folders() {
    local owner
    owner=$(id -u)
    (umask 077 && mkdir -p "$PGDATA")
    # A volume may belong to somebody else; then its owner has seen to the permissions.
    chmod 00700 "$PGDATA" || :
    mkdir -p /var/run/postgresql || :
    chmod 03775 /var/run/postgresql || :
    if [ -n "${POSTGRES_INITDB_WALDIR:-}" ]; then
        (umask 077 && mkdir -p "$POSTGRES_INITDB_WALDIR")
        chmod 700 "$POSTGRES_INITDB_WALDIR"
    fi
    if [ "$owner" = 0 ]; then
        find "$PGDATA" /var/run/postgresql \! -user postgres -exec chown postgres '{}' +
        if [ -n "${POSTGRES_INITDB_WALDIR:-}" ]; then
            find "$POSTGRES_INITDB_WALDIR" \! -user postgres -exec chown postgres '{}' +
        fi
    fi
}

refuse_without_password() {
    if [ -z "$POSTGRES_PASSWORD" ] && [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
        cat >&2 <<-'TEXT'
			Error: Database is uninitialized and superuser password is not specified.
			       Set POSTGRES_PASSWORD (or POSTGRES_PASSWORD_FILE) to a value that is not empty, or,
			       if nobody needs a password, POSTGRES_HOST_AUTH_METHOD to "trust".
		TEXT
        exit 1
    fi
}

# initdb wants a name for the user that it runs as; a pod may run as any number.
lend_a_name() {
    local uid wrapper
    uid=$(id -u)
    if getent passwd "$uid" >/dev/null; then return; fi
    wrapper=$(echo /usr/lib/*/libnss_wrapper.so)
    [ -e "$wrapper" ] || return 0
    NSS_WRAPPER_PASSWD=$(mktemp)
    NSS_WRAPPER_GROUP=$(mktemp)
    export LD_PRELOAD=$wrapper NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP
    printf 'postgres:x:%s:%s:PostgreSQL:%s:/bin/false\n' "$uid" "$(id -g)" "$PGDATA" >"$NSS_WRAPPER_PASSWD"
    printf 'postgres:x:%s:\n' "$(id -g)" >"$NSS_WRAPPER_GROUP"
}

give_the_name_back() {
    if [ -n "${NSS_WRAPPER_PASSWD:-}" ]; then
        rm -f "$NSS_WRAPPER_PASSWD" "$NSS_WRAPPER_GROUP"
        unset LD_PRELOAD NSS_WRAPPER_PASSWD NSS_WRAPPER_GROUP
    fi
}

initialise() {
    lend_a_name
    if [ -n "${POSTGRES_INITDB_WALDIR:-}" ]; then
        set -- --waldir "$POSTGRES_INITDB_WALDIR" "$@"
    fi
    # `eval`: the setting is split into words as a shell does it, quotes included.
    eval 'initdb --username="$POSTGRES_USER" --pwfile=<(printf "%s\n" "$POSTGRES_PASSWORD") '"$POSTGRES_INITDB_ARGS"' "$@"'
    give_the_name_back
}

# Lets in every host with a password, or as POSTGRES_HOST_AUTH_METHOD says.
write_host_authentication() {
    local method=$POSTGRES_HOST_AUTH_METHOD
    if [ "$1" = postgres ]; then shift; fi
    : "${method:=$(postgres -C password_encryption "$@")}"
    {
        echo
        if [ "$method" = trust ]; then
            echo '# All connections are let in without a password: POSTGRES_HOST_AUTH_METHOD is "trust".'
        fi
        echo "host all all all $method"
    } >>"$PGDATA/pg_hba.conf"
}

# The server for the scripts listens on its socket alone.
start_for_scripts() {
    if [ "$1" = postgres ]; then shift; fi
    set -- "$@" -c listen_addresses='' -p "${PGPORT:-5432}"
    NOTIFY_SOCKET='' PGUSER="${PGUSER:-$POSTGRES_USER}" \
        pg_ctl -D "$PGDATA" -o "$(printf '%q ' "$@")" -w start
}

run_sql() {
    local database=(--dbname "$POSTGRES_DB")
    if [ "${1:-}" = --dbname ]; then database=(); fi
    PGHOST='' PGHOSTADDR='' psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --no-password --no-psqlrc \
        "${database[@]}" "$@"
}

# The official image's name for it; scripts that are sourced call it.
docker_process_sql() { run_sql "$@"; }

create_database() {
    local found
    found=$(echo "SELECT 1 FROM pg_database WHERE datname = :'db';" |
        run_sql --dbname postgres --set db="$POSTGRES_DB" --tuples-only)
    if [ -z "$found" ]; then
        echo 'CREATE DATABASE :"db";' | run_sql --dbname postgres --set db="$POSTGRES_DB"
    fi
}

run_scripts() {
    local file
    for file in /docker-entrypoint-initdb.d/*; do
        case $file in
        *.sh)
            if [ -x "$file" ]; then
                echo "$0: running $file"
                "$file"
            else
                echo "$0: sourcing $file"
                # shellcheck disable=SC1090
                . "$file"
            fi
            ;;
        *.sql) echo "$0: running $file" && run_sql -f "$file" ;;
        *.sql.gz) echo "$0: running $file" && gunzip -c "$file" | run_sql ;;
        *.sql.xz) echo "$0: running $file" && xzcat "$file" | run_sql ;;
        *.sql.zst) echo "$0: running $file" && zstd -dc "$file" | run_sql ;;
        */\*) ;;
        *) echo "$0: ignoring $file" ;;
        esac
        echo
    done
}

first_start() {
    refuse_without_password
    # Not readable is better said before an hour of initialisation.
    ls /docker-entrypoint-initdb.d/ >/dev/null
    initialise
    write_host_authentication "$@"
    # For the scripts' own connections.
    export PGPASSWORD="${PGPASSWORD:-$POSTGRES_PASSWORD}"
    start_for_scripts "$@"
    create_database
    run_scripts
    pg_ctl -D "$PGDATA" -m fast -w stop
    unset PGPASSWORD
    printf '\nPostgreSQL init process complete; ready for start up.\n\n'
}

main() {
    if [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi
    if [ "$1" = postgres ] && ! asks_for_help "$@"; then
        read_settings
        make_folders
        if [ "$(id -u)" = 0 ]; then
            exec gosu postgres "${BASH_SOURCE[0]}" "$@"
        fi
        if [ -s "$PGDATA/PG_VERSION" ]; then
            printf '\nPostgreSQL Database directory appears to contain a database; Skipping initialization\n\n'
        else
            first_start "$@"
        fi
    fi
    exec "$@"
}

main "$@"
