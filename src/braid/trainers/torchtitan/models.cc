#include "braid/trainers/torchtitan/models.h"

#include <algorithm>

#include <fmt/format.h>

namespace braid {
namespace {

/// What all of torchtitan's decoders have: RMS norms before each half, SwiGLU, rotary positions,
/// no biases.
ModelShape decoder(std::int64_t blocks, std::int64_t hidden, std::int64_t heads,
                   std::int64_t kv_heads, std::int64_t head_dim) {
  ModelShape shape;
  shape.blocks = blocks;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = shape.rotary_dim = head_dim;
  shape.rotary = shape.gated = shape.rms = true;
  shape.norms = "before";
  shape.activation = "swiglu";
  return shape;
}

TorchtitanModel llama3(std::string_view flavor, const ModelShape& sizes, std::int64_t inner,
                       bool tied = false) {
  TorchtitanModel model{"llama3", flavor, sizes, true, true, !tied, 131072};
  model.shape.inner = inner;
  model.shape.vocab = 128256;
  model.shape.tied_embeddings = tied;
  model.shape.norm_epsilon = 1e-5;
  model.shape.rotary_base = 500000;
  model.shape.rotary_scaling = {"llama3", 8, 8192};
  return model;
}

TorchtitanModel qwen3(std::string_view flavor, const ModelShape& sizes, std::int64_t inner,
                      bool tied = false) {
  TorchtitanModel model{"qwen3", flavor, sizes, false, true, true, 40960};
  model.shape.inner = inner;
  model.shape.vocab = 151936;
  model.shape.qk_norm = true;
  model.shape.tied_embeddings = tied;
  model.shape.norm_epsilon = 1e-6;
  model.shape.rotary_base = 1000000;
  return model;
}

TorchtitanModel qwen3_experts(std::string_view flavor, const ModelShape& sizes,
                              std::int64_t expert_inner, double rotary_base) {
  TorchtitanModel model = qwen3(flavor, sizes, 0);
  model.shape.experts = 128;
  model.shape.top_k = 8;
  model.shape.expert_inner = expert_inner;
  model.shape.rotary_base = rotary_base;
  model.shape.router_score = "softmax";
  return model;
}

TorchtitanModel deepseek(std::string_view flavor, const ModelShape& sizes) {
  TorchtitanModel model{"deepseek_v3", flavor, sizes, true, false, true, 16384};
  ModelShape& shape = model.shape;
  shape.latent_attention = true;
  shape.kv_rank = 512;
  shape.qk_dim = 192;
  shape.rotary_dim = 64;
  shape.norm_epsilon = 1e-5;
  shape.rotary_base = 10000;
  shape.rotary_scaling = {"yarn", 40, 4096};
  shape.rotary_scaling.mscale_all_dim = 1;
  shape.router_score = "softmax";
  shape.router_all_experts = true;
  return model;
}

std::vector<TorchtitanModel> deepseek_models() {
  TorchtitanModel small = deepseek("16B", decoder(27, 2048, 16, 16, 128));
  small.shape.inner = 10944;
  small.shape.vocab = 102400;
  small.shape.experts = 64;
  small.shape.top_k = 6;
  small.shape.expert_inner = 1408;
  small.shape.shared_inner = 2 * small.shape.expert_inner;
  small.shape.dense_blocks = 1;
  small.shape.rotary_scaling.mscale = small.shape.rotary_scaling.mscale_all_dim = 0.7;
  TorchtitanModel middle = deepseek("236B", decoder(60, 5120, 128, 128, 128));
  middle.shape.inner = 12288;
  middle.shape.vocab = 102400;
  middle.shape.q_rank = 1536;
  middle.shape.experts = 160;
  middle.shape.top_k = 6;
  middle.shape.expert_inner = 1536;
  middle.shape.shared_inner = 2 * middle.shape.expert_inner;
  middle.shape.dense_blocks = 1;
  middle.shape.router_groups = 8;
  middle.shape.router_top_groups = 3;
  middle.shape.router_scaling = 16;
  TorchtitanModel large = deepseek("671B", decoder(61, 7168, 128, 128, 128));
  large.shape.inner = 18432;
  large.shape.vocab = 129280;
  large.shape.q_rank = 1536;
  large.shape.experts = 256;
  large.shape.top_k = 8;
  large.shape.expert_inner = 2048;
  large.shape.shared_inner = large.shape.expert_inner;
  large.shape.dense_blocks = 3;
  large.shape.router_groups = 8;
  large.shape.router_top_groups = 4;
  large.shape.router_scaling = 2.5;
  large.shape.router_score = "sigmoid";
  large.shape.router_all_experts = false;
  return {small, middle, large};
}

TorchtitanModel gpt_oss(std::string_view flavor, std::int64_t blocks, std::int64_t experts) {
  TorchtitanModel model{"gpt_oss", flavor, decoder(blocks, 2880, 64, 8, 64), false, false,
                        true,      131072};
  ModelShape& shape = model.shape;
  shape.vocab = 201088;
  shape.experts = experts;
  shape.top_k = 4;
  shape.expert_inner = 2880;
  shape.window = 128;
  for (std::int64_t block = 0; block < blocks; ++block) {
    shape.windowed_blocks += block % 2 == 0 ? '1' : '0';
  }
  shape.attention_sinks = true;
  shape.qkv_bias = shape.linear_bias = shape.expert_bias = shape.expert_clamp = true;
  shape.norm_epsilon = 1e-5;
  shape.rotary_base = 150000;
  shape.rotary_scaling = {"yarn", 32, 4096};
  shape.router_score = "softmax";
  return model;
}

std::vector<TorchtitanModel> all_models() {
  std::vector<TorchtitanModel> all = {
      llama3("8B", decoder(32, 4096, 32, 8, 128), 14336),
      llama3("70B", decoder(80, 8192, 64, 8, 128), 28672),
      llama3("405B", decoder(126, 16384, 128, 8, 128), 53248),
      llama3("1B", decoder(16, 2048, 32, 8, 64), 8192, true),
      llama3("3B", decoder(28, 3072, 24, 8, 128), 8192, true),
      qwen3("0.6B", decoder(28, 1024, 16, 8, 128), 3072, true),
      qwen3("1.7B", decoder(28, 2048, 16, 8, 128), 6144, true),
      qwen3("4B", decoder(36, 2560, 32, 8, 128), 9728, true),
      qwen3("8B", decoder(36, 4096, 32, 8, 128), 12288),
      qwen3("14B", decoder(40, 5120, 40, 8, 128), 17408),
      qwen3("32B", decoder(64, 5120, 64, 8, 128), 25600),
      qwen3_experts("30B-A3B", decoder(48, 2048, 32, 4, 128), 768, 1000000),
      qwen3_experts("235B-A22B", decoder(94, 4096, 64, 4, 128), 1536, 5000000)};
  for (TorchtitanModel& model : deepseek_models()) all.push_back(std::move(model));
  all.push_back(gpt_oss("20b", 24, 32));
  all.push_back(gpt_oss("120b", 36, 128));
  return all;
}

/// What operators depend on, each said in one way.
ModelShape operators_of(ModelShape shape) {
  const bool read_off = shape.model_type.empty();
  if (read_off && shape.rotary && shape.rotary_dim == 0) shape.rotary_dim = shape.head_dim;
  if (shape.norms.empty()) shape.norms = "before";
  if (shape.embedding_width == shape.hidden) shape.embedding_width = 0;
  if (shape.experts > 0 && shape.dense_blocks == 0 && shape.expert_blocks.empty()) shape.inner = 0;
  shape.first_block = 0;
  shape.model_type.clear();
  shape.activation = shape.gated && shape.activation.empty() ? "swiglu" : shape.activation;
  shape.norm_epsilon = shape.rotary_base = 0;
  shape.rotary_scaling = {};
  shape.router_score.clear();
  shape.router_all_experts = shape.router_bias = false;
  shape.router_groups = shape.router_top_groups = 0;
  shape.router_scaling = 1;
  return shape;
}

}  // namespace

std::span<const TorchtitanModel> torchtitan_models() {
  static const std::vector<TorchtitanModel> kModels = all_models();
  return kModels;
}

const TorchtitanModel* torchtitan_model_of(const ModelShape& shape) {
  const ModelShape wanted = operators_of(shape);
  for (const TorchtitanModel& model : torchtitan_models()) {
    if (operators_of(model.shape) == wanted) return &model;
  }
  return nullptr;
}

const TorchtitanModel* torchtitan_model_called(std::string_view name, std::string_view flavor) {
  for (const TorchtitanModel& model : torchtitan_models()) {
    if (model.name == name && model.flavor == flavor) return &model;
  }
  return nullptr;
}

std::vector<std::string> torchtitan_differences(const TorchtitanModel& model,
                                                const ModelShape& shape) {
  std::vector<std::string> all;
  // A shape that was read off operators knows nothing of these.
  if (shape.model_type.empty()) return all;
  const ModelShape& has = model.shape;
  if (has.norm_epsilon != shape.norm_epsilon) {
    all.push_back(fmt::format("an epsilon of {} in norms", has.norm_epsilon));
  }
  if (has.rotary_base != shape.rotary_base) {
    all.push_back(fmt::format("a rotary base of {}", has.rotary_base));
  }
  if (!(has.rotary_scaling == shape.rotary_scaling)) {
    all.push_back(has.rotary_scaling.kind.empty()
                      ? std::string("no rotary scaling")
                      : fmt::format("rotary scaling {} by {}", has.rotary_scaling.kind,
                                    has.rotary_scaling.factor));
  }
  if (has.experts > 0 && (has.router_score != shape.router_score ||
                          has.router_all_experts != shape.router_all_experts ||
                          has.router_groups != shape.router_groups ||
                          has.router_top_groups != shape.router_top_groups ||
                          has.router_scaling != shape.router_scaling)) {
    all.push_back(fmt::format("a router of its own ({}, scaled by {})", has.router_score,
                              has.router_scaling));
  }
  return all;
}

std::string torchtitan_model_names(bool older) {
  std::string text;
  std::string_view last;
  for (const TorchtitanModel& model : torchtitan_models()) {
    if (older && !model.older) continue;
    if (model.name != last) {
      text += fmt::format("{}{} (", text.empty() ? "" : "), ", model.name);
    } else {
      text += ", ";
    }
    text += model.flavor;
    last = model.name;
  }
  return text + ")";
}

}  // namespace braid
