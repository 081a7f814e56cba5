# Processes by parentage and by a mark in their environment. bash, /proc and grep; zombies count as gone.

declare -A LAB_PARENT LAB_START

# lab_scan: read all processes once.
lab_scan() {
  local file line pid
  LAB_PARENT=() LAB_START=()
  for file in /proc/[0-9]*/stat; do
    line=
    { read -r -d '' line <"$file"; } 2>/dev/null
    [ -n "$line" ] || continue
    pid=${line%% *}
    set -- ${line##*) }
    case $1 in Z | X) continue ;; esac
    LAB_PARENT[$pid]=$2 LAB_START[$pid]=${20}
  done
}

# lab_tree PID...: these processes and all their descendants, as of the last scan.
lab_tree() {
  local -A inside=()
  local pid up chain
  for pid in "$@"; do [ -n "${LAB_PARENT[$pid]:-}" ] && inside[$pid]=1; done
  for pid in "${!LAB_PARENT[@]}"; do
    chain= up=$pid
    while [ -n "${LAB_PARENT[$up]:-}" ] && [ -z "${inside[$up]:-}" ] && [ "$up" -gt 1 ]; do
      chain="$chain $up" up=${LAB_PARENT[$up]}
    done
    [ -z "${inside[$up]:-}" ] || for up in $chain; do inside[$up]=1; done
  done
  for pid in "${!inside[@]}"; do echo "$pid"; done
}

# lab_marked NAME=VALUE: living processes that were started with it in their environment.
lab_marked() {
  local file pid
  while IFS= read -r file; do
    pid=${file#/proc/} pid=${pid%/environ}
    [ -z "${LAB_PARENT[$pid]:-}" ] || echo "$pid"
  done < <(LC_ALL=C grep -lzxFs -e "$1" /proc/[0-9]*/environ)
}

# lab_family NAME=VALUE PID...: a fresh scan; all that carry the mark or come from these processes.
lab_family() {
  local mark=$1
  shift
  lab_scan
  lab_tree "$@" $(lab_marked "$mark")
}
