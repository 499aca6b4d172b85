#include "braid/frontend/multi_modal.h"

#include <vector>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/encoder_block.h"

namespace braid {
namespace {

constexpr std::int64_t kMostBranches = 1024;

struct Branch {
  std::int64_t layers = 1, input = 1;
  BlockSpec block;
};

/// The object that has the field: the branch's own, else the model's.
Value holder(const Value& config, const Value& own, std::string_view key) {
  return has(own, key) ? own : config;
}

Branch read_branch(const Value& config, const Value& own) {
  Branch branch;
  const Value depth = holder(config, own, "num_hidden_layers");
  branch.layers = size_of(depth, "num_hidden_layers", kMostLayers);
  BlockSpec& block = branch.block;
  block.rms = false;
  block.hidden = size_of(holder(config, own, "hidden_size"), "hidden_size");
  AttentionSpec& attention = block.attention;
  const Value heads = holder(config, own, "num_attention_heads");
  attention.heads = attention.kv_heads = size_of(heads, "num_attention_heads");
  check_divides(heads, "num_attention_heads", attention.heads, block.hidden, "hidden_size");
  attention.qk_dim = attention.v_dim = block.hidden / attention.heads;
  attention.causal = false;
  attention.qkv_bias = attention.out_bias = true;
  block.mlp.inner = size_of(holder(config, own, "intermediate_size"), "intermediate_size");
  block.mlp.gated = false;
  block.mlp.bias = true;
  block.mlp.activation = Activation::gelu;
  branch.input = size_or(holder(config, own, "embedding_size"), "embedding_size", block.hidden);
  return branch;
}

std::vector<Branch> read_branches(const Value& config) {
  std::vector<Branch> branches;
  const Value list = config["branches"];
  if (!list.exists()) {
    const std::int64_t count = size_of(config, "num_branches", kMostBranches);
    const Branch branch = read_branch(config, config);
    check_layer_count(config, "num_hidden_layers", count * branch.layers);
    branches.assign(static_cast<std::size_t>(count), branch);
    return branches;
  }
  std::int64_t layers = 0;
  for (const Value& own : list.elements()) {
    branches.push_back(read_branch(config, own));
    layers += branches.back().layers;
    check_layer_count(config, "branches", layers);
  }
  if (branches.empty() || branches.size() > static_cast<std::size_t>(kMostBranches)) {
    list.fail("has " + std::to_string(branches.size()) + " branches",
              "give 1 to " + std::to_string(kMostBranches));
  }
  return branches;
}

TensorId add_branch(GraphBuilder& builder, const Branch& branch, const std::string& name,
                    std::int64_t tokens) {
  TensorId x = builder.input(name, {tokens, branch.input}, Dtype::bf16);
  for (std::int64_t l = 0; l < branch.layers; ++l) {
    const std::string layer = name + ".block" + std::to_string(l);
    builder.begin_layer(layer);
    if (l == 0 && branch.input != branch.block.hidden) {
      x = builder.linear(name + ".projection", x, {tokens, branch.input, branch.block.hidden}, true,
                         Split::sequence);
    }
    x = transformer_block(builder, branch.block, layer + ".", x, tokens);
  }
  return x;
}

}  // namespace

Graph multi_modal_from_config(const Value& config, const std::string& name,
                              const ModelOptions& options) {
  const std::vector<Branch> branches = read_branches(config);
  const std::int64_t labels = size_or(config, "num_labels", 1);
  const std::int64_t tokens =
      sample_tokens(options, size_of(config, "max_position_embeddings", kMostTokens), false);
  GraphBuilder builder(name, tokens);
  std::vector<TensorId> ends;
  std::int64_t width = 0;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    ends.push_back(add_branch(builder, branches[b], "modality" + std::to_string(b), tokens));
    width += branches[b].block.hidden;
  }
  builder.begin_layer("fusion");
  TensorId x = ends.front();
  if (ends.size() > 1) {
    x = builder.add("fusion", DataMovement{}, std::move(ends), {tokens, width}, Split::sequence);
  }
  x = builder.linear("fusion.head", x, {tokens, width, labels}, true, Split::sequence);
  return builder.finish({builder.add("loss", Loss{tokens, labels}, {x}, {1}, Split::sequence)});
}

}  // namespace braid
