#include "braid/serve/launch/engine_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "braid/base/text.h"

namespace braid {

const EngineCommand& command_of_engine(std::string_view engine) {
  const auto* own = std::find_if(kEngineCommands.begin(), kEngineCommands.end(),
                                 [&](const EngineCommand* each) { return each->engine == engine; });
  return own != kEngineCommands.end() ? **own : *kEngineCommands.front();
}

std::vector<std::string> written_out(std::span<const std::string> words,
                                     std::span<const OtherName> names) {
  std::vector<std::string> result;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    const auto other = std::find_if(names.begin(), names.end(),
                                    [&](const OtherName& each) { return each.is == name; });
    result.push_back(
        other == names.end() ? word : std::string(other->stands_for) + word.substr(name.size()));
  }
  return result;
}

std::optional<double> tokens_of(GivenArguments& given, std::string_view name) {
  std::optional<std::string> text = given.text(name);
  if (!text || *text == "auto" || *text == "-1") return std::nullopt;
  constexpr std::array<std::pair<char, double>, 6> kMultiples = {
      {{'k', 1e3}, {'m', 1e6}, {'g', 1e9}, {'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}}};
  double times = 1;
  std::string digits = *text;
  for (const auto& [letter, multiple] : kMultiples) {
    if (!digits.ends_with(letter)) continue;
    digits.pop_back();
    times = multiple;
    break;
  }
  constexpr double kMost = 1e9;
  const double number = finite_double(digits).value_or(0) * times;
  if (number != std::floor(number) || number < 1 || number > kMost) {
    given.fail(name, in_quotes(*text) + " is not a whole number above zero",
               "give one such as 8192 or 8k");
  }
  return number;
}

std::optional<double> share_of(GivenArguments& given, std::string_view name) {
  const std::optional<std::string> text = given.text(name);
  if (!text) return std::nullopt;
  const double share = finite_double(*text).value_or(0);
  if (!(share > 0 && share <= 1)) {
    given.fail(name, in_quotes(*text) + " is no share above 0 and up to 1", "give one such as 0.9");
  }
  return share;
}

std::int64_t degree_of(GivenArguments& given, std::string_view name) {
  constexpr std::int64_t kMost = 1 << 16;
  return given.count(name, 1, kMost).value_or(1);
}

std::string precision_of_method(std::string_view method) {
  struct Method {
    std::string_view name, precision;
  };
  constexpr std::array kMethods = {
      Method{"fp8", "fp8"},        Method{"modelopt", "fp8"},     Method{"modelopt_fp8", "fp8"},
      Method{"fbgemm_fp8", "fp8"}, Method{"ptpc_fp8", "fp8"},     Method{"w8a8_fp8", "fp8"},
      Method{"awq", "int4"},       Method{"awq_marlin", "int4"},  Method{"gptq", "int4"},
      Method{"nvfp4", "fp4"},      Method{"gptq_marlin", "int4"}, Method{"modelopt_fp4", "fp4"},
      Method{"mxfp4", "fp4"}};
  const auto* found = std::find_if(kMethods.begin(), kMethods.end(),
                                   [&](const Method& each) { return each.name == method; });
  return found == kMethods.end() ? "" : std::string(found->precision);
}

std::string cache_of(GivenArguments& given, std::string_view name) {
  const std::optional<std::string> text = given.text(name);
  if (!text || *text == "auto") return "";
  if (text->starts_with("fp8")) return "fp8";
  if (*text == "bf16" || *text == "bfloat16" || *text == "fp16" || *text == "float16") {
    return "bf16";
  }
  given.fail(name, "caches in " + in_quotes(*text) + " are not known here", "say fp8 or bfloat16");
}

void note_other_drafts(const EngineArguments& to, std::string_view argument,
                       std::string_view method) {
  to.notes.push_back(std::string(argument) + ": drafts by " + in_quotes(method) +
                     " are not modelled; each step makes one token");
}

void note_given(const EngineArguments& to, std::span<const NotModelled> arguments) {
  for (const NotModelled& each : arguments) {
    if (to.given.has(each.name)) {
      to.notes.push_back(fmt::format("{}: {}", each.name, each.why));
    }
  }
}

}  // namespace braid
