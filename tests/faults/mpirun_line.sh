#!/bin/sh
# The line of docs/engine.md for another launcher works as printed: no secret was given, the ranks are children of one
# launcher on one machine. The launcher is this script, which sets what mpirun sets; one rank sits behind a shell.
# mpirun_line.sh ESPALIER
unset ESPALIER_SECRET ESPALIER_SECRET_FILE
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
export XDG_RUNTIME_DIR="$folder"
program=$1
rank() {
  export OMPI_COMM_WORLD_RANK="$1" OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK="$1" OMPI_COMM_WORLD_LOCAL_SIZE=3
  export OMPI_MCA_ess_base_jobid="test $$"
}
line="run one-host all_reduce -p ranks=3 -s 64K -n 2 -w 1 --timeout 30"
(rank 0; exec "$program" $line >"$folder/out0" 2>&1) & zero=$!
(rank 1; exec "$program" $line >"$folder/out1" 2>&1) & one=$!
(rank 2; exec sh -c "\"$program\" $line; exit \$?" >"$folder/out2" 2>&1) & two=$!
failed=0
for process in $zero $one $two; do wait "$process" || failed=1; done
[ "$failed" = 0 ] || { cat "$folder"/out*; exit 1; }
left=$(ls "$folder/espalier")
[ -z "$left" ] || { echo "left: $left"; exit 1; }
