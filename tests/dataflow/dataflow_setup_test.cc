#include "braid/dataflow/dataflow_setup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/dataflow/text_proto.h"

#include "dataflow/small_setup.h"

namespace braid {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_dataflow_setup(text, "setup.txt");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(DataflowSetup, ReadsWhatIsWritten) {
  const DataflowSetup setup = parse_dataflow_setup(small_setup_text(), "setup.txt");
  ASSERT_EQ(setup.graph.kernels.size(), 4U);
  const Kernel& up = setup.graph.kernels[0];
  EXPECT_EQ(up.name, "up");
  EXPECT_TRUE(up.matrix && up.weights && !up.backward);
  EXPECT_EQ(up.m, 4096);
  EXPECT_EQ(up.k, 1024);
  EXPECT_EQ(up.n, 512);
  EXPECT_EQ(up.tiled, KernelDim::n);
  EXPECT_FALSE(setup.graph.kernels[1].matrix);
  EXPECT_EQ(setup.graph.kernels[1].k, 1);
  EXPECT_EQ(setup.graph.tensors, (std::vector<KernelTensor>{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(setup.chips, 4);
  EXPECT_DOUBLE_EQ(peak_flops_per_s(setup.chip), 2.0 * 64 * 32 * 8 * 1e9);
  EXPECT_DOUBLE_EQ(setup.chip.dram_bytes_per_s, 200e9);
  ASSERT_EQ(setup.fabric.dimensions.size(), 1U);
  EXPECT_EQ(setup.fabric.dimensions[0],
            (FabricDimension{FabricShape::ring, 4, 50e9, FabricRole::tensor}));
  EXPECT_EQ(setup.job.layers, 12);
  EXPECT_EQ(setup.rules, dfmodel_rules(PartitionOverlap::all));
  EXPECT_EQ(setup.most_partitions, 4);
}

TEST(DataflowSetup, GraphsOfSeveralLayersAreTheWholeModel) {
  const auto with = [](const std::string& count) {
    return parse_dataflow_setup(
        replaced(small_setup_text(), "num_layer: 12", "num_layer: 12 num_layer_in_graph: " + count),
        "setup.txt");
  };
  EXPECT_FALSE(parse_dataflow_setup(small_setup_text(), "setup.txt").job.whole_model);
  EXPECT_FALSE(with("1").job.whole_model);
  EXPECT_TRUE(with("12").job.whole_model);
}

TEST(DataflowSetup, OldNamesAndAFreeSize) {
  const std::string text = replaced(replaced(small_setup_text(), "execution {", "miscellany {"),
                                    "r { x: 4 link_bw_x: 50.0 par_x: \"TP\" }",
                                    "r_fc { x: 2 link_bw_x: 50 link_bw_y: 25 par_y: 'DP' }");
  const DataflowSetup setup = parse_dataflow_setup(text, "setup.txt");
  ASSERT_EQ(setup.fabric.dimensions.size(), 2U);
  EXPECT_EQ(setup.fabric.dimensions[1],
            (FabricDimension{FabricShape::fully_connected, 2, 25e9, FabricRole::data}));
}

TEST(DataflowSetup, BadInputHasOneLineWithPlaceAndKey) {
  const std::string good = small_setup_text();
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"K: 1024", "K: 0",
       "setup.txt:4: dataflow_graph.kernels[0].gemm_input1_weight.K: 0 is not in"},
      {"K: 1024", "K: 1.5", "gemm_input1_weight.K: expected an integer"},
      {"K: 1024", "", "gemm_input1_weight.K: missing key"},
      {"K: 1024", "K: 1024 K: 2", "given again"},
      {"K: 1024", "K: \"1024\"", "expected a number"},
      {"K: 1024", "K: 1e400", "expected a number"},
      {"K: 1024", "K: nan", "expected a number"},
      {"N_TILING", "N_TILLING", "did you mean 'N_TILING'?"},
      {"type: SYSTOLIC", "type: SIMD", "SIMD kernels are elementwise"},
      {"tiling", "tilling", "unknown key; did you mean 'tiling'?"},
      {"id: 2", "id: 3", "kernels are not numbered"},
      {"endIdx: 4", "endIdx: 5", "connections[2].endIdx: 5 is not in [1, 4]"},
      {"startIdx: 3 endIdx: 4", "startIdx: 3 endIdx: 1", "form a cycle"},
      {"startIdx: 3 endIdx: 4", "startIdx: 3 endIdx: 3", "reads its own output"},
      {"fwd_bwd: FWD", "fwd_bwd: BWD", "correct fwd_bwd"},
      {"num_chip: 4", "num_chip: 6", "do not multiply to the 6 chips"},
      {"num_chip: 4", "num_chip: 2", "more than the 2 chips"},
      {"core: 64", "core: 0", "system.accelerator.core: 0 is not in"},
      {"core: 64", "core: 1e15", "is not in"},
      {"par_x: \"TP\"", "par_x: \"XP\"", "unknown role 'XP'"},
      {"  r {", "  hypercube {", "unknown network"},
      {"dram_cap: 1e11", "dram_cap: -1", "dram_cap: -1 is not in"},
      {"dram_cap: 1e11", "dram_cap: 1e11 second_dram_cap: 5", "go together"},
      {"llm {", "gan {", "unknown workload"},
      {"DATAFLOW", "DATAFLOWS", "did you mean 'DATAFLOW'?"},
      {"word: 2", "word: 0", "execution.word: 0 is not in"},
      {"compute_util: 0.9", "compute_util: 2", "compute_util: 2 is not in"},
      {"tile_size: 1 }", "tile_size: 1", "is not closed"},
      {"gurobi { thread: 8 gap: 0.001 time: 60 }", "}", "'}' closes nothing"},
      {"name: \"up\"", "name: \"up", "does not end on its line"},
      {"name: \"up\"", "name \"up\"", "expected ':' or '{'"},
      {"name: \"up\"", "name: \"u\\x\"", "strings with '\\' are not read"},
      {"system {", "sistem {", "system: missing key"},
      {"M: 4096", "M: 1099511627776 outer: 2 ", "given again"},
      {"M: 4096 K: 1024", "M: 1099511627776 K: 1099511627776", "above 2^62"},
      {"global_batch_size: 32", "global_batch_size: 0", "global_batch_size: 0 is not in"},
  };
  for (const auto& [from, to, message] : cases) {
    const std::string text = replaced(good, from, to);
    ASSERT_NE(text, good) << from;
    const std::string error = error_of(text);
    EXPECT_THAT(error, ::testing::HasSubstr(message)) << from << " -> " << to;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_THAT(error_of(""), ::testing::HasSubstr("dataflow_graph: missing key"));
}

TEST(DataflowSetup, EveryPrefixIsAnErrorOrASetup) {
  const std::string text = small_setup_text();
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_NO_FATAL_FAILURE(error_of(text.substr(0, length)));
  }
}

TEST(TextProto, DeepNestingIsAnError) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "a{";
  EXPECT_THROW(parse_text_proto(text, "deep"), Error);
}

TEST(TextProto, KeepsOrderAndLines) {
  const ProtoField root = parse_text_proto("a: 1 # one\nb { c: 'x, y'; }\na: -2.5e3", "f");
  ASSERT_EQ(root.fields.size(), 3U);
  EXPECT_EQ(root.fields[0].scalar, "1");
  EXPECT_EQ(root.fields[1].fields[0].scalar, "x, y");
  EXPECT_EQ(root.fields[1].line, 2);
  EXPECT_EQ(root.fields[2].scalar, "-2.5e3");
  EXPECT_EQ(root.fields[2].line, 3);
}

}  // namespace
}  // namespace braid
