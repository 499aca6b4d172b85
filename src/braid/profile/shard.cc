#include "braid/profile/shard.h"

namespace braid {

Shard shard_of(Split split, const Execution& how, std::int64_t samples) {
  Shard shard;
  shard.tokens = static_cast<double>(how.micro_batch) / static_cast<double>(samples) / how.cp;
  const double tp = 1.0 / how.tp;
  switch (split) {
    case Split::replicated:
      break;
    case Split::sequence:
      if (how.sequence_parallel) shard.tokens *= tp;
      break;
    case Split::column:
    case Split::vocab:
      shard.output = shard.weight = tp;
      break;
    case Split::row:
      shard.input = shard.weight = tp;
      break;
    case Split::heads:
    case Split::features:
      shard.input = shard.output = shard.weight = tp;
      break;
    case Split::expert:
      shard.weight = (how.whole_experts ? 1 : tp) / how.ep;
      break;
  }
  return shard;
}

double kept_share(const MoeExperts& experts, const Execution& how) {
  const double part = 1.0 / how.tp;
  if (how.whole_experts) return part;
  const auto hidden = static_cast<double>(experts.hidden);
  const auto inner = static_cast<double>(experts.matrices) * static_cast<double>(experts.inner);
  return (hidden + part * inner) / (hidden + inner);
}

bool in_replicated_region(Split producer) {
  return producer == Split::replicated || producer == Split::sequence || producer == Split::row ||
         producer == Split::expert || producer == Split::vocab;
}

}  // namespace braid
