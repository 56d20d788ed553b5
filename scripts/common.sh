# Sourced by the scripts beside it: finds the repository, whatever the working directory.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"

# The build whose command is shown and installed. With dev, the tests' build, nothing is compiled only for that.
command_preset=${ESPALIER_PRESET:-release}

# Says how far a build is that writes to standard input: in place on a terminal, else a line every tenth of the way.
show_steps() {
  awk -v preset="$1" -v terminal="$([ -t 1 ] && echo 1)" '
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), step, "/")
      tenth = int(10 * step[1] / step[2])
      if (terminal) printf "\rbuild: preset %s, step %d of %d", preset, step[1], step[2]
      else if (step[2] >= 20 && tenth > shown) printf "build: preset %s, step %d of %d\n", preset, step[1], step[2]
      shown = tenth
      fflush()
    }
    END { if (terminal && step[2]) print "" }'
}

# Configures and builds a preset; says how far it is, and shows the log when it fails.
build_preset() {
  local preset=$1
  shift
  local log="build/$preset.log"
  mkdir -p build
  echo "build: preset $preset"
  if ! { cmake --preset "$preset" && cmake --build --preset "$preset" "$@"; } 2>&1 | tee "$log" | show_steps "$preset"; then
    tail -n 60 "$log" >&2
    echo "build: preset $preset failed; the whole log is $log" >&2
    return 1
  fi
}
