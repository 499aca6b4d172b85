#!/usr/bin/env bash
# Checks the format of all sources and that types have names of their own, then runs clang-tidy over src with the flags
# of the debug build. Reports everything before it fails. What it found nothing in is not read again until it changes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
scripts/check-format.sh || status=1
scripts/check-names.sh || status=1
cmake --preset lint >/dev/null

clean=${XDG_CACHE_HOME:-$HOME/.cache}/braid-lint
mkdir -p "$clean"
find "$clean" -type f -mtime +30 -delete
version=$(clang-tidy --version)
# A batch of sources includes sources, and the analyzer must be told to look into what is included. Where libtorch is,
# its headers declare types of names that braid has too.
options='--quiet -p build/lint --checks=-bugprone-suspicious-include,-bugprone-forward-declaration-namespace
  --extra-arg=-Xclang --extra-arg=-analyzer-opt-analyze-headers'

# Stands for all that the findings in a batch follow from: what it includes, with comments, and how it is read. Paths
# count from the project's folder.
digest_of() { # BATCH
  local command
  command=$(grep -F -- "-c $1\"" build/lint/compile_commands.json | sed 's/^ *"command": "//; s/",\{0,1\}$//; s/\\"/"/g; s/ -o [^ ]* / /')
  {
    echo "$version $options $command"
    cat .clang-tidy
    (cd build/lint && eval "$command -E -P -C")
  } | sed "s|$PWD||g" | sha256sum | cut -d' ' -f1
}

lint_batch() { # BATCH
  local digest
  digest=$(digest_of "$1")
  [[ -e $clean/$digest ]] && return
  clang-tidy $options "$1" 2> >(grep -v 'warnings generated' >&2) || return 1
  touch "$clean/$digest"
}

# The preset compiles many sources of a room at once (CMake's unity builds), so that what they include is read once.
# Longest first, so that all cores end together.
export clean version options
export -f digest_of lint_batch
sed -n 's/.*"file": "\(.*\/src\/braid\/.*\/Unity\/.*\)".*/\1/p' build/lint/compile_commands.json |
  xargs wc -l | sed '/ total$/d' | sort -rn | awk '{print $2}' |
  xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'lint_batch {}' || status=1
exit $status
