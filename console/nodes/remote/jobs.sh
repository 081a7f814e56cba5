# Jobs of a node, one function a verb. Answers are lines `name=value`; a refusal is `error=<code>` and `detail=`.
# Needs procs.sh before it.

lab_refuse() { printf 'error=%s\ndetail=%s\n' "$1" "$2"; exit 0; }

lab_value() { # FILE NAME -> value of the first line NAME=
  local line
  while IFS= read -r line; do
    case $line in "$2="*) printf '%s' "${line#*=}"; return ;; esac
  done 2>/dev/null <"$1"
}

lab_boot() { local id=; { read -r id </proc/sys/kernel/random/boot_id; } 2>/dev/null; printf '%s' "$id"; }

# lab_supervisor DIR: pid of the job's supervisor if it is still the process that wrote the pid file.
lab_supervisor() {
  local pid
  pid=$(lab_value "$1/pid" pid)
  [ -n "$pid" ] && [ "$(lab_value "$1/pid" boot_id)" = "$(lab_boot)" ] || return 1
  [ "${LAB_START[$pid]:-none}" = "$(lab_value "$1/pid" start_ticks)" ] || return 1
  printf '%s' "$pid"
}

# job_detachment: how a process of this login survives the login.
job_detachment() {
  local linger= kill_user= rung=setsid runtime=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
  if command -v loginctl >/dev/null; then
    linger=$(loginctl show-user "$(id -un)" -p Linger --value 2>/dev/null)
    kill_user=$(busctl get-property org.freedesktop.login1 /org/freedesktop/login1 \
      org.freedesktop.login1.Manager KillUserProcesses 2>/dev/null)
  fi
  if [ "$linger" = yes ] && [ -d "$runtime" ] && command -v systemd-run >/dev/null; then
    rung=systemd
  fi
  printf 'rung=%s\nlinger=%s\nkill_user_processes=%s\nruntime=%s\n' \
    "$rung" "${linger:-unknown}" "${kill_user##* }" "$runtime"
}

# job_start DIR PROGRAM SEARCH_PATH CWD PLAN_BYTES LAUNCH_BYTES SECRET_BYTES; stdin: the three files in a row.
job_start() {
  local dir=$1 program=$2 search=$3 cwd=$4 pid rung= note= unit facts runtime
  note=$(mkdir -p "$dir" 2>&1) || lab_refuse folder "${note//$'\n'/ }"
  [ -w "$dir" ] || lab_refuse folder "$dir is not writable"
  exec 8>"$dir/lock" || lab_refuse folder "$dir/lock can't be written"
  flock -w 20 8 || lab_refuse busy "another start of this run is going on"
  if [ -e "$dir/pid" ] || [ -e "$dir/exit" ]; then
    printf 'adopted=1\nrun_dir=%s\nrung=%s\npid=%s\n' \
      "$dir" "$(lab_value "$dir/launched" rung)" "$(lab_value "$dir/pid" pid)"
    return
  fi
  case $cwd in "~/"*) cwd=$HOME/${cwd#"~/"} ;; esac
  [ -z "$cwd" ] || [ -d "$cwd" ] || lab_refuse cwd "$cwd"
  (PATH=${search:-$PATH}; cd "${cwd:-$dir}"; command -v -- "$program" >/dev/null) || lab_refuse program "$program"
  (
    umask 077
    head -c "$5" >"$dir/plan.json" && head -c "$6" >"$dir/launch.sh" && head -c "$7" >"$dir/.secrets" &&
      [ "$(stat -c %s "$dir/plan.json" "$dir/launch.sh" "$dir/.secrets" | tr '\n' ' ')" = "$5 $6 $7 " ] &&
    printf 'export HOME=%q PATH=%q USER=%q LANG=%q\n' "$HOME" "$PATH" "$(id -un)" "${LANG:-C.UTF-8}" >"$dir/login" &&
      # Room for the exit status is taken now: a disk that is full at the end must not swallow it.
      printf '%-63s\n' unfinished >"$dir/exit.tmp" && : >>"$dir/log"
  ) 2>/dev/null || {
    note=$(df -Pk "$dir" 2>/dev/null | tail -n 1)
    rm -f "$dir/.secrets" "$dir/launch.sh" "$dir/plan.json"
    lab_refuse disk "$note"
  }
  facts=$(job_detachment)
  case $facts in
    *rung=systemd*)
      runtime=${facts##*runtime=}
      unit=lab-$(printf %s "$dir" | cksum | tr ' ' -)
      if XDG_RUNTIME_DIR=$runtime DBUS_SESSION_BUS_ADDRESS=${DBUS_SESSION_BUS_ADDRESS:-unix:path=$runtime/bus} \
        systemd-run --user --quiet --collect --unit="$unit" --property=KillMode=process \
        bash --noprofile --norc "$dir/launch.sh" </dev/null >"$dir/launched.tmp" 2>&1 8>&-; then
        rung=systemd
      else
        note="systemd-run failed: $(head -c 200 "$dir/launched.tmp" | tr '\n' ' ')"
      fi ;;
  esac
  if [ -z "$rung" ]; then
    rung=setsid
    env -u LAB_SCRIPT setsid -f bash --noprofile --norc "$dir/launch.sh" </dev/null >/dev/null 2>&1 8>&-
  fi
  printf 'rung=%s\n' "$rung" >"$dir/launched.tmp" && mv "$dir/launched.tmp" "$dir/launched"
  for _ in {1..100}; do
    [ ! -e "$dir/pid" ] || break
    sleep 0.1
  done
  pid=$(lab_value "$dir/pid" pid)
  [ -n "$pid" ] || lab_refuse silent "$(tail -c 300 "$dir/log" 2>/dev/null | tr '\n' ' ')"
  printf 'adopted=0\nrun_dir=%s\nrung=%s\npid=%s\nnote=%s\n%s\n' "$dir" "$rung" "$pid" "$note" "${facts#*$'\n'}"
}

# job_look DIR
job_look() {
  local dir=$1 pid state code= line now beat mark
  printf 'run_dir=%s\n' "$dir"
  [ -e "$dir/launch.sh" ] || { echo state=absent; return; }
  pid=$(lab_value "$dir/pid" pid)
  [ -z "$pid" ] || printf 'pid=%s\n' "$pid"
  if [ -n "$pid" ] && [ "$(lab_value "$dir/pid" boot_id)" != "$(lab_boot)" ]; then echo boot_changed=1; fi
  [ ! -e "$dir/stop" ] || echo stop_requested=1
  stat -Lc 'log_bytes=%s
log_inode=%i' "$dir/log" 2>/dev/null
  if beat=$(stat -Lc %Y "$dir/heartbeat" 2>/dev/null); then
    now=$(date +%s)
    printf 'heartbeat_age_seconds=%d\n' $((now - beat))
  fi
  # The supervisor may end between two looks at its files: exit is read last.
  lab_scan
  if [ -n "$pid" ] && lab_supervisor "$dir" >/dev/null; then state=running; else state=vanished; fi
  if [ -e "$dir/exit" ]; then
    read -r code _ <"$dir/exit"
    printf 'exit_code=%s\n' "$code"
    state=ended
  elif [ -z "$pid" ]; then
    state=starting
    [ -z "$(find "$dir/launch.sh" -mmin +1 2>/dev/null)" ] || state=vanished
  fi
  printf 'state=%s\n' "$state"
  if [ $state = vanished ]; then
    mark=LAB_RUN_DIR=$dir
    printf 'orphan_pids=%s\n' "$(lab_tree $(lab_marked "$mark") | tr '\n' ' ')"
  fi
}

# job_list DIR: folders in it that hold a run.
job_list() {
  local file
  for file in "$1"/*/launch.sh; do
    [ ! -e "$file" ] || { file=${file%/launch.sh}; printf 'run=%s\n' "${file##*/}"; }
  done
}

# lab_torchrun PID...: those of them that are torchrun itself, not its workers.
lab_torchrun() {
  local pid
  local -a words
  for pid in "$@"; do
    { mapfile -d '' -t words <"/proc/$pid/cmdline"; } 2>/dev/null || continue
    case ${words[0]##*/} in python*)
      words=("${words[@]:1}")
      while [[ ${words[0]} == -* && ${words[0]} != -m ]]; do words=("${words[@]:1}"); done ;;
    esac
    case "${words[0]##*/} ${words[1]}" in
      "torchrun "* | "-m torch.distributed.run" | "-m torch.distributed.launch") echo "$pid" ;;
    esac
  done
}

# job_stop DIR GRACE_SECONDS
job_stop() {
  local dir=$1 grace=$2 mark=LAB_RUN_DIR=$1 supervisor all= torch asked= killed= left= beat started=$EPOCHREALTIME
  local deadline supervisor_end
  [ -d "$dir" ] || lab_refuse absent "$dir"
  : >"$dir/stop" 2>/dev/null
  lab_scan
  supervisor=$(lab_supervisor "$dir") || supervisor=
  members() { # the job without its supervisor and the supervisor's own helpers
    local pid helper=
    helper=$(lab_value "$dir/pid" helper_pid)
    for pid in $(lab_family "$mark" $supervisor $all); do
      [ "$pid" = "$supervisor" ] || [ "$pid" = "$helper" ] || [ "${LAB_PARENT[$pid]:-}" = "$helper" ] || echo "$pid"
    done
  }
  lab_scan
  all=$(members)
  torch=$(lab_torchrun $all)
  if [ -n "$torch" ]; then asked=$torch; else asked=$all; fi
  [ -z "$asked" ] || kill -TERM $asked 2>/dev/null
  lab_wait_gone() { # SECONDS
    local until=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
    while :; do
      lab_scan
      all=$(members)
      [ -n "$all" ] || return 0
      [ "${EPOCHREALTIME/[.,]/}" -lt "$until" ] || return 1
      sleep 0.2
    done
  }
  if ! lab_wait_gone "$grace"; then
    kill -TERM $all 2>/dev/null
    lab_wait_gone 3 || for _ in {1..20}; do
      killed="$killed $all"
      kill -KILL $all 2>/dev/null
      lab_wait_gone 1 && break
    done
  fi
  lab_scan
  left=$(members)
  if [ -n "$supervisor" ]; then
    for _ in {1..50}; do
      [ ! -e "$dir/exit" ] || break
      sleep 0.1
    done
    lab_scan
    if [ ! -e "$dir/exit" ] && lab_supervisor "$dir" >/dev/null; then kill -KILL "$supervisor" 2>/dev/null; fi
  fi
  printf 'asked=%s\nkilled=%s\nleft=%s\n' "${asked//$'\n'/ }" "${killed//$'\n'/ }" "${left//$'\n'/ }"
  if [ -e "$dir/exit" ]; then read -r beat _ <"$dir/exit"; printf 'exit_code=%s\n' "$beat"; fi
  printf 'microseconds=%s\n' $((${EPOCHREALTIME/[.,]/} - ${started/[.,]/}))
}
