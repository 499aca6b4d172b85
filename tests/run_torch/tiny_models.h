#pragma once

#include <string>
#include <vector>

#include "braid/graph/graph.h"

namespace braid::test {

/// The shape of a known model with sizes that train in milliseconds.
struct TinyModel {
  std::string name;
  std::string config;  ///< As config.json has it.
};

/// GPT-2, Llama with grouped-query attention, Mixtral's mixture of experts, T5, BERT, ResNet, the
/// multi-modal transformer, DLRM with summed and with joined bags, CANDLE-Uno and ViT.
std::vector<TinyModel> tiny_models();

/// Throws Error as load_model().
Graph graph_of(const TinyModel& model);

}  // namespace braid::test
