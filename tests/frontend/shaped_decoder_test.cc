#include "braid/frontend/shaped_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/graph/graph_json.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

/// The sizes of a decoder of the zoo are its graph: operator for operator.
void expect_same_graph(const std::string& model) {
  Graph known = load_model(model, {.seq_len = 1024, .dims = {}});
  ASSERT_TRUE(known.shape.has_value()) << model;
  Graph shaped = graph_of_shape(*known.shape, {.file = model, .seq_len = 1024});
  known.name = shaped.name = "";
  EXPECT_TRUE(to_json_text(shaped) == to_json_text(known)) << model;
}

TEST(ShapedDecoder, IsTheGraphOfTheConfig) {
  for (const char* model : {"gpt2",
                            "gpt3-175b",
                            "llama-3-8b",
                            "llama-2-7b",
                            "qwen3-30b-a3b",
                            "qwen3-8b",
                            "qwen2-7b",
                            "phi-3-mini",
                            "mixtral-8x7b",
                            "deepseek-v3",
                            "deepseek-v2",
                            "deepseek-v3-mtp",
                            "gpt-oss-120b",
                            "gemma-3-1b",
                            "gemma-2-9b",
                            "gpt-neox-20b",
                            "nemotron-h-8b",
                            "nemotron-h-56b",
                            "nemotron-3-nano",
                            "nemotron-3-super",
                            "nemotron-3-super-mtp",
                            "nemotron-3.5-lightning-mtp"}) {
    expect_same_graph(model);
  }
}

std::string refusal_of(const ModelShape& shape, std::int64_t seq_len = 128) {
  try {
    graph_of_shape(shape, {.file = "train.sh", .seq_len = seq_len});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ShapedDecoder, RefusesSizesThatMakeNoModel) {
  ModelShape shape;
  shape.blocks = 2;
  shape.hidden = 64;
  shape.heads = shape.kv_heads = 4;
  shape.head_dim = 16;
  shape.inner = 256;
  shape.vocab = 1000;
  EXPECT_EQ(refusal_of(shape), "");
  EXPECT_THAT(refusal_of(shape, 0), HasSubstr("train.sh: says no sequence length"));
  ModelShape other = shape;
  other.vocab = 0;
  EXPECT_THAT(refusal_of(other), HasSubstr("says no size of the vocabulary"));
  other = shape;
  other.kv_heads = 3;
  EXPECT_THAT(refusal_of(other), HasSubstr("do not divide"));
  other = shape;
  other.head_dim = std::int64_t{1} << 40;
  EXPECT_THAT(refusal_of(other), HasSubstr("is too large"));
  other = shape;
  other.positions = 64;
  EXPECT_THAT(refusal_of(other), HasSubstr("sequence length 128 is too large"));
  other = shape;
  other.mtp_modules = 1000;
  EXPECT_THAT(refusal_of(other), HasSubstr("1000 tokens beyond the next one"));
  other = shape;
  other.latent_attention = true;
  other.qk_dim = 24;
  EXPECT_THAT(refusal_of(other), HasSubstr("says no rank of keys and values"));
  ModelShape hybrid = shape;
  hybrid.layer_pattern = "M*";
  EXPECT_THAT(refusal_of(hybrid), HasSubstr("says no number of state-space heads"));
  hybrid.state_heads = 8;
  hybrid.state_head_dim = hybrid.state_size = 16;
  hybrid.state_groups = 2;
  EXPECT_EQ(refusal_of(hybrid), "");
  hybrid.state_groups = 3;
  EXPECT_THAT(refusal_of(hybrid), HasSubstr("3 state-space groups do not divide 8 heads"));
  hybrid.layer_pattern = "G*";
  EXPECT_THAT(refusal_of(hybrid), HasSubstr("layers of kind 'G', which are not modelled"));
  hybrid.layer_pattern = "EE";
  EXPECT_THAT(refusal_of(hybrid), HasSubstr("says no number of experts"));
  hybrid.layer_pattern = "***";
  EXPECT_THAT(refusal_of(hybrid), HasSubstr("3 layers in the pattern, 2 said otherwise"));
}

}  // namespace
}  // namespace braid
