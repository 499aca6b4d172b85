#!/usr/bin/env bash
# Holds schedules of operators on cores against CBC's answer to Phaze's own integer program, on random graphs of 2 to 14
# operators and up to four cores of each kind. Says how many are equal, and exits with 1 where CBC has a shorter schedule or
# proves another time. Ten minutes; not part of CI, whose tests do the same for a few small graphs. Without a gap, where Phaze has its
# solver stop at 1 %.
#
#   scripts/check-core-programs.sh [GRAPHS [SEED [SECONDS [OPERATORS]]]]    # 1000, 1, 30 for each graph, 2 to 14
#   scripts/check-core-programs.sh 20 5 20 20    # graphs of 20 operators, CBC stopped after 20 s: never shorter than ours
#
# Build it first: cmake --preset release -DBRAID_BUILD_BENCH=ON && ninja -C build/release core_programs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=build/release/bin/core_programs
[[ -x $program ]] || { echo "no program $program: build it" >&2; exit 2; }
command -v cbc > /dev/null || { echo "no solver cbc: install coinor-cbc" >&2; exit 2; }
exec "$program" "${1:-1000}" "${2:-1}" "${3:-30}" "${4:-0}"
