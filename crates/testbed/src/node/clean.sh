# clean NUMBER [FOLDER]: removes what a network's number names. The nodes' processes have ended, or end now.
name=steadfast-$1
ip link delete "$name" 2>/dev/null
for link in "/sys/class/net/$name"-*; do
    [ -e "$link" ] && ip link delete "${link##*/}" 2>/dev/null
done
groups() {
    find /sys/fs/cgroup -maxdepth 2 -type d -name "$name" 2>/dev/null
}
# A group can be removed when its last process is gone, and the kernel takes a moment for that.
tries=0
while found=$(groups) && [ -n "$found" ] && [ "$tries" -lt 200 ]; do
    for group in $found; do
        find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
    done
    [ -z "$(groups)" ] || sleep 0.05
    tries=$((tries + 1))
done
[ -z "${2:-}" ] || rm -rf -- "$2"
[ -z "$(groups)" ] && [ ! -e "${2:-}" ]
