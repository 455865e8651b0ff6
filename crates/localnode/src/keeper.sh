# Outlives its owner by a moment: reads process ids from standard input and, when that ends because the
# owner is gone (however it died), stops them and removes the owner's folder, given as the first argument.
# `!` says that the processes were asked to end already and had their time.
trap '' INT TERM HUP
folder=$1
live=' '
hurry=
while read -r line; do
  pid=${line#?}
  case $line in
    !) hurry=yes ;;
    +*) live="$live$pid " ;;
    -*) case $live in *" $pid "*) live="${live%% "$pid" *} ${live#* "$pid" }" ;; esac ;;
  esac
done

# Processes that left their group are known by their working folder, where the system shows it.
# One `ls` for all of them, since a process for each would take seconds on a busy machine.
strays() {
  ls -ld /proc/[0-9]*/cwd 2>/dev/null | while read -r line; do
    case $line in
      *" -> $folder/"*)
        entry=${line%%/cwd -> *}
        entry=${entry##*/}
        [ "$entry" = "$$" ] || printf '%s\n' "$entry"
        ;;
    esac
  done
}

for pid in $live; do kill -INT "$pid" 2>/dev/null; done
# A zombie still answers to its number; where the system shows states, only living ones are waited for.
alive() {
  for pid in $live; do
    if [ -r "/proc/$pid/stat" ]; then
      case $(cat "/proc/$pid/stat" 2>/dev/null) in *') Z '*|*') X '*|'') ;; *) return 0 ;; esac
    elif kill -0 "$pid" 2>/dev/null; then
      return 0
    fi
  done
  return 1
}
round=0
while [ -z "$hurry" ] && alive && [ "$round" -lt 30 ]; do sleep 0.1; round=$((round + 1)); done
for pid in $live; do kill -KILL -- "-$pid" 2>/dev/null; kill -KILL "$pid" 2>/dev/null; done
round=0
while [ "$round" -lt 30 ]; do
  found=$(strays)
  [ -z "$found" ] && break
  for pid in $found; do kill -KILL "$pid" 2>/dev/null; done
  sleep 0.1
  round=$((round + 1))
done
if [ -f "$folder/.steadfast-node" ]; then
  rm -rf "$folder" 2>/dev/null || { sleep 0.3; rm -rf "$folder"; }
fi
