cat > extra.yml <<EOF
enable_attention_dp: true
kv_cache_config: {dtype: fp8, free_gpu_memory_fraction: 0.85}
EOF
trtllm-serve m --tp_size 8 --ep_size 8 --max_batch_size 32 --extra_llm_api_options extra.yml
