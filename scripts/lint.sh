#!/usr/bin/env bash
# Checks the format of all sources and that types have names of their own, then runs clang-tidy over src with the flags
# of the debug build. Reports everything before it fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
scripts/check-format.sh || status=1
scripts/check-names.sh || status=1
cmake --preset lint >/dev/null
# The preset compiles many sources of a room at once (CMake's unity builds), so that what they include is read once.
# Such a batch includes sources, and the analyzer must be told to look into what is included. Longest first, so that
# all cores end together. Where libtorch is, its headers declare types of names that braid has too.
sed -n 's/.*"file": "\(.*\/src\/braid\/.*\/Unity\/.*\)".*/\1/p' build/lint/compile_commands.json |
  xargs wc -l | sed '/ total$/d' | sort -rn | awk '{print $2}' |
  xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p build/lint --checks=-bugprone-suspicious-include,-bugprone-forward-declaration-namespace \
    --extra-arg=-Xclang --extra-arg=-analyzer-opt-analyze-headers 2> >(grep -v 'warnings generated' >&2) ||
  status=1
exit $status
