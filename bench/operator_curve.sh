#!/usr/bin/env bash
# How planning grows with the number of operators: a network of 10^3 to 10^6 of them, read from ONNX and from a graph in
# JSON, planned on 64 H100. Prints CPU seconds and peak memory of the whole `braid plan`.
#
#   bench/operator_curve.sh [build/release/bin]
set -euo pipefail
bin=${1:-$(dirname "$0")/../build/release/bin}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '%9s  %6s  %9s  %8s  %8s\n' operators form 'file MB' 'CPU s' 'peak MB'
for operators in 1000 10000 100000 1000000; do
  "$bin/operator_files" $operators "$folder/network.onnx" "$folder/network.json"
  for form in onnx json; do
    dim=()
    [ $form = json ] || dim=(--dim batch=8)
    /usr/bin/time -f '%U %S %M' -o "$folder/time" "$bin/braid" plan "$folder/network.$form" "${dim[@]}" \
      --cluster dgx-h100:64 --global-batch 4096 --top 1 > "$folder/plan.txt"
    read -r user system peak < "$folder/time"
    printf '%9d  %6s  %9.1f  %8.2f  %8.0f\n' $operators $form \
      "$(stat -c %s "$folder/network.$form" | awk '{print $1 / 1e6}')" \
      "$(awk "BEGIN {print $user + $system}")" "$(awk "BEGIN {print $peak * 1024 / 1e6}")"
  done
done
