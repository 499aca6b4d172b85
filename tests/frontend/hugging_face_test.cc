#include "braid/frontend/hugging_face.h"

#include <string>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/graph/op_work.h"
#include "braid/graph/repeated_layers.h"

#include "support/source_path.h"

namespace braid {
namespace {

struct Published {
  const char* name;
  std::int64_t parameters;
};

/// Counts that the published checkpoints have.
class ParameterCount : public ::testing::TestWithParam<Published> {};

TEST_P(ParameterCount, EqualsThePublishedOne) {
  const Graph graph = load_model(GetParam().name, {});
  EXPECT_EQ(parameter_count(graph), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ParameterCount,
    ::testing::Values(Published{"llama-3-8b", 8030261248}, Published{"llama-3-70b", 70553706496},
                      Published{"llama-3-405b", 405853388800}, Published{"llama-2-7b", 6738415616},
                      Published{"llama-2-13b", 13015864320}, Published{"llama-2-70b", 68976648192},
                      Published{"mistral-7b", 7241732096}, Published{"mixtral-8x7b", 46702792704},
                      Published{"gpt2", 124439808}, Published{"gpt2-xl", 1557611200},
                      Published{"qwen2-7b", 7615616512}, Published{"qwen3-8b", 8190735360}),
    [](const ::testing::TestParamInfo<Published>& model) {
      std::string name = model.param.name;
      for (char& c : name) {
        if (c == '-') c = '_';
      }
      return name;
    });

TEST(Zoo, EveryModelIsAProperGraphOfFewKinds) {
  for (const ZooEntry& entry : zoo_models()) {
    const Graph graph = load_model(entry.name, {});
    EXPECT_NO_THROW(check_graph(graph, entry.name)) << entry.name;
    EXPECT_LE(layer_kind_count(graph), 12) << entry.name;
    EXPECT_FALSE(entry.description.empty()) << entry.name;
  }
  EXPECT_GE(zoo_models().size(), 20u);
}

/// GPT-OSS model card (arXiv:2508.10925), table 1; Mistral AI's and Google's model cards; Kimi K2
/// report (arXiv:2507.20534), table 2.
TEST(Zoo, ExpertModelsNearTheirPublishedSizes) {
  const auto billions = [](const char* name) {
    return static_cast<double>(parameter_count(load_model(name, {.seq_len = 16, .dims = {}}))) /
           1e9;
  };
  EXPECT_NEAR(billions("gpt-oss-120b"), 116.8, 0.5);
  EXPECT_NEAR(billions("mixtral-8x22b"), 140.6, 0.1);
  EXPECT_NEAR(billions("kimi-k2"), 1030, 15);
  EXPECT_NEAR(billions("gemma-3-12b"), 11.8, 0.2);
}

TEST(Zoo, DecodersCanBeCut) {
  const Graph whole = load_model("gpt2", {.seq_len = 16, .dims = {}});
  const Graph cut = load_model("gpt2", {.seq_len = 16, .layers = 3, .dims = {}});
  EXPECT_EQ(cut.layers.size(), 5U);
  EXPECT_LT(parameter_count(cut), parameter_count(whole));
  EXPECT_EQ(load_model("gpt2", {.seq_len = 16, .layers = 1000, .dims = {}}).layers.size(),
            whole.layers.size());
}

TEST(Zoo, GptFamilyNearItsNames) {
  const auto billions = [](const char* name) {
    return static_cast<double>(parameter_count(load_model(name, {}))) / 1e9;
  };
  EXPECT_NEAR(billions("gpt3-175b"), 174.6, 0.2);
  EXPECT_NEAR(billions("megatron-530b"), 529.6, 2);
  EXPECT_NEAR(billions("megatron-1t"), 1008, 3);
  EXPECT_NEAR(billions("megatron-22b"), 22.1, 0.3);
  EXPECT_NEAR(billions("megatron-8.3b"), 8.3, 0.1);
}

TEST(Decoder, TrainingTakesSixFlopsAParameterAndToken) {
  // Kaplan et al. 2020: 6·N for short sequences, embeddings not counted.
  const Graph graph = load_model("llama-3-70b", {.seq_len = 16, .dims = {}});
  double flops = 0;
  for (const Operator& op : graph.operators) {
    flops += forward_model_flops(graph, op) + backward_model_flops(graph, op);
  }
  const double table = 128256.0 * 8192;
  const double expected = 6 * (static_cast<double>(parameter_count(graph)) - table) * 16;
  EXPECT_NEAR(flops / expected, 1, 0.001);
}

TEST(Decoder, ExpertsComputeForTheChosenOnesOnly) {
  // Mixtral's 12.9 B active parameters (Jiang et al. 2024), less the embedding table.
  const Graph graph = load_model("mixtral-8x7b", {.seq_len = 16, .dims = {}});
  double flops = 0;
  for (const Operator& op : graph.operators) {
    flops += forward_model_flops(graph, op) + backward_model_flops(graph, op);
  }
  EXPECT_NEAR(flops / (6.0 * 16 * (12.88e9 - 32000.0 * 4096)), 1, 0.005);
}

std::string refusal_with(const std::string& text, ModelOptions options = {}) {
  const Document document = Document::parse(text, Document::Syntax::json, "config.json");
  try {
    graph_from_config(document.root(), "model", options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string llama(const std::string& change) {
  std::string text =
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
          "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
          "vocab_size": 100, "max_position_embeddings": 32)";
  return text + change + "}";
}

TEST(BadConfig, IsRefusedByTheNameOfTheField) {
  EXPECT_EQ(refusal_with(llama("")), "");
  EXPECT_NE(refusal_with(R"({"model_type": "lama"})").find("llama"), std::string::npos);
  EXPECT_NE(refusal_with(R"({})").find("model_type"), std::string::npos);
  EXPECT_NE(refusal_with(R"({"model_type": "llama"})").find("num_hidden_layers"),
            std::string::npos);
  EXPECT_NE(refusal_with(llama(R"(, "head_dim": 0)")).find("head_dim"), std::string::npos);
  EXPECT_NE(refusal_with(llama(R"(, "head_dim": "8")")).find("head_dim"), std::string::npos);
  EXPECT_NE(refusal_with(llama(R"(, "tie_word_embeddings": 1)")).find("tie_word_embeddings"),
            std::string::npos);
  const auto with = [](const char* from, const char* to) {
    std::string text = llama("");
    text.replace(text.find(from), std::string(from).size(), to);
    return refusal_with(text);
  };
  EXPECT_NE(
      with("\"num_attention_heads\": 4", "\"num_attention_heads\": 5").find("does not divide"),
      std::string::npos);
  EXPECT_NE(
      with("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3").find("does not divide"),
      std::string::npos);
  EXPECT_NE(with("\"hidden_size\": 64", "\"hidden_size\": -64").find("hidden_size"),
            std::string::npos);
  EXPECT_NE(with("\"vocab_size\": 100", "\"vocab_size\": 1e30").find("vocab_size"),
            std::string::npos);
  EXPECT_NE(with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 4000000000")
                .find("num_hidden_layers"),
            std::string::npos);
}

TEST(BadConfig, MoreTokensThanLearnedPositions) {
  const std::string gpt2 =
      R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "n_positions": 16,
          "vocab_size": 10})";
  EXPECT_EQ(refusal_with(gpt2, {.seq_len = 16, .dims = {}}), "");
  EXPECT_NE(refusal_with(gpt2, {.seq_len = 17, .dims = {}}).find("learned positions"),
            std::string::npos);
}

TEST(LoadModel, UnknownNamesAreMetWithTheNearest) {
  try {
    load_model("llama-3-70", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("llama-3-70b"), std::string::npos);
  }
}

TEST(LoadModel, FolderOfAnExample) {
  const Graph graph = load_model(test::source_path("examples/llama-3-70b"), {});
  EXPECT_EQ(graph.name, "llama-3-70b");
  EXPECT_EQ(parameter_count(graph), 70553706496);
  EXPECT_THROW(load_model(test::source_path("examples"), {}), Error);
}

}  // namespace
}  // namespace braid
