#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "braid/base/document.h"

#include "base/error_text.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Document parse_json(std::string_view text) {
  return Document::parse(text, Document::Syntax::json, "f.json");
}

std::string json_refusal(std::string_view text) {
  return error_text([&] { parse_json(text); });
}

TEST(JsonReader, ReadsEveryKind) {
  const Document document =
      parse_json(R"({"a": [1, -2.5e1, "x", true, false, null, {}, []], "b": {}})");
  const Value a = document.root()["a"];
  ASSERT_EQ(a.size(), 8U);
  EXPECT_EQ(a[0].as_int(), 1);
  EXPECT_EQ(a[1].as_double(), -25);
  EXPECT_EQ(a[2].as_string(), "x");
  EXPECT_TRUE(a[3].as_bool());
  EXPECT_FALSE(a[4].as_bool());
  EXPECT_TRUE(a[5].is_null());
  EXPECT_TRUE(a[6].is_object());
  EXPECT_EQ(a[7].size(), 0U);
  EXPECT_EQ(parse_json(" 7 ").root().as_int(), 7);
  EXPECT_EQ(parse_json("\xef\xbb\xbf[1]").root().size(), 1U);
}

TEST(JsonReader, ReplacesEscapes) {
  EXPECT_EQ(parse_json(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00 z")").root().as_string(),
            "\"\\/\b\f\n\r\tAé€😀 z");
  EXPECT_EQ(parse_json(R"({"\u0061b": 1})").root()["ab"].as_int(), 1);
  EXPECT_EQ(parse_json(R"("a\u0000b")").root().as_string(), std::string_view("a\0b", 3));
}

TEST(JsonReader, IntegersAreExactAndLargerOnesNumbers) {
  EXPECT_EQ(parse_json("9223372036854775807").root().as_int(), INT64_MAX);
  EXPECT_EQ(parse_json("-9223372036854775808").root().as_int(), INT64_MIN);
  const Document large = parse_json("9223372036854775808");
  EXPECT_EQ(large.root().kind(), Value::Kind::number);
  EXPECT_EQ(large.root().as_double(), 0x1p63);
  EXPECT_THROW(large.root().as_int(), Error);
}

TEST(JsonReader, RefusesWithFileAndLine) {
  EXPECT_EQ(json_refusal(""), "f.json:1: the file is empty");
  EXPECT_EQ(json_refusal("{\n\"a\": 1,\n\"a\": 2}"),
            "f.json:3: duplicate key 'a'; keep one of the two");
  EXPECT_EQ(json_refusal("[1,\n2,\n]"), "f.json:3: expected a value, found ']'");
  EXPECT_EQ(json_refusal("[1]\n\n x"), "f.json:3: text after the end of the JSON value");
  EXPECT_EQ(json_refusal("[1e400]"),
            "f.json:1: number '1e400' is out of range; give one that a 64-bit number holds");
  EXPECT_EQ(json_refusal("[\n\"\xff\"]"), "f.json:2: a string is not valid UTF-8");
  EXPECT_EQ(json_refusal("[1 2]"), "f.json:1: expected ',' or ']' in an array, found '2'");
  EXPECT_EQ(json_refusal("{\"a\" 2}"), "f.json:1: expected ':' after a key, found '2'");
  EXPECT_EQ(json_refusal("{a: 2}"), "f.json:1: expected a key in double quotes, found 'a'");
  EXPECT_EQ(json_refusal("{\"a\": 1"),
            "f.json:1: expected ',' or '}' in an object, found the end of the file");
  EXPECT_EQ(json_refusal("\"abc"), "f.json:1: a string does not end");
  EXPECT_EQ(json_refusal("\"a\nb\""),
            "f.json:1: control character in a string; write it as an escape");
}

TEST(JsonReader, NamesWhatIsNotANumberInJson) {
  for (const std::string word : {"NaN", "nan", "Infinity", "inf"}) {
    for (const std::string sign : {"", "-"}) {
      EXPECT_EQ(json_refusal("{\"a\":\n" + sign + word + "}"),
                "f.json:2: " + word + " is not a number in JSON; give a finite number");
    }
  }
}

TEST(JsonReader, RefusesWhatTheGrammarDoesNotHave) {
  for (const char* text : {"01",
                           "-",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "1e+",
                           "0x1",
                           "NaN",
                           "Infinity",
                           "-Infinity",
                           "nan",
                           "tru",
                           "True",
                           "nul",
                           "'a'",
                           "[1,]",
                           "{\"a\":1,}",
                           "[,1]",
                           "{,}",
                           "{\"a\":}",
                           "{1:2}",
                           "// c\n1",
                           "/* */1",
                           "\"\\x41\"",
                           "\"\\u12g4\"",
                           "\"\\u123\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\ud800x\"",
                           "\"\t\"",
                           "[",
                           "]",
                           "{",
                           "}",
                           "[}",
                           "\xff",
                           "\xef\xbb\xbf",
                           "1 2",
                           "\"\\",
                           "\"\\u",
                           "\v1",
                           "\xc2\xa0"
                           "1",
                           "-1e999"}) {
    EXPECT_THROW(parse_json(text), Error) << text;
  }
  EXPECT_THROW(parse_json(std::string_view("1\0", 2)), Error);
  EXPECT_THROW(parse_json(std::string_view("\0", 1)), Error);
}

TEST(JsonReader, LimitsNesting) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_NO_THROW(parse_json(nested(200)));
  EXPECT_EQ(json_refusal(nested(201)), "f.json:1: nested deeper than 200 levels");
  EXPECT_THAT(json_refusal(std::string(1000000, '[')), HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 300; ++i) objects += "{\"a\":";
  EXPECT_THAT(json_refusal(objects), HasSubstr("nested deeper"));
}

TEST(JsonReader, FindsDuplicatesInLargeObjectsAndAllowsThemElsewhere) {
  std::string text = "{";
  for (int i = 0; i < 100000; ++i) text += "\"k" + std::to_string(i) + "\": {\"k0\": 1},\n";
  EXPECT_NO_THROW(parse_json(text + "\"end\": 0}"));
  EXPECT_THAT(json_refusal(text + "\"k5\": 0}"), StartsWith("f.json:100001: duplicate key 'k5'"));
  EXPECT_THAT(json_refusal(R"({"a": {"b": 1}, "b": {"a": 1}, "a": 1})"),
              HasSubstr("duplicate key 'a'"));
  EXPECT_THAT(json_refusal(R"({"a": 1, "\u0061": 1})"), HasSubstr("duplicate key 'a'"));
}

// The same document by the reader of nlohmann-json.
void expect_equal(const Value& ours, const nlohmann::json& theirs) {
  if (theirs.is_object()) {
    const auto members = ours.members();
    ASSERT_EQ(members.size(), theirs.size());
    for (const auto& [key, value] : members) {
      ASSERT_TRUE(theirs.contains(std::string(key)));
      expect_equal(value, theirs[std::string(key)]);
      expect_equal(ours[key], theirs[std::string(key)]);
    }
  } else if (theirs.is_array()) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < theirs.size(); ++i) expect_equal(ours[i], theirs[i]);
  } else if (theirs.is_string()) {
    EXPECT_EQ(ours.as_string(), theirs.get<std::string>());
  } else if (theirs.is_boolean()) {
    EXPECT_EQ(ours.as_bool(), theirs.get<bool>());
  } else if (theirs.is_number_integer() && ours.kind() == Value::Kind::integer) {
    EXPECT_EQ(ours.as_int(), theirs.get<std::int64_t>());
  } else if (theirs.is_number()) {
    EXPECT_EQ(ours.as_double(), theirs.get<double>());
  } else {
    EXPECT_TRUE(ours.is_null());
  }
}

class RandomJson {
 public:
  explicit RandomJson(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }

  std::string value(int depth) {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return std::to_string(static_cast<std::int64_t>(random_()));
      case 1:
        return std::to_string(static_cast<int>(below(2000)) - 1000) + "." +
               std::to_string(below(1000)) +
               (below(2) == 0 ? "" : "e-" + std::to_string(below(300)));
      case 2:
      case 3:
        return string();
      case 4:
        return below(2) == 0 ? "true" : "false";
      case 5:
        return "null";
      case 6:
        return array(depth);
      default:
        return object(depth);
    }
  }

  std::string mutate(std::string text) {
    static constexpr std::string_view kBytes = "{}[]\",:\\u0019eE+-. \n\ttfn\x01\xc3\xa9\xff";
    for (std::size_t n = 1 + below(3); n > 0 && !text.empty(); --n) {
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text[at] = kBytes[below(kBytes.size())];
          break;
        case 1:
          text.erase(at, 1 + below(4));
          break;
        case 2:
          text.insert(at, 1, kBytes[below(kBytes.size())]);
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), below(12)));
          break;
        default:
          text.resize(at);
      }
    }
    return text;
  }

 private:
  std::string space() {
    static constexpr const char* kSpaces[] = {"", "", " ", "\n", "\t", "\r\n "};
    return kSpaces[below(6)];
  }
  std::string string() {
    static constexpr const char* kPieces[] = {
        "a", "key", "é", "😀", "\\n", "\\u00e9", "\\\"", "\\\\", "\\ud83d\\ude00", " ", "\\/", "0"};
    std::string text = "\"";
    for (std::size_t n = below(5); n > 0; --n) text += kPieces[below(12)];
    return text + "\"";
  }
  std::string array(int depth) {
    std::string text = "[" + space();
    for (std::size_t n = below(5), i = 0; i < n; ++i) {
      if (i > 0) text += "," + space();
      text += value(depth - 1) + space();
    }
    return text + "]";
  }
  std::string object(int depth) {
    std::string text = "{" + space();
    for (std::size_t n = below(5), i = 0; i < n; ++i) {
      if (i > 0) text += "," + space();
      text += "\"k" + std::to_string(i) + "\"" + space() + ":" + value(depth - 1) + space();
    }
    return text + "}";
  }

  std::mt19937_64 random_;
};

TEST(JsonReader, AgreesWithAnotherReaderOnRandomTexts) {
  RandomJson random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = random.value(4);
    SCOPED_TRACE(text);
    const Document document = parse_json(text);
    expect_equal(document.root(), nlohmann::json::parse(text));
  }
}

// What nlohmann-json takes and this reader does not: duplicate keys.
TEST(JsonReader, AgreesWithAnotherReaderOnDamagedTexts) {
  RandomJson random(2);
  int taken = 0;
  int refused = 0;
  for (int i = 0; i < 30000; ++i) {
    const std::string text = random.mutate(random.value(3));
    SCOPED_TRACE(text);
    const auto theirs = nlohmann::json::parse(text, nullptr, false);
    try {
      const Document document = parse_json(text);
      ++taken;
      ASSERT_FALSE(theirs.is_discarded());
      expect_equal(document.root(), theirs);
    } catch (const Error& error) {
      ++refused;
      if (!theirs.is_discarded()) {
        ASSERT_THAT(error.what(), HasSubstr("duplicate key"));
      }
    }
  }
  EXPECT_GT(taken, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace braid
