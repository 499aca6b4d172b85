#include "braid/frontend/resnet.h"

#include <gtest/gtest.h>

#include "braid/graph/repeated_layers.h"

#include "frontend/zoo_figures.h"

namespace braid {
namespace {

const char* const kSmallResnet = R"({"model_type": "resnet", "embedding_size": 64,
    "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2], "layer_type": "basic",
    "num_labels": 1000})";

TEST(Resnet, FiftyLayersAsPublished) {
  // torchvision's resnet50: 25,557,032 parameters, 4.089 G multiply-adds for an image.
  const Graph graph = load_model("resnet-50", {});
  EXPECT_EQ(parameter_count(graph), 25557032);
  EXPECT_NEAR(forward_flops(graph) / 2, 4.089e9, 0.001e9);
  EXPECT_EQ(graph.layers.size(), 18u);  // Stem, 3 + 4 + 6 + 3 blocks, head.
  EXPECT_EQ(graph.seq_len, 0);
}

TEST(Resnet, OtherDepthsAsPublished) {
  // torchvision's resnet18, resnet34, resnet101 and resnet152.
  const std::string small = kSmallResnet;
  EXPECT_EQ(parameter_count(graph_of(small)), 11689512);
  EXPECT_NEAR(forward_flops(graph_of(small)) / 2, 1.814e9, 0.001e9);
  EXPECT_EQ(parameter_count(graph_of(replaced(small, "[2, 2, 2, 2]", "[3, 4, 6, 3]"))), 21797672);
  const std::string deep = replaced(
      replaced(small, "[64, 128, 256, 512]", "[256, 512, 1024, 2048]"), "basic", "bottleneck");
  EXPECT_EQ(parameter_count(graph_of(replaced(deep, "[2, 2, 2, 2]", "[3, 4, 23, 3]"))), 44549160);
  EXPECT_EQ(parameter_count(graph_of(replaced(deep, "[2, 2, 2, 2]", "[3, 8, 36, 3]"))), 60192808);
}

TEST(Resnet, StrideInTheFirstConvolutionSavesWorkOnly) {
  // He et al. 2016 count 3.8 G multiply-adds for their variant.
  std::string v1 = R"({"model_type": "resnet", "embedding_size": 64, "num_labels": 1000,
      "hidden_sizes": [256, 512, 1024, 2048], "depths": [3, 4, 6, 3],
      "downsample_in_bottleneck": true})";
  EXPECT_EQ(parameter_count(graph_of(v1)), 25557032);
  EXPECT_NEAR(forward_flops(graph_of(v1)) / 2, 3.8e9, 0.07e9);
}

TEST(Resnet, WorkGrowsWithTheImage) {
  const Graph small = graph_of(kSmallResnet);
  const Graph large = graph_of(replaced(kSmallResnet, "{", R"({"image_size": 448, )"));
  EXPECT_EQ(parameter_count(large), parameter_count(small));
  EXPECT_NEAR(forward_flops(large) / forward_flops(small), 4, 0.01);
}

TEST(Resnet, LabelsMayBeCounted) {
  const std::string named = replaced(kSmallResnet, R"("num_labels": 1000)",
                                     R"("id2label": {"0": "cat", "1": "dog", "2": "hen"})");
  EXPECT_EQ(parameter_count(graph_of(kSmallResnet)) - parameter_count(graph_of(named)), 997 * 513);
}

TEST(Resnet, BadConfigsAreRefusedByTheNameOfTheField) {
  const auto refused_for = [](const std::string& from, const std::string& to) {
    return refusal_of_config(replaced(kSmallResnet, from, to));
  };
  EXPECT_EQ(refusal_of_config(kSmallResnet), "");
  const auto expect_named = [](const std::string& refusal, const std::string& field) {
    EXPECT_NE(refusal.find(field), std::string::npos) << refusal;
  };
  expect_named(refused_for(R"("embedding_size": 64,)", ""), "embedding_size");
  expect_named(refused_for(R"("num_labels": 1000)", R"("num_labels": 0)"), "num_labels");
  expect_named(refused_for(R"("num_labels": 1000)", R"("image_size": 224)"), "num_labels");
  expect_named(refused_for("[2, 2, 2, 2]", "[2, 2, 2]"), "depths");
  expect_named(refused_for("[2, 2, 2, 2]", "[2, 2, 0, 2]"), "depths");
  expect_named(refused_for("[2, 2, 2, 2]", "[90000, 90000, 2, 2]"), "depths");
  expect_named(refused_for("[2, 2, 2, 2]", "2"), "depths");
  expect_named(refused_for("[64, 128, 256, 512]", "[]"), "hidden_sizes");
  expect_named(refused_for("[64, 128, 256, 512]", "[64, 128, 256, 1e12]"), "hidden_sizes");
  expect_named(refused_for("basic", "wide"), "layer_type");
  expect_named(refused_for(R"("num_labels": 1000)", R"("num_labels": 10, "image_size": 1e9)"),
               "image_size");
  const std::string odd = replaced(kSmallResnet, "basic", "bottleneck");
  expect_named(refusal_of_config(replaced(odd, "512]", "510]")), "bottleneck");
  expect_named(refusal_of_config(kSmallResnet, {.seq_len = 128, .dims = {}}), "--seq-len");
}

}  // namespace
}  // namespace braid
