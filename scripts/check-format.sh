#!/usr/bin/env bash
# Checks the format of all sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
find src tests bench fuzz examples -name '*.cc' -o -name '*.h' | sort | xargs clang-format --dry-run -Werror
