#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/graph/graph.h"

namespace braid {

struct ModelOptions {
  /// 0: the model's own maximum. Models with a fixed length (ViT, graph files) take no other.
  std::int64_t seq_len = 0;
  std::int64_t layers = 0;  ///< Only so many blocks of a decoder, the first; 0: all.
  /// Of the blocks without experts that a decoder with experts begins with, only so many, before
  /// `layers` counts; negative: all.
  std::int64_t dense_layers = -1;
  std::map<std::string, std::int64_t> dims;  ///< Values of symbolic dimensions (`--dim batch=8`).
};

/// Loads a model's forward graph (with loss for language models). `source` is a zoo name, a Hugging
/// Face directory or config.json, an ONNX file (`.onnx`), or a graph JSON. Repeated layers are
/// marked. Throws Error.
Graph load_model(const std::string& source, const ModelOptions& options);

/// Throws Error for a model of views alone, which takes no time however it is run.
void check_computes(const Graph& graph, const std::string& source);

struct ZooEntry {
  std::string name;
  std::string description;
};
std::vector<ZooEntry> zoo_models();  ///< Sorted by name.

}  // namespace braid
