#include "braid/chip/accelerator/stated_latency.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/base/json.h"
#include "braid/chip/accelerator/accelerator_json.h"

#include "chip/accelerator/templates.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

TEST(StatedLatency, ReadsShapesInAnyOrder) {
  const StatedLatencies read =
      parse_latencies("k,n,m,one_core,all_cores,batch\n64,512,512,,262144,64\n4,3,2,1.5,,1\n", "t");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0], (StatedLatency{{1, 2, 3, 4}, 1.5, std::nullopt}));
  EXPECT_EQ(read[1], (StatedLatency{{64, 512, 512, 64}, std::nullopt, 262144}));
  EXPECT_EQ(find_latency(read, {64, 512, 512, 64}), &read[1]);
  EXPECT_EQ(find_latency(read, {64, 512, 512, 63}), nullptr);
  EXPECT_EQ(find_latency({}, {1, 1, 1, 1}), nullptr);
}

TEST(StatedLatency, RefusesInOneLine) {
  const std::string head = "m,n,k,one_core,all_cores\n";
  const std::pair<std::string, std::string> kBad[] = {
      {"m,n,k,one_core\n1,1,1,1\n", "the column 'all_cores' is missing"},
      {"m,n,k,one_core,all_cores,core\n", "unknown column 'core'"},
      {head + "1,1,1,1,1\n0,1,1,1,1\n", "t:3: m: '0' is no whole number from 1 to 2^40"},
      {head + "1,2.5,1,1,1\n", "t:2: n: '2.5' is no whole number"},
      {head + "1,1,1,0,1\n", "t:2: one_core: '0' is no number of cycles above 0"},
      {head + "1,1,1,1,nan\n", "t:2: all_cores: 'nan' is no number of cycles"},
      {head + "1,1,1,1,inf\n", "t:2: all_cores: 'inf' is no number of cycles"},
      {head + "1,1,1,1,-4\n", "t:2: all_cores: '-4' is no number of cycles"},
      {head + "1,1,1,,\n", "t:2: the row has no cycles"},
      {head + "1,1,1,1,1\n2,1,1,1,1\n1,1,1,2,2\n", "t:4: this shape has a row already"}};
  for (const auto& [text, message] : kBad) {
    try {
      parse_latencies(text, "t");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(message));
    }
  }
}

TEST(StatedLatency, IsPartOfADesignsJson) {
  AcceleratorDesign design;
  design.chip = tpu_v4_template();
  design.latencies = {{{1, 2, 3, 4}, 1.5, std::nullopt}, {{2, 1, 1, 1}, 7, 8}};
  const Document text =
      Document::parse(to_text(to_json(design)), Document::Syntax::json, "design.json");
  EXPECT_EQ(design_from_json(text.root()), design);
}

}  // namespace
}  // namespace braid
