#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "braid/serve/step_kernels.h"

namespace braid {
namespace {

/// Of memory's bandwidth, what pointwise kernels reach.
constexpr double kPointwiseShare = 0.8;
/// Devices among which collectives were measured.
constexpr double kMeasuredDevices = 8;
/// Of the dense peak in bf16, what kernels of states and of chosen tokens reach.
constexpr double kStatePeakShare = 0.3;

/// Tokens choose their experts by themselves, not in turn: of experts with `own` tokens each in the
/// mean, 1 - exp(-own) have any.
ExpertForm::Shape with_random_choice(ExpertForm::Shape shape) {
  const double here = shape.of.experts / shape.of.ep;
  const double own = shape.load.rows / here;
  ExpertLoad& load = shape.load;
  load.active = std::min(load.active, here * -std::expm1(-own));
  for (std::size_t tile = 0; tile < kExpertTileRows.size(); ++tile) {
    load.tiles[tile] = load.active * expert_tiles(load.rows / load.active, kExpertTileRows[tile]);
  }
  return shape;
}

}  // namespace

double StepKernels::group_time(Collective collective, double devices, double bytes) const {
  if (devices <= 1) return 0;
  const auto node = static_cast<double>(worker.system->groups.front().devices_per_node);
  if (devices > std::min(kMeasuredDevices, node) || collective == Collective::point_to_point) {
    const auto size = static_cast<std::int64_t>(devices);
    const std::int64_t all = std::max(worker.system->device_count, size);
    System wide = *worker.system;
    wide.device_count = all;
    return collective_time(collective, bytes, span_of(wide, 1, size, all), wide).time_s;
  }
  const CollectiveShape shape{devices, bytes};
  if (collective == Collective::all_gather) return all_gather.time(shape);
  if (collective == Collective::reduce_scatter) return reduce_scatter.time(shape);
  if (collective == Collective::all_to_all) return all_to_all.time(shape);
  double least = all_reduces.front().time(shape);
  for (const auto& one : all_reduces) least = std::min(least, one.time(shape));
  return least;
}

/// What experts take to be sent their tokens and to send back: by gathering all tokens on all
/// devices and scattering sums, or by exchanging each token with the devices of its experts.
double StepKernels::exchange_time(double tokens, const ServedLayer& layer) const {
  const auto ranks = static_cast<double>(worker.layout.stage_devices());
  const double width = layer.expert_width > 0 ? layer.expert_width : worker.model->hidden;
  const double all = tokens * static_cast<double>(worker.layout.dp) * width;
  const double gathered = group_time(Collective::all_gather, ranks, 2 * all) +
                          group_time(Collective::reduce_scatter, ranks, 2 * all);
  if (worker.layout.moe_ep == 1) return gathered;
  const double sent = tokens / static_cast<double>(worker.layout.tp) *
                      std::min(layer.top_k, static_cast<double>(worker.layout.moe_ep)) * width;
  const double exchanged = group_time(Collective::all_to_all, ranks, sent) +
                           group_time(Collective::all_to_all, ranks, 2 * sent);
  return std::min(gathered, exchanged);
}

double StepKernels::attend(const ServedLayer& layer, const StepShape& shape) const {
  const auto tp = static_cast<double>(worker.layout.tp);
  AttentionShape core =
      attention_shape(std::ceil(layer.heads / tp), std::max(1.0, std::ceil(layer.kv_heads / tp)),
                      layer.head_dim, 1, 1);
  core.window = layer.window;
  double time_s = 0;
  if (shape.sequences > 0) {
    const auto split = static_cast<double>(worker.layout.cp);
    AttentionShape own = core;
    // Drafted tokens share the cache as heads do; ranks that divide it have each other's heads.
    own.heads *= split * (1 + shape.drafted);
    own.batch = shape.sequences;
    own.tokens = std::max(1.0, std::ceil(shape.context / split));
    time_s += decode.time(own);
  }
  if (shape.prompts > 0) {
    core.batch = shape.prompts;
    core.tokens = shape.prompt_tokens + shape.past;
    double all = prefill.time(core);
    if (shape.past > 0) {
      core.tokens = shape.past;
      all = std::max(all - prefill.time(core), 0.0) + prefill.figures->floor;
    }
    time_s += all;
  }
  return time_s;
}

/// What an indexer takes to choose tokens: its cache in fp8 is read once.
double StepKernels::attend_latent(const ServedLayer& layer, const StepShape& shape) const {
  const double heads = layer.heads / static_cast<double>(worker.layout.tp);
  const bool chosen = layer.indexed_tokens > 0;
  double time_s = 0;
  if (shape.sequences > 0) {
    const double read =
        std::max(1.0, chosen ? std::min(shape.context, layer.indexed_tokens) : shape.context);
    const auto split = static_cast<double>(worker.layout.cp);
    time_s += latent_decode.time(mla_decode_shape(heads * split * (1 + shape.drafted),
                                                  shape.sequences, std::ceil(read / split)));
    if (chosen) {
      time_s += shape.sequences * shape.context * layer.index_dim /
                (kPointwiseShare * memory_bytes_per_s);
    }
  }
  if (shape.prompts == 0) return time_s;
  const double end = shape.prompt_tokens + shape.past;
  if (chosen && end > layer.indexed_tokens) {
    const double rows = shape.prompts * shape.prompt_tokens;
    const double read = std::min(layer.indexed_tokens, shape.past + shape.prompt_tokens / 2);
    const double flops =
        2 * rows * read * heads * (2 * layer.kv_rank + layer.rotary_dim) +
        rows * (shape.past + shape.prompt_tokens / 2) * layer.index_heads * layer.index_dim;
    return time_s + flops / (kStatePeakShare * peak);
  }
  double all = latent_prefill.time(mla_prefill_shape(heads, shape.prompts, end));
  if (shape.past > 0) {
    all = std::max(all - latent_prefill.time(mla_prefill_shape(heads, shape.prompts, shape.past)),
                   0.0) +
          latent_prefill.figures->floor;
  }
  return time_s + all;
}

/// States are read and written once a token when decoding, once a chunk of 64 tokens of prompts.
double StepKernels::keep_state(const ServedLayer& layer, const StepShape& shape) const {
  constexpr double kChunk = 64;
  constexpr double kStateBytes = 4;
  const double heads = layer.state_heads / static_cast<double>(worker.layout.tp);
  const double state = heads * layer.key_dim * layer.value_dim;
  double time_s =
      2 * kStateBytes * shape.decoded_tokens() * state / (kPointwiseShare * memory_bytes_per_s);
  const double rows = shape.prompts * shape.prompt_tokens;
  if (rows > 0) {
    const double flops =
        rows * heads *
        (6 * layer.key_dim * layer.value_dim + 4 * kChunk * (layer.key_dim + layer.value_dim));
    time_s += flops / (kStatePeakShare * peak) + rows * heads * (layer.key_dim + layer.value_dim) *
                                                     12 / (kPointwiseShare * memory_bytes_per_s);
  }
  return time_s;
}

/// What ranks that divide caches by tokens exchange: queries of all of their heads, and partial
/// results with the logarithms of their sums, as vLLM does; of prompts, the cached tokens before.
double StepKernels::join_caches(const ServedLayer& layer, const StepShape& shape) const {
  constexpr double kBytes = 2, kSumBytes = 4;
  const auto split = static_cast<double>(worker.layout.cp);
  if (split <= 1 || layer.heads == 0) return 0;
  const bool latent = layer.mixing == TokenMixing::latent;
  const double heads = layer.heads / static_cast<double>(worker.layout.tp) * split;
  const double query = latent ? layer.kv_rank + layer.rotary_dim : layer.head_dim;
  const double value = latent ? layer.kv_rank : layer.head_dim;
  double time_s = 0;
  if (const double rows = shape.decoded_tokens() * heads; rows > 0) {
    time_s += group_time(Collective::all_gather, split, kBytes * rows * query) +
              group_time(Collective::all_gather, split, kSumBytes * rows * split) +
              group_time(Collective::reduce_scatter, split, kBytes * rows * value);
  }
  if (shape.prompts > 0 && shape.past > 0) {
    const double cached = latent ? query : 2 * layer.head_dim;
    time_s += group_time(Collective::all_gather, split,
                         cache_bytes * shape.prompts * shape.past * cached);
  }
  return time_s;
}

void StepKernels::project(const ServedLayer& layer, const StepShape& shape, double tokens,
                          StepParts& of) const {
  const auto tp = static_cast<double>(worker.layout.tp);
  const double hidden = worker.model->hidden;
  const double heads = std::ceil(layer.heads / tp);
  const auto gemm = [&](double m, double n, double k) {
    if (m > 0) of.projections += attention_gemm.time({m, n, k});
  };
  if (layer.mixing == TokenMixing::attention) {
    const double kv = std::max(1.0, std::ceil(layer.kv_heads / tp));
    gemm(tokens, ((layer.gated_output ? 2 : 1) * heads + 2 * kv) * layer.head_dim, hidden);
    gemm(tokens, hidden, heads * layer.head_dim);
    return;
  }
  if (layer.mixing != TokenMixing::latent) {
    const double own = layer.state_heads / tp * layer.value_dim;
    gemm(tokens, 2 * own + 2 * layer.key_heads / tp * layer.key_dim + 2 * layer.state_heads / tp,
         hidden);
    gemm(tokens, hidden, own);
    return;
  }
  gemm(tokens, layer.q_rank + layer.kv_rank + layer.rotary_dim + layer.index_dim, hidden);
  const double from = layer.q_rank > 0 ? layer.q_rank : hidden;
  gemm(tokens, heads * layer.qk_dim + layer.index_heads * layer.index_dim, from);
  gemm(tokens, hidden, heads * layer.v_dim);
  const double own = layer.qk_dim - layer.rotary_dim;
  gemm(shape.prompts * shape.prompt_tokens, heads * (own + layer.v_dim), layer.kv_rank);
  if (shape.sequences > 0) {
    // Of every head: queries into the latent's space, and what was read out of it.
    const double bytes = heads * layer.kv_rank * (own + layer.v_dim) * 2;
    const double flops = shape.decoded_tokens() * bytes;
    of.projections +=
        2 * plain_gemm.figures->floor +
        std::max(bytes / (kPointwiseShare * memory_bytes_per_s), flops / (kStatePeakShare * peak));
  }
}

void StepKernels::mix(const ServedLayer& layer, const StepShape& shape, double tokens,
                      StepParts& of) const {
  if (layer.mixing == TokenMixing::none) return;
  project(layer, shape, tokens, of);
  const bool state =
      layer.mixing == TokenMixing::delta_rule || layer.mixing == TokenMixing::state_space;
  of.attention += layer.mixing == TokenMixing::latent ? attend_latent(layer, shape)
                  : state                             ? keep_state(layer, shape)
                                                      : attend(layer, shape);
  of.collectives += group_time(Collective::all_reduce, static_cast<double>(worker.layout.tp),
                               2 * tokens * worker.model->hidden) +
                    join_caches(layer, shape);
  const double width =
      (layer.heads * std::max(layer.head_dim, layer.qk_dim) + layer.state_heads * layer.value_dim) /
      static_cast<double>(worker.layout.tp);
  of.pointwise +=
      2 * tokens * (4 * worker.model->hidden + 3 * width) / (kPointwiseShare * memory_bytes_per_s);
}

void StepKernels::feed(const ServedLayer& layer, double tokens, StepParts& of) const {
  const double hidden = worker.model->hidden;
  const auto tp = static_cast<double>(worker.layout.tp);
  const double matrices = layer.gated ? 2 : 1;
  const double inner = layer.inner + layer.shared_inner;
  if (inner > 0) {
    const double own = std::ceil(inner / tp);
    of.projections +=
        dense_gemm.time({tokens, matrices * own, hidden}) + dense_gemm.time({tokens, hidden, own});
    of.pointwise +=
        2 * tokens * (4 * hidden + (matrices + 1) * own) / (kPointwiseShare * memory_bytes_per_s);
  }
  if (layer.experts == 0) {
    if (inner > 0) of.collectives += group_time(Collective::all_reduce, tp, 2 * tokens * hidden);
    return;
  }
  of.projections += plain_gemm.time({tokens, layer.experts, hidden});
  const double width = layer.expert_width > 0 ? layer.expert_width : hidden;
  const ExpertShape shape{tokens * static_cast<double>(worker.layout.dp),
                          width,
                          layer.expert_inner,
                          layer.top_k,
                          layer.experts,
                          static_cast<double>(worker.layout.moe_tp),
                          static_cast<double>(worker.layout.moe_ep)};
  const ExpertForm::Shape loaded = with_random_choice(ExpertForm::shape(shape));
  double least = experts.front().time(loaded);
  for (const auto& one : experts) least = std::min(least, one.time(loaded));
  of.experts += least;
  of.collectives += worker.layout.dp > 1
                        ? exchange_time(tokens, layer)
                        : group_time(Collective::all_reduce, tp, 2 * tokens * hidden);
}

void StepKernels::add_layer(const ServedLayer& layer, const StepShape& shape, double tokens,
                            StepParts& of) const {
  mix(layer, shape, tokens, of);
  feed(layer, tokens, of);
}

void StepKernels::add_ends(const StepShape& shape, double tokens, StepParts& of) const {
  const auto tp = static_cast<double>(worker.layout.tp);
  const double rows = std::max(1.0, shape.decoded_tokens() + shape.prompts);
  const double columns = std::ceil(worker.model->vocab / tp);
  of.projections += plain_gemm.time({rows, columns, worker.model->hidden});
  of.pointwise += 8 * rows * columns / (kPointwiseShare * memory_bytes_per_s);
  if (worker.layout.pp > 1) {
    const double bytes = 2 * tokens * worker.model->hidden / tp;
    of.collectives += static_cast<double>(worker.layout.pp - 1) *
                      group_time(Collective::point_to_point, 2, bytes);
  }
}

}  // namespace braid
