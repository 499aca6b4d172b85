#!/usr/bin/env bash
# Runs the trainers' own argument and configuration code over what braid export writes, of the jobs that the
# reference lists and of random ones that have a plan. The trainers' sources are beside the checkout, in ../shared, or
# where TRAINERS_REFERENCE says; without them the check says so and is skipped.
#
#   scripts/check-exports.sh [PROGRAM [COUNT [SEED]]]    # build/release/bin/braid, 100 random jobs of seed 1
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

reference=$(realpath -m "${TRAINERS_REFERENCE:-../shared/reference/trainers}")
if [[ ! -d $reference ]]; then
  echo "skipped: $reference, which has the trainers' sources, is not here"
  exit 0
fi
program=$(realpath "${1:-build/release/bin/braid}")
[[ -x $program ]] || { echo "no program $program: build it, or name one" >&2; exit 2; }
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.path.append("/usr/lib/python3/dist-packages"); import numpy, packaging, pydantic' || {
  echo "install python3-numpy, python3-packaging and python3-pydantic (2)" >&2
  exit 2
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" scripts/random-export-cases.py "$program" "${2:-100}" "${3:-1}" > "$work/random.txt"

status=0
for cases in "$reference/cases.txt" "$work/random.txt"; do
  name=$(basename "$cases" .txt)
  PYTHON=$python "$reference/check_exports.sh" "$program" "$cases" "$work/$name" > "$work/$name.out" || true
  echo "$name: $(tail -n 1 "$work/$name.out" | cut -d ';' -f 1)"
  if grep -q 'FAIL' "$work/$name.out"; then
    grep -B 1 'FAIL' "$work/$name.out"
    status=1
  fi
done
exit "$status"
