#include "braid/base/text.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace braid {
namespace {

TEST(Text, EveryCodePointIsValidUtf8ExceptSurrogates) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    std::string text;
    append_utf8(text, c);
    const bool surrogate = c >= 0xd800 && c <= 0xdfff;
    ASSERT_EQ(is_utf8(text), !surrogate) << static_cast<std::uint32_t>(c);
    ASSERT_FALSE(is_utf8(text.substr(1)) && text.size() > 1);
    ASSERT_FALSE(is_utf8(text.substr(0, text.size() - 1)) && text.size() > 1);
  }
}

TEST(Text, RefusesBrokenUtf8) {
  for (const char* text :
       {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "a\xc3", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
}

TEST(Text, FiniteDouble) {
  EXPECT_EQ(finite_double("-1.5e3"), -1500);
  EXPECT_EQ(finite_double("1e-400"), 0);
  EXPECT_EQ(finite_double("5e-324"), 5e-324);
  EXPECT_EQ(finite_double("1.7976931348623157e308"), 1.7976931348623157e308);
  for (const char* text : {"", "1e400", "-1e309", "inf", "nan", "+1", " 1", "1 ", "1x", "0x10"}) {
    EXPECT_EQ(finite_double(text), std::nullopt) << text;
  }
}

TEST(Text, QuotedCutsAtCharacters) {
  EXPECT_EQ(in_quotes("abc"), "'abc'");
  EXPECT_EQ(in_quotes("abcdef", 3), "'abc…'");
  EXPECT_EQ(in_quotes("aé", 2), "'a…'");
  EXPECT_EQ(in_quotes("aé", 3), "'aé'");
}

TEST(Text, SortsNamesAsPeopleDo) {
  std::vector<std::string> names = {"llama-3-70b", "gpt3-1.3b",   "a10",  "gemma-3-1b-mtp", "a2",
                                    "gemma-3-12b", "llama-3-8b",  "gpt3", "gemma-3-1b",     "a",
                                    "gpt3-125m",   "deepseek-v3", "a02",  "deepseek-v3-mtp"};
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return is_before_naturally(a, b); });
  EXPECT_EQ(names,
            (std::vector<std::string>{"a", "a02", "a2", "a10", "deepseek-v3", "deepseek-v3-mtp",
                                      "gemma-3-1b", "gemma-3-1b-mtp", "gemma-3-12b", "gpt3",
                                      "gpt3-1.3b", "gpt3-125m", "llama-3-8b", "llama-3-70b"}));
  // A strict order.
  for (const std::string& a : names) {
    for (const std::string& b : names) {
      EXPECT_EQ(is_before_naturally(a, b) + is_before_naturally(b, a), a == b ? 0 : 1);
    }
  }
}

}  // namespace
}  // namespace braid
