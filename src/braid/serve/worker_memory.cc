#include "braid/serve/worker_memory.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

constexpr double kActivationBytes = 2;

void add_caches(const ServedLayer& layer, const Worker& worker, double count,
                WorkerMemory& memory) {
  const auto tp = static_cast<double>(worker.layout.tp);
  const auto cp = static_cast<double>(worker.layout.cp);
  const double element = worker.format.cache == "fp8" ? 1 : 2;
  if (layer.mixing == TokenMixing::attention) {
    const double bytes =
        count * 2 * std::max(1.0, std::ceil(layer.kv_heads / tp)) * layer.head_dim * element / cp;
    if (layer.window > 0) {
      memory.window_bytes += bytes;
      memory.window = std::max(memory.window, layer.window);
    } else {
      memory.token_bytes += bytes;
    }
  } else if (layer.mixing == TokenMixing::latent) {
    // Every rank chooses tokens, from keys of its own.
    memory.token_bytes +=
        count * ((layer.kv_rank + layer.rotary_dim) * element / cp + layer.index_dim);
  } else {
    constexpr double kStateBytes = 4;
    memory.sequence_bytes +=
        count * layer.state_heads / tp * layer.key_dim * layer.value_dim * kStateBytes;
  }
}

/// Weights, caches and activations of one model.
WorkerMemory model_memory(const Worker& worker, double chunk_tokens) {
  WorkerMemory memory;
  const ServedModel& model = *worker.model;
  const ServingLayout& layout = worker.layout;
  const auto tp = static_cast<double>(layout.tp);
  const auto pp = static_cast<double>(layout.pp);
  double widest = 0;
  for (const ServedLayer& layer : model.layers) {
    const LayerWeights weights = layer_weights(layer, model.hidden);
    const double count = static_cast<double>(layer.count) / pp;
    memory.weights_bytes +=
        count * (weights.mixing / tp * weight_bytes(worker.format.attention) +
                 weights.dense / tp * weight_bytes(worker.format.dense) +
                 weights.experts / static_cast<double>(layout.moe_tp * layout.moe_ep) *
                     weight_bytes(worker.format.experts) +
                 2 * weights.other);
    add_caches(layer, worker, count, memory);
    widest =
        std::max(widest, (2 * layer.inner + layer.heads * layer.head_dim) / tp +
                             layer.top_k * layer.expert_inner / static_cast<double>(layout.moe_tp));
  }
  const double tables = (model.tied_embeddings ? 1 : 2) * model.vocab * model.hidden / tp * 2;
  memory.weights_bytes += tables / std::min(pp, 2.0);
  memory.activation_bytes = kActivationBytes * chunk_tokens * (4 * model.hidden + widest);
  return memory;
}

/// A draft model has weights and caches of its own; it computes before or after the target.
void add_draft(const WorkerMemory& draft, WorkerMemory& memory) {
  memory.weights_bytes += draft.weights_bytes;
  memory.token_bytes += draft.token_bytes;
  memory.window_bytes += draft.window_bytes;
  memory.window = std::max(memory.window, draft.window);
  memory.sequence_bytes += draft.sequence_bytes;
  memory.activation_bytes = std::max(memory.activation_bytes, draft.activation_bytes);
}

}  // namespace

double WorkerMemory::of_sequence(double tokens, double block_tokens) const {
  const double whole = std::ceil(tokens / block_tokens) * block_tokens;
  return whole * token_bytes + std::min(whole, window + block_tokens) * window_bytes +
         sequence_bytes;
}

WorkerMemory worker_memory(const Worker& worker, double chunk_tokens) {
  WorkerMemory memory = model_memory(worker, chunk_tokens);
  if (worker.draft != nullptr) {
    add_draft(model_memory(draft_worker(worker), chunk_tokens), memory);
  }
  const Engine& engine = *worker.engine;
  const Chip& chip = worker.system->groups.front().chip;
  memory.graph_bytes = engine.graph_bytes;
  const double used = memory.weights_bytes + memory.activation_bytes + memory.graph_bytes;
  const double given = engine.share_of_free
                           ? (chip.memory.bytes - chip.reserved_bytes - used) * engine.memory_share
                           : chip.memory.bytes * engine.memory_share - used;
  memory.room_bytes = given;
  return memory;
}

double kept_tokens(const Engine& engine, double input_tokens, double output_tokens) {
  return input_tokens + (engine.reserves_output ? 1 : 0.5) * output_tokens;
}

double held_sequences(const Worker& worker, const WorkerMemory& memory, double tokens) {
  if (memory.room_bytes <= 0) return 0;
  const double one = memory.of_sequence(tokens, worker.engine->block_tokens);
  const double held = std::floor(memory.room_bytes / one);
  return std::min(held, worker.engine->most_sequences) * static_cast<double>(worker.layout.dp);
}

}  // namespace braid
