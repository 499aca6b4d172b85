#!/usr/bin/env bash
# Checks the format of all sources, then runs clang-tidy over src with the flags of the debug build. Reports
# everything before it fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
find src tests bench examples -name '*.cc' -o -name '*.h' | sort |
  xargs clang-format --dry-run -Werror || status=1
cmake --preset lint >/dev/null
# Longest first, so that all cores end together.
find src -name '*.cc' -printf '%s %p\n' | sort -rn | cut -d ' ' -f 2 |
  xargs -P "$(nproc)" -n 1 clang-tidy --quiet -p build/lint 2> >(grep -v 'warnings generated' >&2) ||
  status=1
exit $status
