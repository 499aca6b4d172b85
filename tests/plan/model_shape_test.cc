#include "braid/plan/model_shape.h"

#include <string>

#include <gtest/gtest.h>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/plan/plan_json.h"

namespace braid {
namespace {

/// The shape of a zoo model, which must have one.
ModelShape shape_of(const std::string& model) {
  const auto shape = model_shape(load_model(model, {}));
  EXPECT_TRUE(shape) << model;
  return shape.value_or(ModelShape{});
}

/// Parameters that the fields of a shape stand for.
std::int64_t parameters_of(const ModelShape& s) {
  const std::int64_t q = s.heads * s.head_dim;
  const std::int64_t kv = s.kv_heads * s.head_dim;
  const std::int64_t matrices = s.gated ? 3 : 2;
  const std::int64_t norm = s.rms ? s.hidden : 2 * s.hidden;
  const auto dense = [&](std::int64_t inner) {
    const std::int64_t bias = s.linear_bias ? (matrices - 1) * inner + s.hidden : 0;
    return inner > 0 ? matrices * s.hidden * inner + bias : 0;
  };
  const std::int64_t attention = s.hidden * (q + 2 * kv) + (s.qkv_bias ? q + 2 * kv : 0) +
                                 q * s.hidden + (s.linear_bias ? s.hidden : 0) +
                                 (s.qk_norm ? 2 * s.head_dim : 0);
  const std::int64_t sparse =
      s.experts > 0 ? s.hidden * s.experts + s.experts * matrices * s.hidden * s.expert_inner +
                          dense(s.shared_inner) + (s.shared_gate ? s.hidden : 0)
                    : dense(s.inner);
  const std::int64_t ends =
      (s.tied_embeddings ? 1 : 2) * s.vocab * s.hidden + s.positions * s.hidden + norm;
  return s.blocks * (attention + 2 * norm) + s.dense_blocks * dense(s.inner) +
         (s.blocks - s.dense_blocks) * sparse + ends;
}

/// Counting parameters by the shape alone gives what the graph holds: nothing is misread.
TEST(ModelShape, ExplainsEveryParameterOfTheZoosDecoders) {
  int checked = 0;
  for (const ZooEntry& entry : zoo_models()) {
    Graph graph = load_model(entry.name, {});
    graph.shape.reset();
    const auto shape = model_shape(graph);
    if (!shape || shape->latent_attention || !shape->causal) continue;
    EXPECT_EQ(parameters_of(*shape), parameter_count(graph)) << entry.name;
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

/// What a config.json states is what its graph shows, where that shows it.
TEST(ModelShape, StatedAndReadOffTheOperatorsAreTheSame) {
  int checked = 0;
  for (const ZooEntry& entry : zoo_models()) {
    Graph graph = load_model(entry.name, {});
    if (!graph.shape) continue;
    const ModelShape stated = *graph.shape;
    graph.shape.reset();
    const auto read = model_shape(graph);
    if (!read) continue;
    EXPECT_EQ(read->blocks, stated.blocks) << entry.name;
    EXPECT_EQ(read->dense_blocks, stated.dense_blocks) << entry.name;
    EXPECT_EQ(read->hidden, stated.hidden) << entry.name;
    EXPECT_EQ(read->heads, stated.heads) << entry.name;
    EXPECT_EQ(read->kv_heads, stated.kv_heads) << entry.name;
    EXPECT_EQ(read->head_dim, stated.head_dim) << entry.name;
    EXPECT_EQ(read->inner, stated.inner) << entry.name;
    EXPECT_EQ(read->vocab, stated.vocab) << entry.name;
    EXPECT_EQ(read->positions, stated.positions) << entry.name;
    EXPECT_EQ(read->window, stated.window) << entry.name;
    EXPECT_EQ(read->experts, stated.experts) << entry.name;
    EXPECT_EQ(read->top_k, stated.top_k) << entry.name;
    EXPECT_EQ(read->expert_inner, stated.expert_inner) << entry.name;
    EXPECT_EQ(read->shared_inner, stated.shared_inner) << entry.name;
    EXPECT_EQ(read->shared_gate, stated.shared_gate) << entry.name;
    EXPECT_EQ(read->rotary, stated.rotary) << entry.name;
    EXPECT_EQ(read->gated, stated.gated) << entry.name;
    EXPECT_EQ(read->rms, stated.rms) << entry.name;
    EXPECT_EQ(read->qkv_bias, stated.qkv_bias) << entry.name;
    EXPECT_EQ(read->linear_bias, stated.linear_bias) << entry.name;
    EXPECT_EQ(read->qk_norm, stated.qk_norm) << entry.name;
    EXPECT_EQ(read->tied_embeddings, stated.tied_embeddings) << entry.name;
    EXPECT_EQ(read->dropout, stated.dropout) << entry.name;
    ++checked;
  }
  EXPECT_GE(checked, 20);
}

TEST(ModelShape, HoldsWhatAConfigSaysAndNoOperatorShows) {
  const ModelShape llama = shape_of("llama-3-405b");
  EXPECT_EQ(llama.rotary_base, 500000);
  EXPECT_EQ(llama.rotary_scaling.kind, "llama3");
  EXPECT_EQ(llama.rotary_scaling.original_positions, 8192);
  const ModelShape deepseek = shape_of("deepseek-v3-mtp");
  EXPECT_EQ(deepseek.q_rank, 1536);
  EXPECT_EQ(deepseek.kv_rank, 512);
  EXPECT_EQ(deepseek.qk_dim, 192);
  EXPECT_EQ(deepseek.router_score, "sigmoid");
  EXPECT_EQ(deepseek.router_groups, 8);
  EXPECT_EQ(deepseek.router_top_groups, 4);
  EXPECT_EQ(deepseek.router_scaling, 2.5);
  EXPECT_GT(deepseek.mtp_modules, 0);
  EXPECT_TRUE(shape_of("qwen2-57b-a14b").router_all_experts);
  EXPECT_FALSE(shape_of("qwen3-30b-a3b").router_all_experts);
  EXPECT_EQ(shape_of("gemma-2-9b").norms, "around");
  EXPECT_EQ(shape_of("gpt-neox-20b").norms, "parallel");
  EXPECT_EQ(shape_of("gpt-neox-20b").rotary_dim, 24);
  EXPECT_EQ(shape_of("opt-350m").embedding_width, 512);
  EXPECT_EQ(shape_of("gpt-oss-120b").windowed_blocks.substr(0, 4), "1010");
  const ModelShape nemotron = shape_of("nemotron-3-super-mtp");
  EXPECT_EQ(nemotron.layer_pattern.size(), 88U);
  EXPECT_EQ(nemotron.mtp_pattern, "*E");
  EXPECT_EQ(nemotron.expert_latent, 1024);
}

TEST(ModelShape, HasThePublishedFigures) {
  const ModelShape llama = shape_of("llama-3-70b");  // its config.json
  EXPECT_EQ(llama.first_block, 1);
  EXPECT_EQ(llama.blocks, 80);
  EXPECT_EQ(llama.hidden, 8192);
  EXPECT_EQ(llama.heads, 64);
  EXPECT_EQ(llama.kv_heads, 8);
  EXPECT_EQ(llama.inner, 28672);
  EXPECT_EQ(llama.vocab, 128256);
  EXPECT_EQ(llama.activation, "swiglu");
  EXPECT_TRUE(llama.gated && llama.rms && llama.rotary && llama.causal);
  EXPECT_FALSE(llama.qkv_bias || llama.linear_bias || llama.tied_embeddings || llama.dropout);
  const ModelShape gpt = shape_of("gpt2-xl");
  EXPECT_EQ(gpt.positions, 1024);
  EXPECT_TRUE(gpt.qkv_bias && gpt.linear_bias && gpt.tied_embeddings && gpt.dropout);
  EXPECT_FALSE(gpt.gated || gpt.rms || gpt.rotary);
  const ModelShape qwen2 = shape_of("qwen2-7b");
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.linear_bias);
  EXPECT_TRUE(shape_of("qwen3-8b").qk_norm);
  EXPECT_EQ(shape_of("mistral-7b").window, 4096);
  const ModelShape deepseek = shape_of("deepseek-v3");
  EXPECT_TRUE(deepseek.latent_attention);
  EXPECT_EQ(deepseek.dense_blocks, 3);
  EXPECT_EQ(deepseek.blocks, 61);
  EXPECT_EQ(deepseek.inner, 18432);
  EXPECT_EQ(deepseek.experts, 256);
  EXPECT_EQ(deepseek.expert_inner, 2048);
}

TEST(ModelShape, IsNotMadeUpForWhatIsNoTransformer) {
  Graph graph = load_model("gpt2", {});
  graph.shape.reset();
  EXPECT_TRUE(model_shape(graph));
  // Two attentions in one block.
  Graph two = graph;
  for (Operator& op : two.operators) {
    if (op.layer == 1 && std::holds_alternative<Elementwise>(op.kind)) op.kind = Attention{};
  }
  EXPECT_FALSE(model_shape(two));
  // No embedding table.
  for (Operator& op : graph.operators) {
    if (std::holds_alternative<Embedding>(op.kind)) op.kind = DataMovement{};
  }
  EXPECT_FALSE(model_shape(graph));
  EXPECT_FALSE(model_shape(Graph{}));
}

TEST(ModelShape, IsNotMadeUpForBlocksThatItHasNoWordsFor) {
  // Parallel halves; a narrow embedding; norms behind the halves; cross attention; no vocabulary;
  // an MTP module.
  for (const char* model :
       {"gpt-neox-20b", "opt-350m", "gemma-2-9b", "t5-large", "vit-base", "deepseek-v3-mtp"}) {
    Graph graph = load_model(model, {});
    graph.shape.reset();
    EXPECT_FALSE(model_shape(graph)) << model;
  }
  const ModelShape deepseek = shape_of("deepseek-v3");
  EXPECT_TRUE(deepseek.latent_attention);
  EXPECT_EQ(deepseek.dense_blocks, 3);
  EXPECT_EQ(deepseek.hidden, 7168);
  EXPECT_EQ(deepseek.shared_inner, 2048);
}

}  // namespace
}  // namespace braid
