#!/usr/bin/env bash
# Plans and maps the inputs that are known to take longest. Prints seconds by the clock and of the processor, peak memory, exit
# status and what the outcome says of its proof. Some minutes; not part of CI.
#
#   scripts/check-slow-inputs.sh [build/release/bin/braid]
set -euo pipefail
braid=$(realpath "${1:-$(dirname "$0")/../build/release/bin/braid}")
here=$(realpath "$(dirname "$0")/..")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

run() {
  local name=$1 status=0 wall user peak
  shift
  /usr/bin/time -o time -f '%e %U %M' timeout 600 "$braid" "$@" > out.txt 2> err.txt || status=$?
  read -r wall user peak < <(tail -n 1 time)
  printf '%-24s %6.1f s, CPU %6.1f s %6.0f MB  exit %d  %s\n' "$name" "$wall" "$user" "$(awk "BEGIN {print $peak * 1024 / 1e6}")" "$status" \
    "$(cat out.txt err.txt | grep -m 1 -oE '[Nn]ot proven[^(]*|[Pp]roven|The mapping is [^(]*|no plan:|[Ww]ithin [0-9.]* % of' || true)"
}

# Graphs of N operators on tensors of 1024 x 1024: GEMMs side by side, a chain, and one where each reads all before it.
graph() { # form N
  awk -v form="$1" -v n="$2" 'BEGIN {
    tensor = "{\"dims\":[1024,1024],\"dtype\":\"bf16\""
    printf "{\"braid\":\"graph\",\"version\":1,\"samples\":8,\n\"tensors\":[%s}", tensor
    for (i = 0; i < n; ++i) {
      if (form == "side") printf ",\n%s,\"parameter\":true}", tensor
      printf ",\n%s}", tensor
    }
    printf "],\n\"operators\":["
    for (i = 0; i < n; ++i) {
      printf "%s\n{\"name\":\"op%d\",", i ? "," : "", i
      if (form == "side") {
        printf "\"kind\":\"matmul\",\"m\":1024,\"n\":1024,\"k\":1024,\"weight\":true,\"inputs\":[0,%d],\"outputs\":[%d]}", 2*i+1, 2*i+2
        continue
      }
      printf "\"kind\":\"elementwise\",\"elements\":1048576,\"inputs\":[%d", i
      if (form == "dense") for (j = 0; j < i; ++j) printf ",%d", j
      printf "],\"outputs\":[%d]}", i + 1
    }
    print "]}"
  }'
}
graph side 1000 > side.json
graph chain 65000 > chain.json
graph dense 1000 > dense.json
mkdir deep
sed -e 's/"num_hidden_layers": *[0-9]*/"num_hidden_layers": 5000/' -e 's/"hidden_size": *[0-9]*/"hidden_size": 1024/' \
  -e 's/"intermediate_size": *[0-9]*/"intermediate_size": 4096/' -e 's/"num_attention_heads": *[0-9]*/"num_attention_heads": 16/' \
  "$here/examples/llama-3-70b/config.json" > deep/config.json

mixed=dgx-h100:2nodes+dgx-1:1nodes
run mixed/deepseek-v3-mtp plan deepseek-v3-mtp --cluster $mixed --global-batch 256
run mixed/gpt-oss-120b plan gpt-oss-120b --cluster $mixed --global-batch 256
run mixed/gpt-oss-120b-4k plan gpt-oss-120b --cluster $mixed --global-batch 256 --seq-len 4096
run mixed/t5-large plan t5-large --cluster p3.8xlarge:3nodes+g4dn.12xlarge:1nodes
run mixed/deepseek-v2 plan deepseek-v2 --cluster gb200-nvl72:3nodes+dgx-h100:1nodes --global-batch 1024
run graphpipe/t5-large plan t5-large --cluster p3.16xlarge:64 --global-batch 4096 --planner graphpipe
for model in gemma-3-1b deepseek-v2 deepseek-v3-mtp; do
  run "sn40l/$model" plan $model --cluster sn40l-16 --global-batch 256
done
run sn40l/deepseek-v2-4k plan deepseek-v2 --cluster sn40l-16 --global-batch 1024 --seq-len 4096
for devices in 256 1024; do
  run dlrm/$devices plan dlrm-dfmodel --cluster dgx-h100:$devices --global-batch 65536
done
run equi/5000-layers plan deep/config.json --cluster dgx-h100:8192 --global-batch 16384 --seq-len 2048 --planner equi
run map/side-by-side map side.json --chip sn30
run map/chain map chain.json --chip sn30
run map/dense map dense.json --chip sn30
