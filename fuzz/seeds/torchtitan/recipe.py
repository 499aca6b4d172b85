from torchtitan.distributed.activation_checkpoint import FullAC
from torchtitan.models.llama3 import model_registry


def mine() -> Trainer.Config:
    config = Trainer.Config(
        model_spec=model_registry("8B", attn_backend="flex"),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=2 * 4_096,
            num_tokens_per_train_step=64 * 4096,
            max_context_length=4096,
        ),
        parallelism=ParallelismConfig(
            data_parallel_shard_degree=4,
            pipeline_parallel_degree=2,
            num_pp_microbatches=8,
            pipeline_parallel_layers_per_stage=8,
        ),
        activation_checkpoint=FullAC.Config(),
    )
    config.parallelism.tensor_parallel_degree = 2
    return config
