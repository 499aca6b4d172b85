#!/bin/bash
GPUS=${GPUS:-8}
NODES=4
ARGS=(
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32  # a comment
  --group-query-attention --num-query-groups 8
  "--seq-length" 8192
)
if [ "$NODES" -gt 1 ]; then
  ARGS+=(--tensor-model-parallel-size $((GPUS / 2)))
fi
torchrun --nproc-per-node "$GPUS" --nnodes "$NODES" pretrain_gpt.py \
  "${ARGS[@]}" --micro-batch-size 1 --global-batch-size 128 --bf16
