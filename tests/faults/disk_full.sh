#!/bin/sh
# Fault 22: a trace that does not fit the disk ends the run with the file's name, and no rank waits for its timeout.
# disk_full.sh ESPALIER
output=$(timeout 30 "$1" run one-host all_reduce -p ranks=2 -s 64K -n 2 -w 1 --timeout 120 --trace /dev/full 2>&1)
code=$?
if [ "$code" -eq 0 ] || [ "$code" -ge 124 ] || ! echo "$output" | grep -q "/dev/full"; then
  echo "exit code $code, output:"
  echo "$output"
  exit 1
fi
