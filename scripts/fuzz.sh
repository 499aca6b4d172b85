#!/usr/bin/env bash
# Builds the fuzz targets of fuzz/ and runs each for so many seconds (default 30), as many at a time as there are cores.
# Fails when one crashes, takes more than 10 s for an input or more than 2 GiB; what did so is kept in build/fuzz/found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-30}
if ! [[ "$seconds" =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: $0 [seconds]" >&2
  exit 2
fi
scripts/install-dependencies.sh --fuzz
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz

# The files that a target begins with, by path.
seeds_of() {
  case "$1" in
    json | config | served) ls data/models/*.json examples/*/config.json ;;
    yaml) ls data/*/*.yaml examples/explore/*.yaml ;;
    chip) ls data/chips/*.yaml ;;
    cluster) ls data/clusters/*.yaml ;;
    engine) ls data/engines/*.yaml ;;
    trainer) ls data/trainers/*.yaml ;;
    space) ls examples/explore/*.yaml ;;
    runs) ls tests/validate/*.csv ;;
    # Models of a few hundred bytes, one operator each.
    onnx | program) find /usr/share/libonnx-testdata/data/node -name model.onnx | sort ;;
    quantity) ls fuzz/tokens.dict ;;
    requests) ls examples/serving/*.jsonl ;;
    record) ls tests/validate/recorded_accuracy.csv ;;
    setup) ls tests/dataflow/small_setup.txt ;;
    *) ls fuzz/seeds/"$1"/* ;;
  esac
}

run_target() {
  local name=$1 log=build/fuzz/found/$1.log
  local options=(-max_total_time="$seconds" -seed=1 -timeout=10 -rss_limit_mb=2048 -max_len=32768 -dict=fuzz/tokens.dict
    -artifact_prefix="build/fuzz/found/$name-" -seed_inputs="@build/fuzz/found/$name.seeds")
  seeds_of "$name" | paste -sd, | tr -d '\n' >"build/fuzz/found/$name.seeds"
  # Nothing that a name such as "-" could be read from.
  if ! "build/fuzz/bin/fuzz_$name" "${options[@]}" </dev/null >"$log" 2>&1; then
    printf '%-10s FAILED\n' "$name"
    tail -n 40 "$log"
    return 1
  fi
  printf '%-10s %8s executions, %6s points of coverage\n' "$name" \
    "$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log")" \
    "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)"
}

rm -rf build/fuzz/found
mkdir -p build/fuzz/found
export seconds
export -f run_target seeds_of
# xargs fails when any of them does.
for source in fuzz/*.cc; do basename "$source" .cc; done |
  xargs -P "$(nproc)" -I{} bash -o pipefail -c 'run_target {}'
