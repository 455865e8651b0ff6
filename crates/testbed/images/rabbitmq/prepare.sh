# In the image's root, before the packages are configured.
set -eu
# The official image's numbers; volumes of other people's manifests rely on them.
echo 'rabbitmq:x:999:999::/var/lib/rabbitmq:/bin/bash' >>/etc/passwd
echo 'rabbitmq:x:999:' >>/etc/group
