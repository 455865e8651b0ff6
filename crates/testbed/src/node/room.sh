# room FOLDER NAME LIFE: the first process of a node's namespaces. When it ends, the kernel ends every process
# in them, and mounts, links and rules go with the namespaces.
set -e
trap 'exit 0' TERM
exec 3<&0
mount --make-rshared /
mount -t proc proc /proc
# Sockets, locks and leases of the node's programs, apart from the machine's and from other nodes'.
mount -t tmpfs tmpfs /run
mkdir -p "$1/log" "$1/kubelet" /var/lib/kubelet
mount --bind "$1/log" /var/log
# The kubelet's root; a part of it has this place whatever the kubelet is told.
mount --bind "$1/kubelet" /var/lib/kubelet
hostname "$2"
ip link set lo up
: >"$1/ready"
case $3 in
# Until the starter's end of the pipe closes, which it does however the starter ends.
leashed) cat <&3 >/dev/null & ;;
*) sleep infinity & ;;
esac
# Waiting also reaps the orphans that the kernel hands to a first process.
wait $!
