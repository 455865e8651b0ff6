# Looks at the data folder before the server may, and seeds a standby. Its last words begin with the
# name of a reason. The image is not under our control: a POSIX shell, cat, ls, rm, sed, sleep, and
# PostgreSQL's own programs. The design is docs/design/0002-standbys.md.
refuse() { echo "$1" >&2; exit 1; }
control() { LC_ALL=C pg_controldata "$PGDATA" | sed -n "s/^$1: *//p"; }

if [ -s "$PGDATA/PG_VERSION" ]; then
  have=$(cat "$PGDATA/PG_VERSION")
  want=$(postgres --version 2>/dev/null | sed 's/^[^0-9]*\([0-9][0-9]*\).*$/\1/')
  if [ -n "$want" ] && [ "$have" != "$want" ]; then
    refuse "DataVersionMismatch: the data were made by PostgreSQL $have and the image brings $want"
  fi
fi

if [ "$POD_INDEX" = 0 ]; then
  if [ -s "$PGDATA/PG_VERSION" ]; then
    exit 0
  elif [ -d "$PGDATA" ] && [ -n "$(ls -A "$PGDATA")" ]; then
    refuse "HalfInitialised: the data folder holds files but no PG_VERSION"
  elif [ "$(cat /etc/steadfast/bootstrap)" != allowed ]; then
    refuse "DataMissing: the data folder is empty although data were recorded"
  fi
  exit 0
fi

umask 077
printf '*:*:*:steadfast_replication:%s\n' \
  "$(sed 's/[\\:]/\\&/g' /etc/steadfast-replication/password)" > /tmp/steadfast.pgpass
recorded=$(cat /etc/steadfast/system-identifier 2>/dev/null)
asked=$(cat "/etc/steadfast/reseed-$POD_INDEX" 2>/dev/null)
seeded=$(cat "$VOLUME/seeded" 2>/dev/null)
why=
if [ -e "$VOLUME/seeding" ]; then
  why="an earlier copy did not end"
elif [ -s "$PGDATA/PG_VERSION" ]; then
  if [ ! -e "$PGDATA/standby.signal" ]; then
    refuse "NotAStandby: the data folder holds a database that follows no primary"
  elif [ -n "$recorded" ] && [ "$(control 'Database system identifier')" != "$recorded" ]; then
    why="the volume holds another database"
  elif [ -n "$asked" ] && [ "$asked" != "$seeded" ]; then
    why="the primary no longer keeps what this standby lacks"
  fi
elif [ -d "$PGDATA" ] && [ -n "$(ls -A "$PGDATA")" ]; then
  refuse "HalfInitialised: the data folder holds files but no PG_VERSION"
else
  why="the volume is empty"
fi

copy() {
  rm -rf "$PGDATA"
  pg_basebackup -D "$PGDATA" -d "$(cat /etc/steadfast/primary)" -S "steadfast_$POD_INDEX" \
    -X stream -c fast -w 2>/tmp/words
}
if [ -n "$why" ]; then
  echo "copying from the primary: $why" >&2
  echo "$why" > "$VOLUME/seeding" || exit 1
  copy || { sleep 5; copy; } || { sleep 10; copy; } ||
    refuse "StandbyCopyFailed: $(cat /tmp/words)"
  if [ -n "$recorded" ] && [ "$(control 'Database system identifier')" != "$recorded" ]; then
    refuse "StandbyCopyFailed: the server at the primary's address holds another database"
  fi
  echo "Written by steadfast." > "$PGDATA/standby.signal" || exit 1
  echo "$asked" > "$VOLUME/seeded" || exit 1
  rm -f "$VOLUME/seeding"
fi

# A standby must not have less than its primary had when it wrote what is about to be replayed.
keep() {
  wanted=$(sed -n "s/^$1 = '\(.*\)'$/\1/p" /etc/steadfast/postgresql.conf)
  needed=$(control "$2 setting")
  if [ -n "$wanted" ] && [ -n "$needed" ] && [ "$needed" -gt "$wanted" ]; then
    echo "$1 = $needed" >> /tmp/standby.conf
    echo "steadfast.raised = 'on'" >> /tmp/standby.conf
  fi
}
: > /tmp/standby.conf
keep max_connections max_connections
keep max_locks_per_transaction max_locks_per_xact
keep max_prepared_transactions max_prepared_xacts
keep max_wal_senders max_wal_senders
keep max_worker_processes max_worker_processes
exit 0
