#!/usr/bin/env bash
# Installs the release build into a temporary folder, then builds the example program against the
# installed package alone and runs it, and reads the installed man page.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --preset release >/dev/null
cmake --build --preset release --target installed >/dev/null
cmake --install build/release --prefix "$work/prefix" >/dev/null
cmake -S examples/plan-through-the-library -B "$work/example" -G Ninja \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/example" >/dev/null

cd /
"$work/example/plan" llama-3-8b dgx-h100:8 128 8192
"$work/prefix/bin/braid" list clusters >/dev/null
test -s "$work/prefix/share/man/man1/braid.1"
test -s "$work/prefix/share/bash-completion/completions/braid"
echo "the installed package works"
