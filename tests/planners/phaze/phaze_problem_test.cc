#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/planners/phaze/problem.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGood = R"({
  "maxMemoryPerDevice": 1000, "maxDevices": 8, "bandwidth": 4, "mbsInBatch": 16.0,
  "activationRecomputation": true, "optimizerAlgorithm": "Adam",
  "nodes": {"1": [
    {"id": 5, "parameterSize": 2, "activationSize": 3, "isTensorParallelized": false,
     "optimalLatencyFw": 1500, "optimalLatencyBw": 2000},
    {"id": -1, "parameterSize": 4, "activationSize": 6, "isTensorParallelized": true,
     "optimalLatencyFw": 250, "optimalLatencyBw": 500}]},
  "edges": {"1": [{"sourceId": -1, "destId": 5, "communicationCost": 7},
                  {"sourceId": -1, "destId": 5, "communicationCost": 9}]}
})";

PhazeProblem read(const std::string& text, const PhazeReading& reading = {}) {
  return read_phaze(Document::parse(text, Document::Syntax::json, "phaze.json").root(), reading);
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(PhazeProblem, IsReadInTopologicalOrderAndSeconds) {
  const PhazeProblem problem = read(kGood);
  EXPECT_EQ(problem.names, (std::vector<std::string>{"-1", "5"}));
  EXPECT_EQ(problem.micro_batches, 16);
  EXPECT_EQ(problem.optimizer_bytes_per_weight_byte, 1);
  ASSERT_EQ(problem.widths.size(), 1U);
  const PhazeWidth& width = problem.widths.front();
  EXPECT_DOUBLE_EQ(width.layers[0].forward_s, 0.25);
  EXPECT_DOUBLE_EQ(width.layers[1].backward_s, 2);
  EXPECT_TRUE(width.layers[0].tensor_parallel);
  EXPECT_EQ(width.edge_bytes, std::vector<double>{16});
  EXPECT_FALSE(problem.expert.has_value());
}

TEST(PhazeProblem, CanBeReadAsTheProgramDoes) {
  const PhazeProblem problem = read(kGood, {.latency_unit_s = 1, .last_tensor_only = true});
  EXPECT_EQ(problem.widths.front().edge_bytes, std::vector<double>{9});
  EXPECT_DOUBLE_EQ(problem.widths.front().layers[0].forward_s, 250);
}

TEST(PhazeProblem, MistakesAreNamed) {
  EXPECT_THAT(complaint(with("\"maxDevices\": 8", "\"maxDevices\": 0")), HasSubstr("maxDevices"));
  EXPECT_THAT(complaint(with("\"mbsInBatch\": 16.0", "\"mbsInBatch\": 16.5")),
              HasSubstr("mbsInBatch"));
  EXPECT_THAT(complaint(with("\"bandwidth\": 4", "\"bandwidth\": 0")), HasSubstr("bandwidth"));
  EXPECT_THAT(complaint(with("1500", "-1")), HasSubstr("optimalLatencyFw"));
  EXPECT_THAT(complaint(with("\"id\": 5", "\"id\": -1")), HasSubstr("another layer -1"));
  EXPECT_THAT(complaint(with("\"destId\": 5", "\"destId\": 6")), HasSubstr("no layer 6"));
  EXPECT_THAT(complaint(with("\"sourceId\": -1, \"destId\": 5", "\"sourceId\": 5, \"destId\": 5")),
              HasSubstr("cycle"));
  EXPECT_THAT(complaint(with("\"sourceId\": -1, \"destId\": 5", "\"sourceId\": 5, \"destId\": -1")),
              HasSubstr("cycle"));
  EXPECT_THAT(complaint(with("Adam", "Lamb")), HasSubstr("unknown optimizer 'Lamb'"));
  EXPECT_THAT(complaint(with("\"nodes\": {\"1\"", "\"nodes\": {\"one\"")),
              HasSubstr("no tensor-parallel width"));
  EXPECT_THAT(complaint(with("\"edges\": {\"1\"", "\"edges\": {\"2\"")), HasSubstr("missing"));
  EXPECT_THAT(complaint(with("\"parameterSize\": 2, ", "")), HasSubstr("parameterSize"));
}

}  // namespace
}  // namespace braid
