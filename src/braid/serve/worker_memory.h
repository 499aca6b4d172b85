#pragma once

#include "braid/serve/step_model.h"

namespace braid {

/// What fills the memory of a worker's fullest device.
struct WorkerMemory {
  double weights_bytes = 0;
  double activation_bytes = 0;  ///< Of a step with as many new tokens as the engine takes.
  double graph_bytes = 0;       ///< Captured graphs.
  double room_bytes = 0;        ///< For caches and states; negative: what is missing.
  double token_bytes = 0;       ///< Of a token in the caches of unwindowed layers.
  double window_bytes = 0;      ///< Of a token in the caches of windowed layers.
  double window = 0;            ///< Tokens that these keep.
  double sequence_bytes = 0;    ///< States of a sequence.

  /// Of a sequence of that many tokens, in whole blocks.
  double of_sequence(double tokens, double block_tokens) const;
};

/// `chunk_tokens`: new tokens of a step at most. Weights are dealt to stages evenly, those of
/// experts to moe_tp · moe_ep ranks. A draft model's are added.
WorkerMemory worker_memory(const Worker& worker, double chunk_tokens);

/// Tokens that a request keeps in the cache, in the mean over its life or, where the engine
/// reserves all of them at once, in all.
double kept_tokens(const Engine& engine, double input_tokens, double output_tokens);

/// Sequences of `tokens` that a worker holds at once, all attention groups together; 0: none.
double held_sequences(const Worker& worker, const WorkerMemory& memory, double tokens);

}  // namespace braid
