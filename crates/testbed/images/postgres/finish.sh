# In the image's root, after the packages are configured.
set -eu
localedef -i en_US -c -f UTF-8 en_US.UTF-8
for sample in /usr/share/postgresql/*/postgresql.conf.sample; do
    sed -ri "s!^#?(listen_addresses)\s*=\s*\S+.*!\1 = '*'!" "$sample"
    grep -q "^listen_addresses = '\*'" "$sample"
done
install -d -o 999 -g 999 -m 1777 /var/lib/postgresql/data
install -d -o 999 -g 999 -m 3777 /var/run/postgresql
install -d /docker-entrypoint-initdb.d
