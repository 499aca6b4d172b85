#!/usr/bin/env bash
# Installs what is needed, builds braid, and plans the training of Llama-3-70B on 64 H100.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/install-dependencies.sh
cmake --preset release >/dev/null
cmake --build --preset release --target braid
build/release/bin/braid plan examples/llama-3-70b/config.json --cluster dgx-h100:64 \
  --global-batch 1024 --seq-len 8192 --top 5
