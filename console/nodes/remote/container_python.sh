#!/bin/bash
# Stands for the Python of a container image: same arguments, same input, same variables, same user.
docker=(@DOCKER@)
image=@IMAGE@
python=@PYTHON@
mounts=(@MOUNTS@)
limits=(@LIMITS@)
extra=(@EXTRA@)

variables=()
while IFS= read -r name; do
  case $name in
    PATH | HOME | PWD | OLDPWD | SHLVL | SHELL | USER | LOGNAME | HOSTNAME | TERM | _ | DOCKER_* | SSH_*) ;;
    *) variables+=(-e "$name") ;;
  esac
done < <(compgen -e)

devices=()
[ -e /dev/nvidiactl ] && devices+=(--gpus all)
[ -d /dev/infiniband ] && devices+=(--device /dev/infiniband --cap-add IPC_LOCK)

mine=(--label "lab.run=${LAB_RUN_ID:-probe}")
exec "${docker[@]}" run --rm --init -i --network host --ipc host \
  --user "$(id -u):$(id -g)" --workdir "$PWD" -e HOME="$HOME" \
  "${mine[@]}" "${limits[@]}" "${devices[@]}" "${mounts[@]}" "${variables[@]}" "${extra[@]}" "$image" "$python" "$@"
