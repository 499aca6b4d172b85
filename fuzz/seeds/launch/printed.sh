# 2 workers in fp8, 2 GPUs each
trtllm-serve m --backend pytorch --tp_size 2 --max_batch_size 192 --max_num_tokens 8192 --extra_llm_api_options <(printf 'enable_chunked_prefill: true\nkv_cache_config: {dtype: fp8}\n')
