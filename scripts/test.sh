#!/usr/bin/env bash
# Installs what is needed, builds braid with assertions, and runs its tests. Arguments go to CMake.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-dependencies.sh
cmake --preset debug "$@" >/dev/null
cmake --build --preset debug
ctest --preset debug || {
  # What failed runs once more, so that what it prints is the last thing to be read.
  ctest --preset debug --rerun-failed
  exit 1
}
