# In the image's root, before the packages are configured.
set -eu
mkdir -p /etc/postgresql-common
# The image makes its database when it starts, in the folder that it is told.
echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
# The official image's numbers; volumes of other people's manifests rely on them.
echo 'postgres:x:999:999::/var/lib/postgresql:/bin/bash' >>/etc/passwd
echo 'postgres:x:999:' >>/etc/group
