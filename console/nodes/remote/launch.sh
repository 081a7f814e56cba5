#!/usr/bin/env bash
# Supervisor of one job. All about the job is in this folder; nothing depends on a connection.
dir=${0%/*}
exec </dev/null >>"$dir/log" 2>&1
# It outlives a TERM to its group, to write down how the job ended.
trap : HUP INT TERM
. "$dir/login"

# Heartbeat, for as long as this process is its parent.
(
  trap - HUP INT TERM
  line=
  while read -r -d '' line <"/proc/$BASHPID/stat" || [ -n "$line" ]; do
    set -- ${line##*) }
    [ "$2" = $$ ] || exit 0
    printf '%s\n' "$EPOCHSECONDS" >"$dir/heartbeat"
    sleep 5
  done
) &
helper=$!

read -r -d '' line <"/proc/$$/stat"
set -- ${line##*) }
read -r boot </proc/sys/kernel/random/boot_id
printf 'pid=%s\nstart_ticks=%s\npgid=%s\nboot_id=%s\nhelper_pid=%s\nstarted_at=%s\n' \
  $$ "${20}" "$3" "$boot" "$helper" "$EPOCHSECONDS" >"$dir/pid.tmp" && mv "$dir/pid.tmp" "$dir/pid" || {
  # A job that nobody can find must not run.
  rm -f "$dir/.secrets"
  exit 1
}

. "$dir/.secrets"
rm -f "$dir/.secrets"
@EXPORTS@
export LAB_RUN_DIR=$dir LAB_RUN_ID=${dir#"$HOME/.lab/"}
(cd @CWD@ && exec @ARGV@)
code=$?

printf '%-63s\n' "$code $EPOCHSECONDS" 1<>"$dir/exit.tmp" && mv "$dir/exit.tmp" "$dir/exit"
kill "$helper"
