#include "braid/base/document.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/file.h"
#include "braid/base/temporary_folder.h"

#include "base/error_text.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kText = R"({
  "name": "x",
  "count": 8,
  "real": 2.5,
  "whole": 1e3,
  "flag": true,
  "nothing": null,
  "size": "80 GiB",
  "zero": "0 B",
  "stages": [
    {"layers": [1, 2]},
    {"layers": [3, "four"], "dp": -1}
  ]
})";

class DocumentTest : public ::testing::Test {
 public:
  Value root() const { return document_.root(); }

 private:
  Document document_ = Document::parse(kText, Document::Syntax::json, "plan.json");
};

TEST_F(DocumentTest, KeepsTheOrderOfMembers) {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : root().members()) keys.push_back(key);
  EXPECT_THAT(keys, ::testing::ElementsAre("name", "count", "real", "whole", "flag", "nothing",
                                           "size", "zero", "stages"));
}

TEST_F(DocumentTest, KnowsFileLineAndPath) {
  const Where where = root()["stages"][1]["layers"][1].where();
  EXPECT_EQ(where.file, "plan.json");
  EXPECT_EQ(where.line, 12);
  EXPECT_EQ(where.key, "stages[1].layers[1]");
  EXPECT_EQ(root().where().key, "");
  EXPECT_EQ(root().where().line, 1);
  EXPECT_EQ(root()["stages"][1]["tp"].where().key, "stages[1].tp");
  EXPECT_EQ(root()["stages"][1]["tp"].where().line, 12);
}

TEST_F(DocumentTest, TypedReads) {
  EXPECT_EQ(root()["count"].as_int(), 8);
  EXPECT_EQ(root()["count"].as_double(), 8);
  EXPECT_EQ(root()["whole"].as_int(), 1000);
  EXPECT_EQ(root()["real"].as_double_in(0, 3), 2.5);
  EXPECT_EQ(root()["count"].as_int_in(8, 8), 8);
  EXPECT_EQ(root()["size"].as_positive_quantity(Unit::bytes), 80 * 0x1p30);
  EXPECT_EQ(root()["zero"].as_quantity(Unit::bytes), 0);
}

TEST_F(DocumentTest, DefaultsStandForMissingAndNull) {
  EXPECT_EQ(root()["none"].int_or(3), 3);
  EXPECT_EQ(root()["nothing"].int_or(3), 3);
  EXPECT_EQ(root()["count"].int_or(3), 8);
  EXPECT_EQ(root()["none"].string_or("d"), "d");
  EXPECT_TRUE(root()["none"].bool_or(true));
  EXPECT_EQ(root()["real"].double_or(1), 2.5);
  EXPECT_THROW(root()["name"].int_or(3), Error);
}

TEST_F(DocumentTest, MistakesNameFileLineKeyAndRemedy) {
  const auto text = [&](auto read) { return error_text([&] { read(root()); }); };
  EXPECT_EQ(text([](Value r) { r["stages"][0]["dp"].as_int(); }),
            "plan.json:11: stages[0].dp: required key is missing; add it");
  EXPECT_EQ(text([](Value r) { r["stages"][1]["layers"][1].as_int(); }),
            "plan.json:12: stages[1].layers[1]: expected an integer, found 'four'");
  EXPECT_EQ(text([](Value r) { r["count"].as_string(); }),
            "plan.json:3: count: expected a string, found an integer");
  EXPECT_EQ(text([](Value r) { r["real"].as_int(); }),
            "plan.json:4: real: expected an integer, found 2.5");
  EXPECT_EQ(text([](Value r) { r["stages"][1]["dp"].as_int_in(1, 64); }),
            "plan.json:12: stages[1].dp: -1 is out of range; give an integer from 1 to 64");
  EXPECT_EQ(
      text([](Value r) { r["count"].as_quantity(Unit::bytes); }),
      "plan.json:3: count: a size without a unit; write it with its unit, such as \"80 GiB\"");
  EXPECT_EQ(text([](Value r) { r["size"].as_quantity(Unit::seconds); }),
            "plan.json:8: size: '80 GiB' is not a time; write it with its unit, such as \"5 us\"");
  EXPECT_EQ(text([](Value r) { r["zero"].as_positive_quantity(Unit::bytes); }),
            "plan.json:9: zero: a size of zero; give one above zero");
  EXPECT_EQ(text([](Value r) { r["stages"][2].as_int(); }),
            "plan.json:10: stages: expected at least 3 elements, found 2");
  EXPECT_EQ(text([](Value r) { r["name"]["x"].as_int(); }),
            "plan.json:2: name: expected an object, found 'x'");
  EXPECT_EQ(text([](Value r) { r["none"]["x"].as_int(); }),
            "plan.json:1: none: required key is missing; add it");
}

TEST(DocumentQuantities, NobodyBuildsWhatIsOutOfRange) {
  const Document document = Document::parse("a: 1e-300 FLOP/s\nb: 0 FLOP/s\nc: 1 YFLOP/s\n",
                                            Document::Syntax::yaml, "chip.yaml");
  const Value root = document.root();
  EXPECT_EQ(error_text([&] { root["a"].as_quantity(Unit::flops_per_s); }),
            "chip.yaml:1: a: no machine has such a compute rate; give one from 1 kFLOP/s to 1e24 "
            "FLOP/s");
  EXPECT_EQ(root["b"].as_quantity(Unit::flops_per_s), 0);
  EXPECT_THROW(root["c"].as_quantity(Unit::flops_per_s), Error);
}

TEST_F(DocumentTest, EveryReadOfAnotherKindIsAnError) {
  for (const char* key : {"name", "count", "flag", "nothing", "stages", "none"}) {
    const Value value = root()[key];
    if (!value.is_array()) {
      EXPECT_THROW(value.elements(), Error) << key;
      EXPECT_THROW(value.size(), Error) << key;
      EXPECT_THROW(value[std::size_t{0}], Error) << key;
    }
    EXPECT_THROW(value.members(), Error) << key;
    EXPECT_THROW(value["x"], Error) << key;
    EXPECT_THROW(value.expect_only({}), Error) << key;
    EXPECT_THROW(value.as_quantity(Unit::watts), Error) << key;
    if (!value.is_number()) {
      EXPECT_THROW(value.as_double(), Error) << key;
    }
    if (!value.is_string()) {
      EXPECT_THROW(value.as_string(), Error) << key;
    }
    if (value.kind() != Value::Kind::boolean) {
      EXPECT_THROW(value.as_bool(), Error) << key;
    }
  }
}

TEST_F(DocumentTest, ExpectOnlySuggestsTheNearestKey) {
  EXPECT_NO_THROW(root()["stages"][1].expect_only({"dp", "layers"}));
  EXPECT_EQ(error_text([&] {
              root()["stages"][1].expect_only({"layer", "dp"});
            }),
            "plan.json:12: stages[1].layers: unknown key; did you mean 'layer'?");
  EXPECT_THAT(error_text([&] {
                root()["stages"][1].expect_only({"layers", "schedule"});
              }),
              HasSubstr("stages[1].dp: unknown key; known: layers, schedule"));
}

TEST_F(DocumentTest, EmptyKeysAreKeys) {
  const Document document = Document::parse(R"({"": 1})", Document::Syntax::json, "f");
  EXPECT_EQ(document.root()[""].as_int(), 1);
  EXPECT_FALSE(root()[""].exists());
}

TEST(Document, StaysValidWhenMoved) {
  Document first = Document::parse("a: [1, 2]", Document::Syntax::yaml, "f");
  const Value root = first.root();
  const Document second = std::move(first);
  EXPECT_EQ(root["a"][1].as_int(), 2);
  EXPECT_EQ(second.file(), "f");
}

TEST(Document, ChoosesTheSyntaxByTheFileName) {
  const TemporaryFolder folder;
  write_file(folder / "a.yaml", "a: 1\n");
  write_file(folder / "a.json", "a: 1\n");
  EXPECT_EQ(Document::parse_file(folder / "a.yaml").root()["a"].as_int(), 1);
  EXPECT_THROW(Document::parse_file(folder / "a.json"), Error);
  EXPECT_THROW(Document::parse_file(folder / "b.yaml"), Error);
  write_file(folder / "a", " {\n\"a\": 1, }");
  EXPECT_THAT(error_text([&] { Document::parse_file(folder / "a"); }),
              HasSubstr("expected a key in double quotes"));
  write_file(folder / "a", "{a: 1, }");
  EXPECT_EQ(Document::parse_file(folder / "a").root()["a"].as_int(), 1);
}

TEST(Document, FindsPathsAcrossManyNodes) {
  std::string text = "{\"operators\": [";
  for (int i = 0; i < 20000; ++i) {
    text += (i > 0 ? ",\n" : "\n");
    text += R"({"id": "o", "shape": [1, 2, 3]})";
  }
  const Document document = Document::parse(text + "]}", Document::Syntax::json, "f");
  const auto operators = document.root()["operators"].elements();
  ASSERT_EQ(operators.size(), 20000U);
  for (std::size_t i = 0; i < operators.size(); i += 997) {
    const Where where = operators[i]["shape"][2].where();
    EXPECT_EQ(where.key, "operators[" + std::to_string(i) + "].shape[2]");
    EXPECT_EQ(where.line, static_cast<int>(i) + 2);
  }
}

}  // namespace
}  // namespace braid
