# clean NUMBER [FOLDER]: removes what a network's number names. The nodes' processes have ended, or end now.
name=steadfast-$1
ip link delete "$name" 2>/dev/null
for link in "/sys/class/net/$name"-*; do
    [ -e "$link" ] && ip link delete "${link##*/}" 2>/dev/null
done
# The file systems of volumes, innermost first; each gives its loop device back.
if [ -n "${2:-}" ]; then
    while read -r _ place _; do
        case $place in "$2"/*) echo "$place" ;; esac
    done </proc/self/mounts | sort -r | while read -r place; do
        umount "$place" 2>/dev/null || umount -l "$place"
    done
fi
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
