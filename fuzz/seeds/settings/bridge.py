# llama-3-8b on dgx-h100: written by braid
# torchrun --nproc-per-node 8 --nnodes 2 --node-rank $NODE_RANK --master-addr $MASTER_ADDR megatron_bridge.py
import os

import torch

from megatron.bridge import AutoBridge
from megatron.bridge.recipes.common import _pretrain_common
from megatron.bridge.training.gpt_step import forward_step
from megatron.bridge.training.mixed_precision import get_mixed_precision_config
from megatron.bridge.training.pretrain import pretrain

# Or a folder with the model's config.json.
HF_MODEL = os.environ.get("HF_MODEL", "meta-llama/Meta-Llama-3-8B")
cfg = _pretrain_common()  # made-up data unless cfg.dataset.blend says where
cfg.model = AutoBridge.from_hf_pretrained(HF_MODEL).to_megatron_provider(load_weights=False)
assert (cfg.model.num_layers, cfg.model.hidden_size) == (32, 4096), "HF_MODEL is not the plan's model"

cfg.model.seq_length = 8192
cfg.model.tensor_model_parallel_size = 1
cfg.model.sequence_parallel = False
cfg.model.context_parallel_size = 4
cfg.model.expert_model_parallel_size = 1
cfg.model.pipeline_model_parallel_size = 1
cfg.ddp.use_distributed_optimizer = True
cfg.optimizer.use_distributed_optimizer = True
cfg.ddp.overlap_grad_reduce = True
cfg.ddp.overlap_param_gather = True
cfg.train.micro_batch_size = 1
cfg.train.global_batch_size = 256
cfg.dataset.seq_length = 8192

cfg.mixed_precision = get_mixed_precision_config("bf16_mixed")
cfg.mixed_precision.grad_reduce_in_fp32 = True

# What a plan does not say; as it stands, ten iterations on made-up data.
cfg.tokenizer.tokenizer_type = "NullTokenizer"
cfg.tokenizer.tokenizer_model = None
cfg.tokenizer.use_tokenizer_vocab_size = False
cfg.tokenizer.vocab_size = cfg.model.vocab_size
cfg.train.train_iters = 10
cfg.validation.eval_iters = 0
cfg.scheduler.lr_warmup_iters = 1
cfg.checkpoint.save = None
cfg.checkpoint.load = None

if __name__ == "__main__":
    pretrain(config=cfg, forward_step_func=forward_step)
