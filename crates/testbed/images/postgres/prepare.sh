# prepare ROOT: before the packages are unpacked.
set -eu
mkdir -p "$1/etc/postgresql-common"
# The image makes its database when it starts, in the folder that it is told.
echo 'create_main_cluster = false' >"$1/etc/postgresql-common/createcluster.conf"
# The official image's numbers; volumes of other people's manifests rely on them.
echo 'postgres:x:999:999::/var/lib/postgresql:/bin/bash' >>"$1/etc/passwd"
echo 'postgres:x:999:' >>"$1/etc/group"
