#!/usr/bin/env bash
# Fails where two headers define a type of the same name: a program that links both would mix them up without a word.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
twice=$(grep -rhoE '^(struct|class|enum class) [A-Z][A-Za-z0-9]*( final)?( :[^:].*)? *\{' src/braid --include='*.h' |
  sed -E 's/^(struct|class|enum class) ([A-Za-z0-9]+).*/\2/' | sort | uniq -d)
if [[ -n "$twice" ]]; then
  for name in $twice; do
    echo "$name is a type of several headers:" >&2
    grep -rlE "^(struct|class|enum class) $name( final)?( :[^:].*)? *\{" src/braid --include='*.h' >&2
  done
  exit 1
fi
