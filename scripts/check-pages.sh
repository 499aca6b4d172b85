#!/usr/bin/env bash
# Draws every kind of page that braid makes, opens each in headless Chromium in a wide and a narrow
# window and looks for labels that lie on each other or outside their picture, pages wider than the
# window and complaints of the browser. Keeps pictures in the folder that is given, if any.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pictures=${1:-}

scripts/install-dependencies.sh --pages
cmake --preset release >/dev/null
cmake --build --preset release --target braid >/dev/null
braid=build/release/bin/braid

draw() { "$braid" "$@" >/dev/null; }
draw plan candle-uno --cluster p3.8xlarge:8 --global-batch 1024 --precision fp32 \
  --planner graphpipe -o "$work/graph.json"
draw plan bert-large --cluster p3.8xlarge:8 --global-batch 8 --pp 4 --vp 2 --tp 2 \
  --precision fp32 -o "$work/chunks.json"
draw plan examples/llama-3-70b/config.json --cluster dgx-h100:64 --global-batch 256 \
  --seq-len 8192 -o "$work/uniform.json"
for plan in graph chunks uniform; do
  draw simulate "$work/$plan.json" --html "$work/$plan.html"
done
for schedule in gpipe zb-h1 2bw; do
  draw simulate "$work/graph.json" --schedule $schedule --html "$work/graph-$schedule.html"
done
for schedule in interleaved zb-v; do
  draw simulate "$work/chunks.json" --schedule $schedule --html "$work/chunks-$schedule.html"
done
draw validate tests/validate/published_runs.csv --html "$work/validate.html"
draw explore examples/explore/hpl.yaml --out "$work/explore"
draw explore examples/explore/llama-3-70b.yaml --out "$work/explore-models"
draw map gpt3-175b --chip sn30 --layer block0 --roofline "$work/roofline.svg"
{
  echo '<!doctype html><meta charset="utf-8"><title></title><body>'
  cat "$work/roofline.svg"
} >"$work/roofline.html"

browse() {
  chromium --headless --no-sandbox --disable-gpu --user-data-dir="$work/profile" "$@" \
    2>"$work/complaints"
}
failed=0
for page in "$work"/*.html "$work"/explore*/index.html; do
  name=$(basename "$(dirname "$page")")-$(basename "$page" .html)
  name=${name#"$(basename "$work")-"}
  {
    cat "$page"
    printf '<script>\n%s\n</script>\n' "$(<scripts/page-check.js)"
  } >"$work/checked.html"
  for size in 1280,900 800,900; do
    browse --window-size=$size --enable-logging=stderr --dump-dom "file://$work/checked.html" \
      >"$work/laid-out"
    verdict=$(sed -n '0,/<title>/s:.*<title>\(.*\)</title>.*:\1:p' "$work/laid-out")
    verdict=${verdict:-faults: the browser said nothing}
    if grep -q CONSOLE "$work/complaints"; then
      verdict="faults: $(grep -m1 CONSOLE "$work/complaints")"
    fi
    echo "$name at ${size%,*} px: $verdict"
    [[ $verdict == "laid out well"* ]] || failed=1
  done
  if [[ -n $pictures ]]; then
    mkdir -p "$pictures"
    browse --window-size=1280,2000 --screenshot="$pictures/$name.png" "file://$page" >/dev/null
  fi
done
rm "$work/checked.html"
exit $failed
