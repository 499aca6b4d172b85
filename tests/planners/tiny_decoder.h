#pragma once

#include <cstddef>
#include <random>

#include "braid/frontend/decoder.h"
#include "braid/graph/repeated_layers.h"

#include "base/pick.h"

namespace braid::test {

/// A transformer with a few heads, tokens and layers; often with grouped queries, and with experts
/// often or always.
inline Graph tiny_decoder(std::mt19937_64& random, bool always_experts = false) {
  BlockSpec block;
  block.hidden = 64 * pick(random, 1, 3);
  block.attention.heads = 4;
  block.attention.kv_heads = 1 << pick(random, 0, 2);
  block.attention.qk_dim = block.attention.v_dim = 16;
  block.mlp.inner = 64 * pick(random, 1, 6);
  if (always_experts || pick(random, 0, 2) == 0) {
    block.experts.count = 4;
    block.experts.top_k = pick(random, 1, 2);
    block.experts.inner = 64 * pick(random, 1, 4);
    if (pick(random, 0, 1) == 0) block.experts.shared_inner = 64;
  }
  DecoderSpec spec;
  spec.name = "tiny";
  spec.vocab = 64 * pick(random, 1, 8);
  spec.blocks.assign(static_cast<std::size_t>(pick(random, 1, 4)), block);
  spec.tied_embeddings = pick(random, 0, 1) == 0;
  Graph graph = build_decoder(spec, 16);
  find_repeated_layers(graph);
  return graph;
}

}  // namespace braid::test
