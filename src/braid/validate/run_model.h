#pragma once

#include <optional>
#include <string>

#include "braid/graph/graph.h"
#include "braid/validate/measured_run.h"

namespace braid {

/// A model, or why there is none.
struct RunModel {
  std::optional<Graph> graph;
  std::string reason;
};

/// The model that a run trained, as the row describes it: by its dimensions (layers, hidden, heads,
/// ffn, vocab), by a configuration as load_model() reads it ("config.json", beside the file of the
/// runs), else by a name of the zoo or a published model's (known_models.h), cut to its first
/// `layers` blocks if the row says so. The name decides the family: GPT-like (layer norms, biases,
/// GELU, learned positions), BERT, MPT, or Llama-like (RMS norms, gated, rotary), which is also
/// taken where there are fewer key/value heads or a feed-forward network not four times as wide. An
/// unknown vocabulary is that of GPT-2, padded.
RunModel model_of(const MeasuredRun& run);

}  // namespace braid
