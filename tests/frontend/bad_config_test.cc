// Configs with mistakes: each is refused by the name of its field, and none, however absurd its
// sizes, does harm.

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/hugging_face.h"
#include "braid/graph/graph.h"

namespace braid {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

/// A small proper config: what may not be missing and what may, all of them sizes.
struct Family {
  std::string model_type;
  Fields required, optional;
};

const Fields kLlamaSizes = {{"hidden_size", "64"},        {"intermediate_size", "96"},
                            {"num_attention_heads", "4"}, {"num_hidden_layers", "2"},
                            {"vocab_size", "100"},        {"max_position_embeddings", "32"}};

Fields with(Fields fields, const Fields& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

const Fields kGrouped = {{"num_key_value_heads", "2"}, {"head_dim", "16"}};
const Fields kWindow = {{"sliding_window", "8"}};
const Fields kTopExperts = {{"num_experts_per_tok", "2"}, {"moe_intermediate_size", "24"}};
const Fields kBertSizes = {{"hidden_size", "64"},
                           {"intermediate_size", "96"},
                           {"num_attention_heads", "4"},
                           {"num_hidden_layers", "2"}};
const Fields kLatentSizes = with(kLlamaSizes, {{"kv_lora_rank", "16"},
                                               {"qk_rope_head_dim", "8"},
                                               {"qk_nope_head_dim", "12"},
                                               {"v_head_dim", "10"}});

const std::vector<Family> kFamilies = {
    {"bert",
     with(kBertSizes, {{"vocab_size", "100"}, {"max_position_embeddings", "32"}}),
     {{"type_vocab_size", "2"}}},
    {"deepseek_v3",
     with(kLatentSizes, with(kTopExperts, {{"n_routed_experts", "4"}})),
     {{"q_lora_rank", "24"}, {"moe_layer_freq", "1"}}},
    {"gemma", kLlamaSizes, kGrouped},
    {"gemma2", kLlamaSizes, with(kGrouped, kWindow)},
    {"gemma3_text",
     {{"hidden_size", "64"}, {"intermediate_size", "96"}, {"num_hidden_layers", "2"}},
     with(kGrouped, with(kWindow, {{"num_attention_heads", "4"},
                                   {"vocab_size", "100"},
                                   {"max_position_embeddings", "32"},
                                   {"sliding_window_pattern", "2"}}))},
    {"gpt2",
     {{"n_embd", "64"},
      {"n_head", "4"},
      {"n_layer", "2"},
      {"n_positions", "32"},
      {"vocab_size", "100"}},
     {{"n_inner", "96"}}},
    {"gpt_neox", kLlamaSizes, {}},
    {"llama", kLlamaSizes, kGrouped},
    {"mistral", kLlamaSizes, with(kGrouped, kWindow)},
    {"gpt_oss", with(kLlamaSizes, {{"num_local_experts", "4"}, {"num_experts_per_tok", "2"}}),
     with(kGrouped, kWindow)},
    {"mixtral", with(kLlamaSizes, {{"num_local_experts", "4"}, {"num_experts_per_tok", "2"}}),
     with(kGrouped, kWindow)},
    {"opt",
     {{"hidden_size", "64"},
      {"ffn_dim", "96"},
      {"num_attention_heads", "4"},
      {"num_hidden_layers", "2"},
      {"vocab_size", "100"},
      {"max_position_embeddings", "32"}},
     {{"word_embed_proj_dim", "32"}}},
    {"nemotron_h",
     {{"hidden_size", "64"},
      {"intermediate_size", "96"},
      {"num_attention_heads", "4"},
      {"vocab_size", "100"},
      {"max_position_embeddings", "32"},
      {"hybrid_override_pattern", "\"M*\""},
      {"mamba_num_heads", "4"},
      {"mamba_head_dim", "16"},
      {"ssm_state_size", "8"}},
     {{"num_key_value_heads", "2"},
      {"head_dim", "16"},
      {"n_groups", "2"},
      {"conv_kernel", "4"},
      {"chunk_size", "16"}}},
    {"phi3", kLlamaSizes, with(kGrouped, kWindow)},
    {"qwen2", kLlamaSizes, kGrouped},
    {"qwen2_moe",
     with(kLlamaSizes,
          with(kTopExperts, {{"num_experts", "4"}, {"shared_expert_intermediate_size", "48"}})),
     with(kGrouped, {{"decoder_sparse_step", "1"}})},
    {"qwen3", kLlamaSizes, kGrouped},
    {"qwen3_moe", with(kLlamaSizes, with(kTopExperts, {{"num_experts", "4"}})),
     with(kGrouped, {{"decoder_sparse_step", "1"}})},
    {"t5",
     {{"d_model", "64"},
      {"d_kv", "16"},
      {"d_ff", "96"},
      {"num_heads", "4"},
      {"num_layers", "2"},
      {"vocab_size", "100"}},
     {{"num_decoder_layers", "2"}, {"n_positions", "32"}, {"relative_attention_num_buckets", "8"}}},
    {"vit",
     kBertSizes,
     {{"image_size", "32"}, {"patch_size", "8"}, {"num_channels", "3"}, {"num_labels", "5"}}},
};

std::string text_of(const std::string& model_type, const Fields& fields) {
  std::string text = R"({"model_type": ")" + model_type + "\"";
  for (const auto& [key, value] : fields)
    text.append(", \"").append(key).append("\": ").append(value);
  return text + "}";
}

/// What is wrong with a config; empty when it makes a proper graph.
std::string refusal_of(const std::string& text) {
  const Document document = Document::parse(text, Document::Syntax::json, "config.json");
  try {
    const Graph graph = graph_from_config(document.root(), "model", {});
    check_graph(graph, "config.json");
    EXPECT_GT(parameter_count(graph), 0);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(BadConfigs, TheProperOnesAreAccepted) {
  for (const Family& family : kFamilies) {
    EXPECT_EQ(refusal_of(text_of(family.model_type, family.required)), "") << family.model_type;
    EXPECT_EQ(refusal_of(text_of(family.model_type, with(family.required, family.optional))), "")
        << family.model_type;
  }
}

TEST(BadConfigs, MissingSizesAreNamed) {
  for (const Family& family : kFamilies) {
    for (std::size_t i = 0; i < family.required.size(); ++i) {
      Fields fields = family.required;
      fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(i));
      const std::string refusal = refusal_of(text_of(family.model_type, fields));
      EXPECT_NE(refusal.find(family.required[i].first), std::string::npos)
          << family.model_type << ": " << refusal;
    }
    // What may be missing may be null.
    Fields nulls = family.required;
    for (const auto& [key, value] : family.optional) nulls.emplace_back(key, "null");
    EXPECT_EQ(refusal_of(text_of(family.model_type, nulls)), "") << family.model_type;
  }
}

TEST(BadConfigs, WrongTypesAndAbsurdSizesAreNamed) {
  for (const Family& family : kFamilies) {
    const Fields all = with(family.required, family.optional);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (const char* wrong : {"\"8\"", "[8]", "{}", "true", "1.5", "0", "-8", "1e30",
                                "9223372036854775807", "1000000000"}) {
        Fields fields = all;
        fields[i].second = wrong;
        const std::string refusal = refusal_of(text_of(family.model_type, fields));
        EXPECT_NE(refusal.find(all[i].first), std::string::npos)
            << family.model_type << " " << all[i].first << ": " << wrong << ": " << refusal;
        EXPECT_NE(refusal.find("config.json:1"), std::string::npos) << refusal;
      }
    }
  }
}

TEST(BadConfigs, NoCombinationOfSizesDoesHarm) {
  std::mt19937_64 random(7);
  const std::vector<std::string> sizes = {"1",    "2",     "3",       "8",        "24",
                                          "4096", "65537", "8388608", "16777215", "16777216"};
  int accepted = 0;
  for (const Family& family : kFamilies) {
    for (int trial = 0; trial < 200; ++trial) {
      Fields fields = with(family.required, family.optional);
      const bool all = random() % 2 == 0;
      for (auto& [key, value] : fields) {
        if (key.find("layers") != std::string::npos || key == "n_layer") continue;
        if (all || random() % 4 == 0) value = sizes[random() % sizes.size()];
      }
      if (refusal_of(text_of(family.model_type, fields)).empty()) ++accepted;
    }
  }
  EXPECT_GT(accepted, 500);
}

TEST(BadConfigs, UnknownArchitecturesSayWhatIsKnown) {
  for (const char* text :
       {R"({"model_type": "mt5"})", R"({"architectures": ["LlamaForCausalLM"]})",
        R"({"model_type": null})", R"({"model_type": "llava", "text_config": {"vocab_size": 8}})",
        R"({"model_type": "llava", "text_config": {"model_type": "unheard_of"}})",
        R"({"model_type": "llava", "text_config": null})"}) {
    const std::string refusal = refusal_of(text);
    EXPECT_NE(refusal.find("model_type"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("known: bert, "), std::string::npos) << refusal;
  }
  const std::string inside =
      refusal_of(R"({"model_type": "llava", "text_config": {"model_type": "llama"}})");
  EXPECT_NE(inside.find("text_config.num_hidden_layers"), std::string::npos) << inside;
  for (const char* wrong : {"[]", "7", "\"llama\""}) {
    EXPECT_NE(refusal_of(std::string(R"({"model_type": "llava", "text_config": )") + wrong + "}"),
              "");
  }
}

struct Mistake {
  const char* model_type;
  const char* key;
  const char* value;
  const char* complaint;
};

TEST(BadConfigs, MistakesBetweenFieldsAreNamed) {
  const Mistake mistakes[] = {
      {"bert", "num_attention_heads", "5", "does not divide"},
      {"bert", "hidden_dropout_prob", "1.5", "hidden_dropout_prob"},
      {"deepseek_v3", "num_experts_per_tok", "5", "num_experts_per_tok"},
      {"deepseek_v3", "first_k_dense_replace", "-1", "first_k_dense_replace"},
      {"deepseek_v3", "n_shared_experts", "16000000", "too wide"},
      {"deepseek_v3", "v_head_dim", "16000000", "wider"},
      {"deepseek_v3", "qk_nope_head_dim", "16000000", "wider"},
      {"gemma", "head_dim", "16000000", "wider"},
      {"gemma2", "layer_types", R"(["full_attention"])", "1 types for 2 layers"},
      {"gemma2", "layer_types", R"(["full_attention", "linear_attention"])", "linear_attention"},
      {"gemma2", "layer_types", "3", "layer_types"},
      {"gpt2", "n_head", "5", "does not divide"},
      {"gpt2", "resid_pdrop", "-0.1", "resid_pdrop"},
      {"gpt_neox", "num_attention_heads", "5", "does not divide"},
      {"gpt_neox", "rotary_pct", "2", "rotary_pct"},
      {"gpt_neox", "use_parallel_residual", "1", "use_parallel_residual"},
      {"llama", "num_key_value_heads", "3", "does not divide"},
      {"mixtral", "num_experts_per_tok", "5", "num_experts_per_tok"},
      {"nemotron_h", "n_groups", "3", "does not divide"},
      {"nemotron_h", "hybrid_override_pattern", "\"MX\"", "no kind of layer"},
      {"opt", "num_attention_heads", "5", "does not divide"},
      {"opt", "activation_function", "7", "activation_function"},
      {"phi3", "partial_rotary_factor", "-1", "partial_rotary_factor"},
      {"qwen2_moe", "mlp_only_layers", "[2]", "mlp_only_layers"},
      {"qwen2_moe", "mlp_only_layers", "1", "mlp_only_layers"},
      {"qwen3_moe", "num_experts_per_tok", "5", "num_experts_per_tok"},
      {"t5", "feed_forward_proj", "\"gated-maxout\"", "gated-maxout"},
      {"t5", "d_kv", "16000000", "wider"},
      {"vit", "patch_size", "5", "does not divide"},
      {"vit", "patch_size", "64", "patch_size"},
      {"vit", "num_attention_heads", "5", "does not divide"},
  };
  for (const Mistake& mistake : mistakes) {
    for (const Family& family : kFamilies) {
      if (family.model_type != mistake.model_type) continue;
      Fields fields;
      for (const auto& field : with(family.required, family.optional)) {
        if (field.first == "head_dim" && std::string(mistake.key) != "head_dim") continue;
        if (field.first != mistake.key) fields.push_back(field);
      }
      fields.emplace_back(mistake.key, mistake.value);
      const std::string refusal = refusal_of(text_of(family.model_type, fields));
      EXPECT_NE(refusal.find(mistake.complaint), std::string::npos)
          << mistake.model_type << " " << mistake.key << ": " << refusal;
      EXPECT_NE(refusal.find(mistake.key), std::string::npos) << refusal;
    }
  }
}

}  // namespace
}  // namespace braid
