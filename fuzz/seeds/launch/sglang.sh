# 2 prefill workers in fp8, 8 GPUs each
python3 -m sglang.launch_server --model-path m --tp-size 8 --dp-size 8 --enable-dp-attention --ep-size 8 --max-running-requests 128 --chunked-prefill-size 32768 --context-length 4608 --disaggregation-mode prefill
# 1 workers of decoding in fp8, 8 GPUs each
python3 -m sglang.launch_server --model-path m --tp-size 8 --quantization fp8 --mem-fraction-static 0.8 --disaggregation-mode decode
