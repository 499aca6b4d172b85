#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "braid/base/document.h"

#include "base/error_text.h"

namespace braid {
namespace {

using ::testing::HasSubstr;

Document parse_yaml(std::string_view text) {
  return Document::parse(text, Document::Syntax::yaml, "f.yaml");
}

std::string yaml_refusal(std::string_view text) {
  return error_text([&] { parse_yaml(text); });
}

constexpr std::string_view kChip = R"(# a chip
name: "x1"
peak:
  bf16: 312 TFLOP/s   # dense
levels:
  - {size: 80 GiB, bandwidth: 2.0 TB/s}
  - size: 40 MiB
    bandwidth: 5 TB/s
note: >
  two
  lines
empty:
)";

TEST(YamlReader, ReadsBlocksAndFlows) {
  const Document document = parse_yaml(kChip);
  const Value root = document.root();
  EXPECT_EQ(root.size(), 5U);
  EXPECT_EQ(root["name"].as_string(), "x1");
  EXPECT_EQ(root["peak"]["bf16"].as_quantity(Unit::flops_per_s), 312e12);
  EXPECT_EQ(root["levels"].size(), 2U);
  EXPECT_EQ(root["levels"][1]["size"].as_quantity(Unit::bytes), 40 * 0x1p20);
  EXPECT_EQ(root["note"].as_string(), "two lines\n");
  EXPECT_TRUE(root["empty"].is_null());
  EXPECT_EQ(root["levels"][1]["bandwidth"].where().line, 8);
  EXPECT_EQ(root["levels"][1]["bandwidth"].where().key, "levels[1].bandwidth");
}

TEST(YamlReader, ResolvesPlainScalarsByTheCoreSchema) {
  const auto kind = [](const char* text) { return parse_yaml(text).root().kind(); };
  using Kind = Value::Kind;
  for (const char* text : {"null", "Null", "NULL", "~"}) EXPECT_EQ(kind(text), Kind::null) << text;
  for (const char* text : {"true", "True", "FALSE"}) EXPECT_EQ(kind(text), Kind::boolean) << text;
  for (const char* text : {"0", "-1", "+12", "007", "0o17", "0xfF", "-0"}) {
    EXPECT_EQ(kind(text), Kind::integer) << text;
  }
  for (const char* text : {"1.", ".5", "-.5e3", "1e3", "+1.5E-3", "9223372036854775808"}) {
    EXPECT_EQ(kind(text), Kind::number) << text;
  }
  for (const char* text :
       {"yes",        "no",  "on",  "tRUE", "nULL",     "1_000",  "0b1",  "1:30",
        ".",          "+",   "e3",  "1e",   "0x",       "0o8",    "-0x1", "1.2.3",
        "2024-01-01", "inf", "nan", "'1'",  "\"true\"", "'null'", "''",   "1 2"}) {
    EXPECT_EQ(kind(text), Kind::string) << text;
  }
  EXPECT_EQ(parse_yaml("0o17").root().as_int(), 15);
  EXPECT_EQ(parse_yaml("0xfF").root().as_int(), 255);
  EXPECT_EQ(parse_yaml("+12").root().as_int(), 12);
  EXPECT_EQ(parse_yaml("007").root().as_int(), 7);
  EXPECT_EQ(parse_yaml("-.5e3").root().as_double(), -500);
}

TEST(YamlReader, KeysAreText) {
  const Document document = parse_yaml("8: a\n'b c': 1\ntrue: 2\n");
  EXPECT_EQ(document.root()["8"].as_string(), "a");
  EXPECT_EQ(document.root()["b c"].as_int(), 1);
  EXPECT_EQ(document.root()["true"].as_int(), 2);
}

TEST(YamlReader, ReadsJsonTooWithTheSameMeaning) {
  const std::string_view text = R"({"a": [1, 2.5, "x\n\u0041", true, null], "b": {"c": {}}})";
  const Document yaml = parse_yaml(text);
  const Document json = Document::parse(text, Document::Syntax::json, "f.json");
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(yaml.root()["a"][i].kind(), json.root()["a"][i].kind());
  }
  EXPECT_EQ(yaml.root()["a"][2].as_string(), "x\nA");
  EXPECT_EQ(yaml.root()["b"]["c"].size(), 0U);
}

TEST(YamlReader, RefusesWithFileAndLine) {
  EXPECT_EQ(yaml_refusal("a: 1\nb: 2\na: 3\n"), "f.yaml:3: duplicate key 'a'; keep one of the two");
  EXPECT_THAT(yaml_refusal("a: 1\nb: [1, 2\n"), HasSubstr("f.yaml:"));
  EXPECT_EQ(yaml_refusal("a: 1\n---\nb: 1\n"),
            "f.yaml:2: a second YAML document; keep one document per file");
  EXPECT_THAT(yaml_refusal("a: &x 1\nb: *x\n"),
              HasSubstr("f.yaml:1: YAML anchors are not supported"));
  EXPECT_THAT(yaml_refusal("a: !!int 1\n"), HasSubstr("f.yaml:1: YAML tags are not supported"));
  EXPECT_THAT(yaml_refusal("a: !<x> [1]\n"), HasSubstr("YAML tags are not supported"));
  EXPECT_EQ(yaml_refusal("a: 1\nb: -.inf\n"),
            "f.yaml:2: number '-.inf' is not finite; give a finite one");
  EXPECT_EQ(yaml_refusal("a: .NaN\n"), "f.yaml:1: number '.NaN' is not finite; give a finite one");
  EXPECT_EQ(yaml_refusal("a: 1e400\n"),
            "f.yaml:1: number '1e400' is out of range; give one that a 64-bit number holds");
  EXPECT_EQ(yaml_refusal("a: 0xffffffffffffffffff\n"),
            "f.yaml:1: number '0xffffffffffffffffff' is out of range; give one that a 64-bit "
            "number holds");
  EXPECT_EQ(yaml_refusal("a: 1\nb: \xff\n"), "f.yaml:2: the text is not valid UTF-8");
  EXPECT_EQ(yaml_refusal("a: 1\n\x04 b: 2\n"), "f.yaml:2: control character in a YAML text");
  EXPECT_EQ(yaml_refusal(""), "f.yaml: the file is empty");
  EXPECT_EQ(yaml_refusal("# only\n"), "f.yaml: the file is empty");
  EXPECT_THAT(yaml_refusal("[1]: 2\n"), HasSubstr("a key of a mapping must be plain text"));
  EXPECT_THAT(yaml_refusal("~: 2\n"), HasSubstr("a key of a mapping is empty"));
  EXPECT_THAT(yaml_refusal("a:\n\t- 1\n"), HasSubstr("f.yaml:2"));
}

TEST(YamlReader, RefusesAliasBombs) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
            "]\n";
  }
  EXPECT_THAT(yaml_refusal(text), HasSubstr("anchors are not supported"));
}

TEST(YamlReader, LimitsNesting) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_yaml(nested(200)));
  EXPECT_THAT(yaml_refusal(nested(201)), HasSubstr("nested deeper than 200"));
  for (const char* piece : {"[", "{", "[{", "{a: ", "- ", "? ", ": ", "a: ", "[[],", "!x "}) {
    std::string text;
    for (int i = 0; i < 100000; ++i) text += piece;
    EXPECT_THROW(parse_yaml(text), Error) << piece;
  }
  std::string indented;
  for (std::size_t i = 0; i < 300; ++i) indented += std::string(i, ' ') + "a:\n";
  EXPECT_THAT(yaml_refusal(indented), HasSubstr("nested deeper than 200"));
}

TEST(YamlReader, RefusesHugeTexts) {
  EXPECT_THAT(yaml_refusal(std::string((32U << 20) + 1, ' ')), HasSubstr("larger than 32 MiB"));
}

// Every damaged text either parses or raises an Error; whatever parses can be walked.
void walk(const Value& value) {
  ASSERT_FALSE(value.where().file.empty());
  if (value.is_object()) {
    for (const auto& [key, member] : value.members()) walk(member);
  } else if (value.is_array()) {
    for (const Value& element : value.elements()) walk(element);
  } else if (value.is_number()) {
    ASSERT_TRUE(value.as_double() == value.as_double());
  }
}

TEST(YamlReader, SurvivesDamagedTexts) {
  static constexpr std::string_view kBytes = "{}[]\"',:\\#&*!|>%@`-?~ \n\t0.e\x01\xc3\xa9\xff";
  std::mt19937_64 random(3);
  const auto below = [&](std::size_t limit) { return random() % limit; };
  int taken = 0;
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text(kChip);
    for (std::size_t n = 1 + below(4); n > 0; --n) {
      const std::size_t at = below(text.size());
      switch (below(4)) {
        case 0:
          text[at] = kBytes[below(kBytes.size())];
          break;
        case 1:
          text.erase(at, 1 + below(6));
          break;
        case 2:
          text.insert(at, 1, kBytes[below(kBytes.size())]);
          break;
        default:
          text.insert(at, text.substr(below(text.size()), below(20)));
      }
      if (text.empty()) text = "a";
    }
    SCOPED_TRACE(text);
    try {
      walk(parse_yaml(text).root());
      ++taken;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace braid
