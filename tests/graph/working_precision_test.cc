#include "braid/graph/working_precision.h"

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(WorkingPrecision, ChangesWhatTheFileStoredWide) {
  Graph graph;
  const auto add = [&](Dtype dtype, bool is_parameter) {
    graph.tensors.push_back(
        {.name = "t", .dims = {2}, .dtype = dtype, .is_parameter = is_parameter, .producer = -1});
  };
  add(Dtype::f32, false);
  add(Dtype::f64, true);
  add(Dtype::bf16, true);
  add(Dtype::f8, true);
  add(Dtype::i64, false);
  add(Dtype::boolean, false);
  set_working_precision(graph, Dtype::bf16, Dtype::f16);
  EXPECT_EQ(graph.tensors[0].dtype, Dtype::bf16);
  EXPECT_EQ(graph.tensors[1].dtype, Dtype::f16);
  EXPECT_EQ(graph.tensors[2].dtype, Dtype::f16);
  EXPECT_EQ(graph.tensors[3].dtype, Dtype::f8);
  EXPECT_EQ(graph.tensors[4].dtype, Dtype::i64);
  EXPECT_EQ(graph.tensors[5].dtype, Dtype::boolean);
}

}  // namespace
}  // namespace braid
