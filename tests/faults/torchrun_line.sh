#!/bin/sh
# The line of docs/engine.md for torchrun works as printed, with the torchrun of scripts/setup --torch or Debian's; skips aloud where neither is.
# torchrun_line.sh ESPALIER
torchrun=$(dirname "$0")/../../build/torch/bin/torchrun
[ -x "$torchrun" ] || torchrun=/usr/bin/torchrun
if [ ! -x "$torchrun" ] || ! "$torchrun" --help >/dev/null 2>&1; then
  echo "skipped: $torchrun is missing (scripts/setup --torch)"
  exit 3
fi
unset ESPALIER_SECRET ESPALIER_SECRET_FILE RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export XDG_RUNTIME_DIR="$folder" OMP_NUM_THREADS=1
# torchrun takes any port that is free; the one after it, where ranks meet, may be another test's.
for attempt in 1 2 3; do
  "$torchrun" --standalone --nproc_per_node 3 --redirects=1 --tee=1 --no_python "$1" run one-host all_reduce -p ranks=3 -s 64K -n 2 -w 1 \
    --timeout 30 >"$folder/out" 2>&1 && break
  [ $attempt -lt 3 ] && grep -q "Address already in use" "$folder/out" || { cat "$folder/out"; exit 1; }
done
grep -q "Out of bounds values : 0 OK" "$folder/out" || { cat "$folder/out"; exit 1; }
