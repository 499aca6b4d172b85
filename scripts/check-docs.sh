#!/usr/bin/env bash
# Runs what the documents show. Every command in a fenced block that begins with `braid` must end with 0.
# Where `$ braid` has its output below it, braid must print that: a line … stands for any lines, and …
# within a line for any text. YAML blocks that begin with `name:` are files that later commands read.
#
#   scripts/check-docs.sh [PROGRAM [PAGE…]]    # build/release/bin/braid, README.md and docs/*.md
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if (($# == 0)); then
  scripts/install-dependencies.sh
  cmake --preset release >/dev/null
  cmake --build --preset release --target braid >/dev/null
fi
program=$(realpath "${1:-build/release/bin/braid}")
shift || true
pages=("$@")
((${#pages[@]})) || pages=(README.md docs/*.md)

source=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# braid, the program that is asked for, by name.
mkdir "$work/bin"
ln -s "$program" "$work/bin/braid"
# Kernel times that are measured here are of no use to anybody.
export PATH="$work/bin:$PATH" LC_ALL=C.UTF-8 XDG_CACHE_HOME="$work/cache"

# Take a minute or more, without libraries for kernels very much more: commands beside them run the same code.
too_long='braid explore examples/explore/gpt-100t.yaml|braid place (resnet-50|--run resnet-50)|braid measure'
# Plans are run by a program that is there where libtorch is.
[[ -x $(dirname "$program")/braid-run ]] || too_long+='|braid run'
# Outputs of published inputs, which are not here: their commands run on small ones.
not_compared='^braid plan --profile (bert|bertlarge\.in)\.json'

# Stand-ins for the files that pages leave to the reader.
prepare() { # FOLDER
  ln -s "$source/examples" "$1/examples"
  cp "$source/examples/explore/hpl.yaml" "$1/space.yaml"
  head -40 "$source/tests/validate/published_runs.csv" >"$1/runs.csv"
  for name in piper bert gnmt; do cp "$source/tests/cases/files/piper_chain.json" "$1/$name.json"; done
  cp "$source/fuzz/seeds/phaze/small.json" "$1/bertlarge.in.json"
  cp "$source/fuzz/seeds/plan/pipeline.json" "$1/plan.json"
}

# Writes the YAML blocks of the pages that have names.
write_examples() { # FOLDER
  awk -v folder="$1" '
    /^```yaml$/ { first = 1; file = ""; next }
    /^```/ { first = 0; file = ""; next }
    first && /^name: / { file = seen[$2]++ ? "" : folder "/" $2 ".yaml" }
    { first = 0 }
    file != "" { print >file }' "$source"/docs/*.md
}

# The commands of a page, one a line: LINE, tab, command; those with output shown have it in LINE.out.
commands_of() { # PAGE FOLDER
  awk -v folder="$2" '
    function flush() {
      if (command == "") return
      sub(/[ ]+#.*$/, "", command)
      print at "\t" command
      command = ""
    }
    /^```/ { flush(); inside = !inside; shown = ""; next }
    !inside { next }
    more { line = $0; sub(/^ +/, "", line); more = sub(/\\$/, "", line); command = command line; next }
    /^(\$ )?braid / && (shown == "" || /^\$ /) {
      flush()
      at = FNR
      shown = /^\$ / ? folder "/" at ".out" : ""
      command = $0
      sub(/^\$ /, "", command)
      more = sub(/\\$/, "", command)
      next
    }
    shown != "" { print >shown }
    END { flush() }' "$1"
}

# Whether the lines of FILE are those shown in SHOWN; says which one is not.
compare() { # SHOWN FILE
  awk '
    function matches(text, pattern,   parts, count, at, i, found) {
      count = split(pattern, parts, /…|\.\.\./)
      if (count == 1) return text == pattern
      if (substr(text, 1, length(parts[1])) != parts[1]) return 0
      at = length(parts[1]) + 1
      for (i = 2; i <= count; ++i) {
        if (parts[i] == "") continue
        found = index(substr(text, at), parts[i])
        if (!found) return 0
        at += found - 1 + length(parts[i])
      }
      return parts[count] == "" || at == length(text) + 1
    }
    NR == FNR { shown[++wanted] = $0; next }
    { lines[++count] = $0 }
    END {
      at = 1
      for (i = 1; i <= wanted; ++i) {
        if (shown[i] == "…" || shown[i] == "...") { free = 1; continue }
        found = at
        while (free && found <= count && !matches(lines[found], shown[i])) ++found
        if (found > count || !matches(lines[found], shown[i])) {
          print "    shown:   " shown[i]
          if (!free && at <= count) print "    printed: " lines[at]
          exit 1
        }
        at = found + 1
        free = 0
      }
      if (!free && at <= count) { print "    not shown: " lines[at]; exit 1 }
    }' "$1" "$2"
}

failed=0
ran=0
for page in "${pages[@]}"; do
  folder=$(mktemp -d "$work/page.XXXX")
  prepare "$folder"
  write_examples "$folder"
  mkdir "$folder/shown"
  while IFS=$'\t' read -r line command; do
    [[ ! $command =~ ^($too_long) ]] || continue
    ran=$((ran + 1))
    status=0
    (cd "$folder" && eval "$command") >"$folder/printed" 2>"$folder/said" </dev/null || status=$?
    if ((status != 0)); then
      echo "$page:$line: $command: exit status $status: $(head -c 300 "$folder/said")"
      failed=1
    elif [[ -e $folder/shown/$line.out && ! $command =~ $not_compared ]]; then
      compare "$folder/shown/$line.out" "$folder/printed" || {
        echo "$page:$line: $command: prints something else"
        failed=1
      }
    fi
  done < <(commands_of "$page" "$folder/shown")
done
echo "$ran commands of ${#pages[@]} pages"
exit $failed
