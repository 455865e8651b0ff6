# In the image's root, before the packages are configured.
set -eu
# Java's packages put links to their manuals there, and the manuals' folders are left out.
mkdir -p /usr/share/man/man1
# The official image's numbers; volumes of other people's manifests rely on them.
echo 'zookeeper:x:1000:1000::/data:/bin/sh' >>/etc/passwd
echo 'zookeeper:x:1000:' >>/etc/group
