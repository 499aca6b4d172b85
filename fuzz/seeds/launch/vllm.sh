TP=2
vllm serve deepseek-ai/DeepSeek-R1 -tp $TP --data-parallel-size 4 -ep -dcp 2 --max-num-seqs 24 --max-num-batched-tokens 4k \
  --max-model-len 16K --gpu-memory-utilization 0.95 --kv-cache-dtype fp8 \
  --speculative-config '{"method":"draft_model","model":"d","num_speculative_tokens":3}'
