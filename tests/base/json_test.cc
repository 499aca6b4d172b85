#include "braid/base/json.h"

#include <bit>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "braid/base/document.h"

namespace braid {
namespace {

TEST(ToText, KeepsOrderAndPutsFlatArraysOnOneLine) {
  Json json;
  json["z"] = 1;
  json["a"] = {1, 2.0, "x", true, nullptr};
  json["matrix"] = {{1, 2}, {3, 4}};
  json["empty"] = Json::array();
  json["none"] = Json::object();
  json["object"]["inner"] = false;
  EXPECT_EQ(to_text(json), R"({
  "z": 1,
  "a": [1, 2.0, "x", true, null],
  "matrix": [
    [1, 2],
    [3, 4]
  ],
  "empty": [],
  "none": {},
  "object": {
    "inner": false
  }
}
)");
}

TEST(ToText, EscapesStringsAndMendsBrokenUtf8) {
  EXPECT_EQ(to_text(Json("a\"\\\n\x01é")), "\"a\\\"\\\\\\n\\u0001é\"\n");
  Json json;
  json["k\xff"] = "v\xff";
  EXPECT_NO_THROW(Document::parse(to_text(json), Document::Syntax::json, "f"));
}

TEST(ToText, DoublesReadBackExactly) {
  std::mt19937_64 random(5);
  Json json = Json::array();
  std::vector<double> values = {
      0.0, -0.0, 1.0, 0.1, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 123456789012345680.0};
  while (values.size() < 5000) {
    const double value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) json.push_back(value);
  const Document document = Document::parse(to_text(json), Document::Syntax::json, "f");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value value = document.root()[i];
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value.as_double()),
              std::bit_cast<std::uint64_t>(values[i]));
    EXPECT_EQ(value.kind(), Value::Kind::number);
  }
}

TEST(ToText, IntegersReadBackExactly) {
  const Json json = {INT64_MIN, INT64_MAX, 0, std::uint64_t{7}};
  EXPECT_EQ(to_text(json), "[-9223372036854775808, 9223372036854775807, 0, 7]\n");
}

}  // namespace
}  // namespace braid
