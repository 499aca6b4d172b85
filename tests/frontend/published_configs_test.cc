// Parameter counts of checkpoints published on Hugging Face that the zoo does not hold, from what
// their config.json says: each has something that its family's zoo model has not.

#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "braid/frontend/hugging_face.h"
#include "braid/graph/graph.h"

namespace braid {
namespace {

struct Checkpoint {
  const char* name;
  std::int64_t parameters;
  const char* config;
};

class PublishedConfig : public ::testing::TestWithParam<Checkpoint> {};

TEST_P(PublishedConfig, HasTheParametersOfTheCheckpoint) {
  const Document document =
      Document::parse(GetParam().config, Document::Syntax::json, GetParam().name);
  const Graph graph = graph_from_config(document.root(), GetParam().name, {});
  check_graph(graph, GetParam().name);
  EXPECT_EQ(parameter_count(graph), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(
    HuggingFace, PublishedConfig,
    ::testing::Values(
        // Norms before the halves and a final one; no projection of the embedding.
        Checkpoint{"opt_125m", 125239296,
                   R"({"model_type": "opt", "hidden_size": 768, "ffn_dim": 3072,
                       "num_attention_heads": 12, "num_hidden_layers": 12, "vocab_size": 50272,
                       "max_position_embeddings": 2048, "do_layer_norm_before": true,
                       "word_embed_proj_dim": 768, "_remove_final_layer_norm": false,
                       "activation_function": "relu", "dropout": 0.1})"},
        // Fewer key and value heads than its sibling: one.
        Checkpoint{"gemma_2b", 2506172416,
                   R"({"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384,
                       "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
                       "num_hidden_layers": 18, "vocab_size": 256000,
                       "max_position_embeddings": 8192})"},
        // Heads that are together narrower than the hidden size.
        Checkpoint{"gemma_2_27b", 27227128320,
                   R"({"model_type": "gemma2", "hidden_size": 4608, "intermediate_size": 36864,
                       "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128,
                       "num_hidden_layers": 46, "vocab_size": 256000, "sliding_window": 4096,
                       "max_position_embeddings": 8192})"},
        Checkpoint{"pythia_1b", 1011781632,
                   R"({"model_type": "gpt_neox", "hidden_size": 2048, "intermediate_size": 8192,
                       "num_attention_heads": 8, "num_hidden_layers": 16, "vocab_size": 50304,
                       "max_position_embeddings": 2048, "rotary_pct": 0.25,
                       "use_parallel_residual": true, "tie_word_embeddings": false})"},
        // Grouped heads.
        Checkpoint{"phi_3_medium", 13960238080,
                   R"({"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920,
                       "num_attention_heads": 40, "num_key_value_heads": 10,
                       "num_hidden_layers": 40, "vocab_size": 32064, "sliding_window": 2047,
                       "max_position_embeddings": 4096, "tie_word_embeddings": false})"},
        // Queries that are not compressed.
        Checkpoint{"deepseek_v2_lite", 15706484224,
                   R"({"model_type": "deepseek_v2", "hidden_size": 2048,
                       "intermediate_size": 10944, "moe_intermediate_size": 1408,
                       "num_attention_heads": 16, "num_key_value_heads": 16,
                       "num_hidden_layers": 27, "vocab_size": 102400, "q_lora_rank": null,
                       "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
                       "v_head_dim": 128, "n_routed_experts": 64, "n_shared_experts": 2,
                       "num_experts_per_tok": 6, "first_k_dense_replace": 1, "moe_layer_freq": 1,
                       "max_position_embeddings": 163840, "tie_word_embeddings": false})"},
        Checkpoint{"qwen15_moe", 14315784192,
                   R"({"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
                       "num_attention_heads": 16, "num_key_value_heads": 16,
                       "num_hidden_layers": 24, "vocab_size": 151936, "num_experts": 60,
                       "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
                       "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1,
                       "max_position_embeddings": 8192, "tie_word_embeddings": false})"},
        // Gated feed-forward networks and a head of its own.
        Checkpoint{"t5_v1_1_large", 783150080,
                   R"({"model_type": "t5", "d_model": 1024, "d_kv": 64, "d_ff": 2816,
                       "num_heads": 16, "num_layers": 24, "num_decoder_layers": 24,
                       "vocab_size": 32128, "relative_attention_num_buckets": 32,
                       "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})"},
        Checkpoint{"flan_t5_xxl", 11135332352,
                   R"({"model_type": "t5", "d_model": 4096, "d_kv": 64, "d_ff": 10240,
                       "num_heads": 64, "num_layers": 24, "num_decoder_layers": 24,
                       "vocab_size": 32128, "relative_attention_num_buckets": 32,
                       "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false})"},
        // Heads that are together wider than the hidden size.
        Checkpoint{"qwen3_0_6b", 596049920,
                   R"({"model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
                       "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
                       "num_hidden_layers": 28, "vocab_size": 151936,
                       "max_position_embeddings": 40960, "tie_word_embeddings": true})"},
        // Part of each head rotates; factors of the rotation in lists.
        Checkpoint{"phi_4_mini", 3836021760,
                   R"({"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
                       "num_attention_heads": 24, "num_key_value_heads": 8,
                       "num_hidden_layers": 32, "vocab_size": 200064, "sliding_window": 262144,
                       "partial_rotary_factor": 0.75, "max_position_embeddings": 131072,
                       "rope_scaling": {"long_factor": [1, 1.1], "short_factor": [1.0, 1.0],
                                        "type": "longrope"},
                       "eos_token_id": [199999, 200020], "tie_word_embeddings": true})"},
        Checkpoint{"llama_3_2_1b", 1235814400,
                   R"({"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
                       "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64,
                       "num_hidden_layers": 16, "vocab_size": 128256,
                       "rope_scaling": {"factor": 32.0, "rope_type": "llama3"},
                       "max_position_embeddings": 131072, "tie_word_embeddings": true})"},
        Checkpoint{"qwen_2_5_0_5b", 494032768,
                   R"({"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
                       "num_attention_heads": 14, "num_key_value_heads": 2,
                       "num_hidden_layers": 24, "vocab_size": 151936, "max_window_layers": 24,
                       "sliding_window": 32768, "use_sliding_window": false, "use_mrope": false,
                       "max_position_embeddings": 32768, "tie_word_embeddings": true})"},
        Checkpoint{"mistral_nemo", 12247782400,
                   R"({"model_type": "mistral", "hidden_size": 5120, "intermediate_size": 14336,
                       "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                       "num_hidden_layers": 40, "vocab_size": 131072, "sliding_window": null,
                       "max_position_embeddings": 1024000, "tie_word_embeddings": false})"},
        // Language models inside models of texts and images, which leave out what is usual. Of
        // Gemma 3 4B's 4,300,079,472 parameters 416,866,032 are the image encoder's and 2,950,272
        // the projection's.
        Checkpoint{"gemma_3_4b", 4300079472 - 416866032 - 2950272,
                   R"({"model_type": "gemma3", "mm_tokens_per_image": 256,
                       "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
                         "intermediate_size": 10240, "num_hidden_layers": 34,
                         "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
                         "sliding_window": 1024},
                       "vision_config": {"model_type": "siglip_vision_model",
                         "hidden_size": 1152}})"},
        Checkpoint{"mistral_small_3_1", 23572403200,
                   R"({"model_type": "mistral3",
                       "text_config": {"model_type": "mistral", "hidden_size": 5120,
                         "intermediate_size": 32768, "num_attention_heads": 32,
                         "num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 40,
                         "vocab_size": 131072, "sliding_window": null,
                         "max_position_embeddings": 131072},
                       "vision_config": {"model_type": "pixtral", "hidden_size": 1024}})"}),
    [](const ::testing::TestParamInfo<Checkpoint>& checkpoint) {
      return std::string(checkpoint.param.name);
    });

/// Windows of the blocks' attention, in order.
std::vector<std::int64_t> windows_of(const std::string& fields) {
  const std::string config =
      R"({"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
          "num_hidden_layers": 4, "vocab_size": 100, "max_position_embeddings": 512,
          "sliding_window": 128, )" +
      fields + "}";
  const Document document = Document::parse(config, Document::Syntax::json, "config.json");
  const Graph graph = graph_from_config(document.root(), "model", {});
  std::vector<std::int64_t> windows;
  for (const Operator& op : graph.operators) {
    if (const auto* attention = std::get_if<Attention>(&op.kind)) {
      windows.push_back(attention->window);
    }
  }
  return windows;
}

TEST(SlidingWindows, OfQwenAreThereWhenAskedFor) {
  using Windows = std::vector<std::int64_t>;
  const std::string experts = R"(, "num_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 24, "shared_expert_intermediate_size": 48)";
  for (const std::string type : {"qwen2", "qwen3", "qwen2_moe", "qwen3_moe"}) {
    std::string model = R"("model_type": ")";
    model.append(type).append("\"").append(experts);
    EXPECT_EQ(windows_of(model), Windows({0, 0, 0, 0})) << type;
    EXPECT_EQ(windows_of(model + R"(, "use_sliding_window": false, "max_window_layers": 2)"),
              Windows({0, 0, 0, 0}))
        << type;
    EXPECT_EQ(windows_of(model + R"(, "use_sliding_window": true, "max_window_layers": 3)"),
              Windows({0, 0, 0, 128}))
        << type;
    EXPECT_EQ(windows_of(model + R"(, "use_sliding_window": true, "layer_types":
                ["sliding_attention", "full_attention", "full_attention", "sliding_attention"])"),
              Windows({128, 0, 0, 128}))
        << type;
    EXPECT_EQ(windows_of(model + R"(, "use_sliding_window": true, "max_window_layers": 9)"),
              Windows({0, 0, 0, 0}))
        << type;
  }
}

}  // namespace
}  // namespace braid
