# Sourced by the scripts beside it: finds the repository, whatever the working directory.
set -euo pipefail
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$repository"

# Sources are compiled a folder at a time where no ccache remembers them one by one.
command -v ccache >/dev/null || export ESPALIER_UNITY=${ESPALIER_UNITY:-ON}

# Configures and builds a preset; says little when there is nothing to do, and shows the log when it fails.
build_preset() {
  local preset=$1
  shift
  local log="build/$preset.log"
  mkdir -p build
  echo "build: preset $preset"
  if ! { cmake --preset "$preset" && cmake --build --preset "$preset" "$@"; } >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "build: preset $preset failed; the whole log is $log" >&2
    return 1
  fi
}
