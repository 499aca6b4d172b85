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
                                     "model.recompute-method",
                                     "model.recompute-num-layers",
                                     "model.recompute-modules",
                                     "model.offload-modules",
                                     "model.cuda-graph-scope",
                                     "model.cuda-graph-modules",
                                     "model.cuda-graph-warmup-steps",
                                     "model.attention-backend",
                                     "model.init-method-std",
                                     "model.should-pad-vocab",
                                     "model.make-vocab-size-divisible-by",
                                     "model.vocab-size",
                                     "model.calculate-per-token-loss",
                                     "model.moe-grouped-gemm",
                                     "model.moe-permute-fusion",
                                     "model.moe-router-fusion",
                                     "model.moe-router-dtype",
                                     "model.moe-router-force-load-balancing",
                                     "model.moe-router-load-balancing-type",
                                     "model.moe-aux-loss-coeff",
                                     "model.apply-rope-fusion",
                                     "model.bias-activation-fusion",
                                     "model.bias-dropout-fusion",
                                     "model.masked-softmax-fusion",
                                     "model.persist-layer-norm",
                                     "model.use-te-rng-tracker",
                                     "ddp.overlap-param-gather",
                                     "ddp.grad-reduce-in-fp32",
                                     "ddp.check-for-nan-in-grad",
                                     "ddp.average-in-collective",
                                     "ddp.bucket-size",
                                     "ddp.num-buckets",
                                     "ddp.pad-buckets-for-high-nccl-busbw",
                                     "ddp.align-param-gather",
                                     "comm-overlap.overlap-param-gather",
                                     "comm-overlap.tp-comm-overlap-cfg",
                                     "comm-overlap.tp-comm-bootstrap-backend",
                                     "comm-overlap.bucket-size",
                                     "comm-overlap.align-param-gather",
                                     "comm-overlap.defer-embedding-wgrad-compute",
                                     "comm-overlap.wgrad-deferral-limit",
                                     "optimizer.lr",
                                     "optimizer.min-lr",
                                     "optimizer.weight-decay",
                                     "optimizer.adam-beta1",
                                     "optimizer.adam-beta2",
                                     "optimizer.adam-eps",
                                     "optimizer.clip-grad",
                                     "optimizer.optimizer-offload-fraction",
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

}  // namespace

bool is_ignored_by_bridge_reader(std::string_view field) {
  field.remove_prefix(std::min<std::size_t>(2, field.size()));
  const bool is_in_section =
      std::any_of(kSectionsOfNoFigure.begin(), kSectionsOfNoFigure.end(),
                  [&](std::string_view section) { return field.starts_with(section); });
  return is_in_section || std::find(kFieldsOfNoFigure.begin(), kFieldsOfNoFigure.end(), field) !=
                              kFieldsOfNoFigure.end();
}

}  // namespace braid
