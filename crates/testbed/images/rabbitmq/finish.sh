# In the image's root, after the packages are configured.
set -eu
# Debian's commands in /usr/sbin insist on a user; the programs themselves do not.
home=$(echo /usr/lib/rabbitmq/lib/rabbitmq_server-*)
test -x "$home/sbin/rabbitmq-server"
ln -s "$home" /opt/rabbitmq
ln -s /opt/rabbitmq/plugins /plugins
# The image makes its data when it starts.
rm -rf /var/lib/rabbitmq /var/log/rabbitmq
install -d -o 999 -g 999 -m 1777 /var/lib/rabbitmq /var/log/rabbitmq
install -d -o 999 -g 999 -m 0777 /etc/rabbitmq /etc/rabbitmq/conf.d
rm -f /etc/rabbitmq/rabbitmq-env.conf
echo '[rabbitmq_management,rabbitmq_prometheus].' >/etc/rabbitmq/enabled_plugins
chown 999:999 /etc/rabbitmq/enabled_plugins
# Listen for others too: the default guest is refused from afar, whatever the name of its setting.
echo 'loopback_users.guest = false' >/etc/rabbitmq/conf.d/10-defaults.conf
echo 'log.console = true' >>/etc/rabbitmq/conf.d/10-defaults.conf
