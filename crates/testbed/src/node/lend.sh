# lend STORE ROOT: gives a node's containerd the images of a store, and copies none of them.
set -eu
store=$1
root=$2
content=io.containerd.content.v1.content
snapshots=io.containerd.snapshotter.v1.overlayfs
metadata=io.containerd.metadata.v1.bolt
mkdir -p "$root/$metadata" "$root/$content" "$root/$snapshots/snapshots"
# A node that comes back still has its own.
if [ ! -e "$root/$metadata/meta.db" ]; then
    cp "$store/$metadata/meta.db" "$root/$metadata/"
    cp "$store/$snapshots/metadata.db" "$root/$snapshots/"
    # Blobs are never changed, so a second name for each is enough.
    cp -al "$store/$content/." "$root/$content"
fi
# Unpacked layers are only read, by every container that stands on them; a mount of the room's own goes with it.
for snapshot in "$store/$snapshots/snapshots"/*; do
    place=$root/$snapshots/snapshots/${snapshot##*/}
    mkdir -p "$place"
    mount --bind "$snapshot" "$place"
    mount -o remount,bind,ro "$place"
done
