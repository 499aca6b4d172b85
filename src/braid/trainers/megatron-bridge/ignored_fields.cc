#include "braid/trainers/megatron-bridge/ignored_fields.h"

#include <algorithm>
#include <array>

namespace braid {
namespace {

constexpr auto kSectionsOfNoFigure = std::to_array<std::string_view>(
    {"logger.", "checkpoint.", "rng.", "tokenizer.", "validation.", "scheduler.", "dataset.",
     "profiling.", "ft.", "straggler.", "nvrx-straggler.", "inprocess-restart.",
     "rerun-state-machine.", "env-vars"});

constexpr auto kFieldsOfNoFigure =
    std::to_array<std::string_view>({"model",
                                     "scheduler",
                                     "checkpoint",
                                     "comm-overlap",
                                     "mixed-precision",
                                     "model.pipeline-dtype",
                                     "model.params-dtype",
                                     "model.autocast-dtype",
                                     "model.fp16",
                                     "model.bf16",
                                     "model.recompute-modules",
                                     "model.cuda-graph-scope",
                                     "model.cuda-graph-modules",
                                     "model.cuda-graph-warmup-steps",
                                     "model.init-method-std",
                                     "model.should-pad-vocab",
                                     "model.calculate-per-token-loss",
                                     "model.moe-grouped-gemm",
                                     "model.moe-permute-fusion",
                                     "model.moe-router-fusion",
                                     "model.moe-router-dtype",
                                     "model.moe-router-force-load-balancing",
                                     "model.moe-router-load-balancing-type",
                                     "model.moe-aux-loss-coeff",
                                     "model.use-te-rng-tracker",
                                     "ddp.grad-reduce-in-fp32",
                                     "ddp.check-for-nan-in-grad",
                                     "ddp.average-in-collective",
                                     "ddp.pad-buckets-for-high-nccl-busbw",
                                     "ddp.align-param-gather",
                                     "comm-overlap.tp-comm-overlap-cfg",
                                     "comm-overlap.tp-comm-bootstrap-backend",
                                     "comm-overlap.align-param-gather",
                                     "optimizer.lr",
                                     "optimizer.min-lr",
                                     "optimizer.weight-decay",
                                     "optimizer.adam-beta1",
                                     "optimizer.adam-beta2",
                                     "optimizer.adam-eps",
                                     "optimizer.clip-grad",
                                     "train.train-iters",
                                     "train.train-samples",
                                     "train.manual-gc",
                                     "train.manual-gc-interval",
                                     "train.manual-gc-eval",
                                     "train.eval-iters",
                                     "train.eval-interval",
                                     "train.exit-interval",
                                     "train.exit-duration-in-mins",
                                     "train.exit-signal-handler",
                                     "train.check-weight-hash-across-dp-replicas-interval",
                                     "dist.distributed-timeout-minutes",
                                     "dist.distributed-backend",
                                     "dist.use-gloo-process-groups",
                                     "dist.lazy-init",
                                     "dist.enable-megatron-core-experimental",
                                     "dist.use-decentralized-pg"});

constexpr std::string_view kFused = "these kernels are fused";
constexpr std::string_view kByLayer = "gradients are reduced layer by layer";

constexpr Unmodelled kUnmodelled[] = {
    {"model.vocab_size", "|none|", "the vocabulary is that of the model that is named"},
    {"model.make_vocab_size_divisible_by", "|128|",
     "the vocabulary is that of the model that is named"},
    {"model.offload_modules", "|none|[]|", "all that the backward pass needs is moved"},
    {"model.apply_rope_fusion", "|true|", kFused},
    {"model.bias_activation_fusion", "|true|", kFused},
    {"model.bias_dropout_fusion", "|true|", kFused},
    {"model.masked_softmax_fusion", "|true|", kFused},
    {"model.persist_layer_norm", "|true|", kFused},
    {"ddp.bucket_size", "|none|", kByLayer},
    {"ddp.num_buckets", "|none|", kByLayer},
    {"ddp.nccl_ub", "|false|", "collectives have the rates that they have without"},
    {"comm_overlap.bucket_size", "|none|", kByLayer},
    {"comm_overlap.defer_embedding_wgrad_compute", "|none|false|",
     "weights' gradients of the output layer are computed in its backward pass"},
    {"comm_overlap.wgrad_deferral_limit", "|none|0|-1|",
     "weights' gradients of the output layer are computed in its backward pass"},
    {"optimizer.optimizer_offload_fraction", "|1|", "all of the optimizer state is on the host"}};

}  // namespace

std::span<const Unmodelled> unmodelled_bridge_fields() { return kUnmodelled; }

bool is_ignored_by_bridge_reader(std::string_view field) {
  field.remove_prefix(std::min<std::size_t>(2, field.size()));
  const bool is_in_section =
      std::any_of(kSectionsOfNoFigure.begin(), kSectionsOfNoFigure.end(),
                  [&](std::string_view section) { return field.starts_with(section); });
  return is_in_section || std::find(kFieldsOfNoFigure.begin(), kFieldsOfNoFigure.end(), field) !=
                              kFieldsOfNoFigure.end();
}

}  // namespace braid
