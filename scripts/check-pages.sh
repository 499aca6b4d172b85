#!/usr/bin/env bash
# Draws every kind of page that braid makes, opens each in headless Chromium in windows of several widths, light
# and dark, presses what can be pressed, and looks for what a reader would stumble over (page-check.js) and for
# complaints of the browser. Keeps pictures in the folder that is given, if any.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
pictures=${1:-}

scripts/install-dependencies.sh --pages
# A program that is there already, or the one that is built here.
braid=${BRAID:-}
if [[ -z $braid ]]; then
  cmake --preset release >/dev/null
  cmake --build --preset release --target braid >/dev/null
  braid=build/release/bin/braid
fi

draw() { "$braid" "$@" >/dev/null; }
draw plan candle-uno --cluster p3.8xlarge:8 --global-batch 1024 --precision fp32 \
  --planner graphpipe -o "$work/graph.json"
draw plan bert-large --cluster p3.8xlarge:8 --global-batch 8 --pp 4 --vp 2 --tp 2 \
  --precision fp32 -o "$work/chunks.json"
draw plan examples/llama-3-70b/config.json --cluster dgx-h100:64 --global-batch 256 \
  --seq-len 8192 --top 5 -o "$work/uniform.json"
for plan in graph chunks uniform; do
  draw simulate "$work/$plan.json" --html "$work/$plan.html"
done
draw report "$work/uniform.json" -o "$work/report.html"
draw report "$work/graph.json" -o "$work/report-graph.html"
# Names that would end the page's scripts.
sed 's:"model"\: "[^"]*":"model"\: "</script><b>\&amp;":; s:"name"\: "block:"name"\: "</script><b>block:' \
  "$work/chunks.json" >"$work/hostile.json"
draw report "$work/hostile.json" -o "$work/report-hostile.html"
for schedule in gpipe zb-h1 2bw; do
  draw simulate "$work/graph.json" --schedule $schedule --html "$work/graph-$schedule.html"
done
for schedule in interleaved zb-v; do
  draw simulate "$work/chunks.json" --schedule $schedule --html "$work/chunks-$schedule.html"
done
draw serve-plan deepseek-v3 --cluster dgx-h200:16 --input-len 4096 --output-len 512 --html "$work/serve.html"
draw serve-plan llama-3-70b --cluster dgx-h100:8 --input-len 4096 --output-len 512 --engine vllm --precision fp8 \
  --mode aggregated --html "$work/serve-aggregated.html"
draw validate tests/validate/published_runs.csv --html "$work/validate.html"
draw explore examples/explore/hpl.yaml --out "$work/explore"
draw explore examples/explore/llama-3-70b.yaml --out "$work/explore-models"
draw explore examples/explore/accelerator.yaml --out "$work/explore-accelerator"
draw map bert-large --chip phaze-common --seq-len 512 --micro-batch 4 --layer block0 --training \
  --gantt "$work/cores.html"
draw map gpt3-175b --chip sn30 --layer block0 --roofline "$work/roofline.svg"
{
  echo '<!doctype html><meta charset="utf-8"><title></title><body><div style="overflow-x:auto">'
  cat "$work/roofline.svg"
} >"$work/roofline.html"

# A browser's window cannot be as narrow as a phone's, but a frame in it can.
frame() {
  cat <<END
<!doctype html><html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title></title><script>addEventListener("message", (event) => { document.title = event.data; });</script>
</head><body><iframe src="checked.htm" style="border:0;width:$1px;height:900px"></iframe></body></html>
END
}
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
  } >"$work/checked.htm"
  for look in 390,dark 800,light 1100,dark 1600,light; do
    IFS=, read -r width scheme <<<"$look"
    # 0 is dark, 1 light.
    preferred=--blink-settings=preferredColorScheme=$([[ $scheme == light ]] && echo 1 || echo 0)
    frame "$width" >"$work/frame.htm"
    browse "$preferred" --window-size=1700,1000 --virtual-time-budget=5000 --enable-logging=stderr \
      --dump-dom "file://$work/frame.htm" >"$work/laid-out"
    verdict=$(sed -n 's:.*<title>\(.*\)</title>.*:\1:p' "$work/laid-out")
    if [[ -z $verdict ]]; then verdict="faults: the browser said nothing"; fi
    if grep -q CONSOLE "$work/complaints"; then
      verdict="faults: $(grep -m1 CONSOLE "$work/complaints")"
    fi
    if [[ $verdict == "laid out well"* && $verdict != *" $scheme, $width px" ]]; then
      verdict="faults: not shown as it was to be: $verdict"
    fi
    echo "$name, $width px, $scheme: $verdict"
    [[ $verdict == "laid out well"* ]] || failed=1
    if [[ -n $pictures ]]; then
      mkdir -p "$pictures"
      browse "$preferred" --hide-scrollbars --window-size="$width,3000" \
        --screenshot="$pictures/$name-$width-$scheme.png" "file://$page" >/dev/null
    fi
  done
done
exit $failed
