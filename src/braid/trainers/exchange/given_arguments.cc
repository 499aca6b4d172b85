#include "braid/trainers/exchange/given_arguments.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

bool is_number(const std::string& word) {
  const std::size_t digits = word.find_first_not_of('-');
  return digits <= 1 && (word[digits] == '.' || (word[digits] >= '0' && word[digits] <= '9'));
}

}  // namespace

std::string GivenArguments::key_of(std::string_view name) {
  std::string key(name.substr(std::min<std::size_t>(2, name.size())));
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

GivenArguments::GivenArguments(std::span<const std::string> words, std::string file)
    : file_(std::move(file)) {
  std::string last;
  for (const std::string& word : words) {
    if (!word.starts_with("--") && (!word.starts_with("-") || is_number(word))) {
      if (!last.empty()) given_[last].values.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    last = key_of(word.substr(0, equals));
    if (!given_.contains(last)) order_.push_back(last);
    given_[last] = {word.substr(0, equals), {}, 0, "", ""};
    if (equals != std::string::npos) given_[last].values.push_back(word.substr(equals + 1));
  }
}

bool GivenArguments::has(std::string_view name) {
  known_.insert(key_of(name));
  return given_.contains(key_of(name));
}

bool GivenArguments::is_bare(std::string_view name) const {
  const auto found = given_.find(key_of(name));
  return found != given_.end() && found->second.values.empty() && found->second.unknown.empty();
}

std::optional<std::string> GivenArguments::text(std::string_view name) {
  if (!has(name)) return std::nullopt;
  std::string joined;
  const std::vector<std::string>& values = given_[key_of(name)].values;
  for (const std::string& value : values) joined += (joined.empty() ? "" : " ") + value;
  const std::string& unknown = given_[key_of(name)].unknown;
  if (values.empty() && !unknown.empty()) {
    fail(name, "has no value: " + unknown, given_[key_of(name)].remedy);
  }
  if (values.empty()) fail(name, "has no value", "give it one, or leave it out");
  return joined;
}

std::optional<std::int64_t> GivenArguments::count(std::string_view name, std::int64_t least,
                                                  std::int64_t most) {
  const std::optional<std::string> value = text(name);
  if (!value) return std::nullopt;
  std::int64_t number = 0;
  const char* end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, number);
  if (error != std::errc() || stop != end || number < least || number > most) {
    fail(name, in_quotes(*value) + " is not a whole number that can be taken",
         fmt::format("give one from {} to {}", least, most));
  }
  return number;
}

std::int64_t GivenArguments::count_or(std::string_view name, std::int64_t otherwise,
                                      std::int64_t least) {
  return count(name, least, std::int64_t{1} << 31).value_or(otherwise);
}

void GivenArguments::set_line(std::string_view name, int line) {
  const auto found = given_.find(key_of(name));
  if (found != given_.end()) found->second.line = line;
}

void GivenArguments::set_unknown_value(std::string_view name, std::string why, std::string remedy) {
  const auto found = given_.find(key_of(name));
  if (found == given_.end()) return;
  found->second.unknown = std::move(why);
  found->second.remedy = std::move(remedy);
}

void GivenArguments::ignore(std::span<const std::string_view> names) {
  for (const std::string_view name : names) known_.insert(key_of(name));
}

void GivenArguments::ignore_if(bool (*is_ignored)(std::string_view name)) {
  for (const std::string& key : order_) {
    if (is_ignored("--" + key)) known_.insert(key);
  }
}

std::vector<std::string> GivenArguments::unknown() const {
  std::vector<std::string> all;
  for (const std::string& key : order_) {
    if (known_.contains(key)) continue;
    const Given& given = given_.find(key)->second;
    std::string text = given.written;
    for (const std::string& value : given.values) text += " " + value;
    all.push_back(on_one_line(text));
  }
  return all;
}

void GivenArguments::fail(std::string_view name, const std::string& message,
                          const std::string& remedy) const {
  const auto found = given_.find(key_of(name));
  const int line = found == given_.end() ? 0 : found->second.line;
  // Keys of a file have no dashes there.
  const std::string_view key = line > 0 && name.starts_with("--") ? name.substr(2) : name;
  throw Error(Where{file_, line, std::string(key)}, message, remedy);
}

}  // namespace braid
