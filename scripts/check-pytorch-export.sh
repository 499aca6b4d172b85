#!/usr/bin/env bash
# Runs what braid export --to pytorch writes, by processes and by one process, and holds the losses against each other
# (float64, 1e-12) and, where braid-run is built, against what braid run computes from the same weights and data.
# Without PyTorch for Python (apt-get install python3-torch) it says so and is skipped.
#
#   scripts/check-pytorch-export.sh [PROGRAM [CASE…]]    # build/release/bin/braid, all cases
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import torch.distributed, numpy' 2>/dev/null; then
  echo "skipped: $python has no PyTorch (apt-get install python3-torch)"
  exit 0
fi
program=$(realpath "${1:-build/release/bin/braid}")
[[ -x $program ]] || { echo "no program $program: build it, or name one" >&2; exit 2; }
export OMP_NUM_THREADS=1
exec "$python" scripts/check-pytorch-export.py "$program" "${@:2}"
