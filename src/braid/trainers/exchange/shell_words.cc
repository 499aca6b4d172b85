#include "braid/trainers/exchange/shell_words.h"

#include <algorithm>
#include <utility>

#include "braid/base/text.h"
#include "braid/trainers/exchange/shell_arithmetic.h"
#include "braid/trainers/exchange/shell_pattern.h"

namespace braid {
namespace {

constexpr std::size_t kMostExpanded = std::size_t{1} << 20;
constexpr int kMostDepth = 20;

bool is_all(const std::string& index) { return index == "@" || index == "*"; }

}  // namespace

bool ShellWordReader::ends_word() const {
  return text_.ends_command() ||
         std::string_view(" \t\r()").find(text_.here()) != std::string_view::npos;
}

void ShellWordReader::read(ShellWords& into) {
  Word word;
  const std::size_t begin = text_.position();
  bool redirects = false;  // Behind > or <, where & and brackets are part of the word.
  while (!text_.is_done() &&
         (!ends_word() || (redirects && (text_.is_at("&") || text_.is_at("("))))) {
    if (redirects && text_.is_at("(")) {
      text_.move_to(text_.closing(text_.position(), '(', ')') + 1);
      redirects = false;
      continue;
    }
    if (text_.is_at("\\\n")) {
      text_.move(2);
      continue;
    }
    redirects = text_.here() == '>' || text_.here() == '<';
    if (text_.is_at("\"")) {
      read_quoted(word, into);
    } else if (text_.is_at("$") && !text_.is_at("$'") && !text_.is_at("$\"")) {
      expand(word, into, undivided_);
    } else {
      read_plain(word);
    }
  }
  if (text_.position() == begin) text_.move(1);  // A bracket that stands alone.
  finish(word, into);
}

ShellWords ShellWordReader::read_undivided() {
  ShellWords value;
  undivided_ = true;
  if (!text_.ends_command() && !text_.is_at(" ") && !text_.is_at("\t")) read(value);
  undivided_ = false;
  return value;
}

/// A character, or what quotes make of several, in which no variable is.
void ShellWordReader::read_plain(Word& word) {
  if (text_.is_at("\\")) {
    text_.move(1);
    if (!text_.is_done()) read_literal(word);
    word.is_word = true;
  } else if (text_.is_at("'") || text_.is_at("$'")) {
    if (text_.is_at("$")) text_.move(1);
    const std::size_t begin = text_.position() + 1;
    const std::size_t end = text_.find("'", begin);
    if (end >= text_.end()) text_.fail("a quote is not closed");
    word.text += text_.part(begin, end);
    word.is_word = true;
    text_.move_to(end + 1);
  } else if (text_.is_at("`")) {
    skip_command(word);
  } else if (text_.is_at("$\"")) {
    text_.move(1);
  } else {
    read_literal(word);
    word.is_word = true;
  }
}

void ShellWordReader::read_literal(Word& word) {
  word.text += text_.here();
  text_.move(1);
}

/// Whether all that the quotes hold is "$@" or "${NAME[@]…}", of which an empty one is no word.
bool ShellWordReader::is_quoted_list() const {
  const std::size_t begin = text_.position();
  if (text_.is_at("\"$@\"")) return true;
  if (!text_.is_at("\"${")) return false;
  std::size_t at = begin + 3;
  while (at < text_.end() && is_shell_name_part(text_.part(at, at + 1)[0])) ++at;
  const bool is_list =
      at == begin + 3 ? text_.part(at, at + 1) == "@" : text_.part(at, at + 3) == "[@]";
  if (!is_list) return false;
  const std::size_t end = text_.closing(begin + 2, '{', '}');
  return text_.part(end + 1, end + 2) == "\"";
}

void ShellWordReader::read_quoted(Word& word, ShellWords& into) {
  if (!is_quoted_list()) word.is_word = true;
  text_.move(1);
  while (!text_.is_at("\"")) {
    if (text_.is_done()) text_.fail("a quote is not closed");
    if (text_.is_at("$")) {
      expand(word, into, true);
    } else if (text_.is_at("`")) {
      skip_command(word);
    } else if (text_.is_at("\\\n")) {
      text_.move(2);
    } else {
      const bool escapes =
          text_.is_at("\\\"") || text_.is_at("\\\\") || text_.is_at("\\$") || text_.is_at("\\`");
      if (escapes) text_.move(1);
      read_literal(word);
    }
  }
  text_.move(1);
}

/// A command between backticks, which is not run.
void ShellWordReader::skip_command(Word& word) {
  const std::size_t begin = text_.position();
  const std::size_t end = text_.find("`", begin + 1);
  if (end >= text_.end()) text_.fail("a quote is not closed");
  leave_out(std::string(text_.part(begin, end + 1)), word);
  text_.move_to(end + 1);
}

void ShellWordReader::finish(Word& word, ShellWords& into) {
  expanded_ += word.text.size() + 1;
  if (expanded_ > kMostExpanded) text_.fail("the variables expand to more than 1 MiB; a loop");
  if (!word.is_word && !word.text.empty()) word.text.insert(word.text.begin(), kNoWord);
  if (word.is_word || !word.text.empty()) into.push_back(std::move(word.text));
  word = {};
}

/// Marks what is not known in the word that it is a part of.
void ShellWordReader::leave_out(const std::string& name, Word& word) {
  if (!state_.is_skipped) note_name(name, state_.undefined);
  const auto found = std::find(state_.names.begin(), state_.names.end(), name);
  const auto number = std::distance(state_.names.begin(), found);
  if (found == state_.names.end()) state_.names.push_back(name);
  word.text += kMark + std::to_string(number) + kMarkEnd;
}

std::optional<std::int64_t> ShellWordReader::arithmetic(std::size_t begin, std::size_t end) {
  return assigned_by(expanded(begin, end));
}

std::optional<std::int64_t> ShellWordReader::assigned_by(const std::string& expression) {
  if (has_marks({expression})) return std::nullopt;
  const std::optional<ArithmeticValue> result = value_of_arithmetic(expression, state_.variables);
  if (!result) return std::nullopt;
  for (const auto& [name, value] : result->assigned) {
    set_variable(name, {std::to_string(value)}, state_);
  }
  return result->value;
}

void ShellWordReader::expand_arithmetic(Word& word, ShellWords& into) {
  const std::size_t begin = text_.position() + 3;
  const std::size_t end = text_.closing(text_.position() + 1, '(', ')');
  const std::size_t inner = end > begin ? end - 1 : begin;
  const std::string raw(text_.part(begin, inner));
  const auto value = arithmetic(begin, inner);
  text_.move_to(end + 1);
  if (value) {
    append({std::to_string(*value)}, word, into, Splitting::none);
  } else {
    leave_out("$((" + raw + "))", word);
  }
}

/// What begins with $; unquoted it may be several words.
void ShellWordReader::expand(Word& word, ShellWords& into, bool quoted) {
  if (text_.is_at("$((")) return expand_arithmetic(word, into);
  if (text_.is_at("$(")) {
    const std::size_t begin = text_.position();
    const std::size_t end = text_.closing(begin + 1, '(', ')');
    leave_out(std::string(text_.part(begin, end + 1)), word);
    text_.move_to(end + 1);
    return;
  }
  if (text_.is_at("${")) return expand_braced(word, into, quoted);
  // A script is started without arguments.
  if (text_.is_at("$@") || text_.is_at("$*")) return text_.move(2);
  if (text_.is_at("$#")) {
    text_.move(2);
    return append({"0"}, word, into, Splitting::none);
  }
  std::size_t end = text_.position() + 1;
  while (end < text_.end() && is_shell_name_part(text_.part(end, end + 1)[0])) ++end;
  const std::string name(text_.part(text_.position() + 1, end));
  if (name.empty()) {  // A $ that stands alone.
    read_literal(word);
    word.is_word = true;
    return;
  }
  text_.move_to(end);
  const auto value = value_of({name, "", false, false, false, 0});
  if (value) return append(*value, word, into, quoted ? Splitting::none : Splitting::words);
  leave_out("$" + name, word);
}

std::string ShellWordReader::expanded(std::size_t begin, std::size_t end) {
  if (++depth_ > kMostDepth) text_.fail("brackets are nested too deep");
  Word word;
  ShellWords into;
  const ShellText::Part part(text_, begin, end);
  while (!text_.is_done()) {
    if (text_.is_at("$")) {
      expand(word, into, true);
    } else if (text_.is_at("`")) {
      skip_command(word);
    } else if (text_.is_at("\"") || text_.is_at("'")) {
      text_.move(1);
    } else {
      if (text_.is_at("\\") && text_.position() + 1 < text_.end()) text_.move(1);
      read_literal(word);
    }
  }
  --depth_;
  return word.text;
}

ShellWordReader::Parameter ShellWordReader::parameter(std::size_t end) {
  Parameter result;
  std::size_t at = text_.position() + 2;
  const auto here = [&] { return at < end ? text_.part(at, at + 1)[0] : '\0'; };
  const auto next = [&] { return at + 1 < end ? text_.part(at + 1, at + 2)[0] : '\0'; };
  if (here() == '#' && (is_shell_name_part(next()) || next() == '@' || next() == '*')) {
    result.is_length = true;
    ++at;
  } else if (here() == '!' && is_shell_name_part(next())) {
    result.is_indirect = true;
    ++at;
  }
  const std::size_t begin = at;
  while (is_shell_name_part(here())) ++at;
  if (at == begin && (here() == '@' || here() == '*' || here() == '#')) ++at;
  result.name = text_.part(begin, at);
  if (here() == '[') {
    const std::size_t close = text_.find("]", at);
    if (close < end) {
      result.has_index = true;
      result.index = expanded(at + 1, close);
      at = close + 1;
    }
  }
  result.form = at;
  return result;
}

/// The value of a variable or of an element; nullopt: it is not set.
std::optional<ShellWords> ShellWordReader::value_of(const Parameter& parameter) {
  if (is_all(parameter.name)) return ShellWords{};
  if (parameter.name == "#") return ShellWords{"0"};
  const ShellVariables& variables = state_.variables;
  const auto found = variables.find(parameter.name);
  if (state_.of_loops.contains(parameter.name) && !state_.is_skipped) {
    note_name(parameter.name, state_.uncertain);
  }
  if (!parameter.has_index || is_all(parameter.index)) {
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  }
  const auto element = variables.find(parameter.name + "[" + parameter.index + "]");
  if (element != variables.end()) return element->second;
  if (found == variables.end() || has_marks({parameter.index})) return std::nullopt;
  const auto number = value_of_arithmetic(parameter.index, variables);
  if (!number) return std::nullopt;
  const auto size = static_cast<std::int64_t>(found->second.size());
  const std::int64_t index = number->value < 0 ? number->value + size : number->value;
  if (index < 0 || index >= size) return ShellWords{};
  return ShellWords{found->second[static_cast<std::size_t>(index)]};
}

bool ShellWordReader::take_default(const Parameter& parameter,
                                   const std::optional<ShellWords>& value, std::size_t end,
                                   Splitting splitting, Word& word, ShellWords& into) {
  std::size_t at = parameter.form;
  const auto sign = [&] { return at < end ? text_.part(at, at + 1)[0] : '\0'; };
  const bool takes_empty = sign() == ':';
  if (takes_empty) ++at;
  const char form = sign();
  if (parameter.name.empty() || (form != '-' && form != '=' && form != '+' && form != '?')) {
    return false;
  }
  const bool is_empty = value && without_marks(joined(*value)).empty() && !has_marks(*value);
  const bool is_set = value && !(takes_empty && is_empty);
  if (form == '+') {
    if (is_set) append({expanded(at + 1, end)}, word, into, splitting);
  } else if (is_set) {
    append(*value, word, into, splitting);
  } else if (form == '?') {
    leave_out("$" + parameter.name, word);
  } else {
    const std::string other = expanded(at + 1, end);
    append({other}, word, into, splitting);
    if (form == '=') set_variable(parameter.name, {other}, state_);
  }
  return true;
}

/// "${A:2}", "${A:2:3}": characters, or elements of an array.
std::optional<ShellWords> ShellWordReader::slice(const ShellWords& value,
                                                 const Parameter& parameter, std::size_t end) {
  const std::size_t begin = parameter.form + 1;
  const std::size_t colon = std::min(text_.find(":", begin), end);
  const auto first = arithmetic(begin, colon);
  std::optional<std::int64_t> count;
  if (colon < end) count = arithmetic(colon + 1, end);
  if (!first || (colon < end && !count)) return std::nullopt;
  const bool is_list = (parameter.has_index && is_all(parameter.index)) || is_all(parameter.name);
  const std::string text = is_list ? "" : joined(value);
  const auto size = static_cast<std::int64_t>(is_list ? value.size() : text.size());
  const std::int64_t from = std::clamp<std::int64_t>(*first < 0 ? size + *first : *first, 0, size);
  std::int64_t until = size;
  if (count) until = *count < 0 ? size + *count : *count > size - from ? size : from + *count;
  if (until < from) return std::nullopt;
  if (is_list) return ShellWords(value.begin() + from, value.begin() + until);
  return ShellWords{
      text.substr(static_cast<std::size_t>(from), static_cast<std::size_t>(until - from))};
}

/// "${A/x/y}" and the other forms that change text, of each element.
std::optional<ShellWords> ShellWordReader::transformed(const ShellWords& value, std::size_t form,
                                                       std::size_t end) {
  const std::string_view all = text_.part(form, end);
  std::string_view sign;
  for (const std::string_view each :
       {"//", "/#", "/%", "/", "##", "#", "%%", "%", "^^", "^", ",,", ","}) {
    if (!all.starts_with(each)) continue;
    sign = each;
    break;
  }
  if (sign.empty()) return std::nullopt;
  const std::size_t begin = form + sign.size();
  std::size_t middle = end;
  for (std::size_t at = begin; sign[0] == '/' && at < end && middle == end; ++at) {
    if (text_.part(at, at + 1) == "\\") {
      ++at;
    } else if (text_.part(at, at + 2) == "${") {
      at = text_.closing(at + 1, '{', '}');
    } else if (text_.part(at, at + 1) == "/") {
      middle = at;
    }
  }
  const std::string pattern = expanded(begin, middle);
  const std::string with = middle < end ? expanded(middle + 1, end) : "";
  ShellWords result;
  for (const std::string& each : value) {
    if (has_marks({each, pattern, with})) return std::nullopt;
    auto changed = transformed_value(each, sign, pattern, with);
    if (!changed) return std::nullopt;
    result.push_back(std::move(*changed));
  }
  return result;
}

void ShellWordReader::expand_braced(Word& word, ShellWords& into, bool quoted) {
  const std::size_t begin = text_.position();
  const std::size_t end = text_.closing(begin + 1, '{', '}');
  const Parameter said = parameter(end);
  const bool whole = (said.has_index && said.index == "@") || said.name == "@";
  const Splitting splitting = !quoted ? Splitting::words
                              : whole ? Splitting::elements
                                      : Splitting::none;
  std::optional<ShellWords> value = value_of(said);
  if (value && said.is_indirect) {
    const std::string of = joined(*value);
    value = value_of({of, "", false, false, false, 0});
  }
  const bool done = !said.is_length && take_default(said, value, end, splitting, word, into);
  text_.move_to(end + 1);
  if (done) return;
  if (value && said.is_length) {
    const bool counts = said.has_index && is_all(said.index);
    const bool is_known = counts || !has_marks(*value);
    const std::size_t size = counts ? value->size() : joined(*value).size();
    value = is_known ? std::optional(ShellWords{std::to_string(size)}) : std::nullopt;
  } else if (value && said.form < end) {
    const bool is_slice = text_.part(said.form, said.form + 1) == ":" && !has_marks(*value);
    value = is_slice ? slice(*value, said, end) : transformed(*value, said.form, end);
  }
  if (value) return append(*value, word, into, splitting);
  const bool is_plain = said.form == end && !said.is_length && !said.has_index && !said.is_indirect;
  leave_out(is_plain ? "$" + said.name : std::string(text_.part(begin, end + 1)), word);
}

/// The words of a value without quotes.
void ShellWordReader::append_split(const std::string& value, Word& word, ShellWords& into) {
  bool in_mark = false;
  for (const char c : value) {
    if (c == ' ' || c == '\t' || c == '\n') {
      finish(word, into);
      continue;
    }
    if (c == kNoWord) continue;
    in_mark = in_mark || c == kMark;
    word.text += c;
    word.is_word = word.is_word || !in_mark;
    in_mark = in_mark && c != kMarkEnd;
  }
}

void ShellWordReader::append(const ShellWords& values, Word& word, ShellWords& into,
                             Splitting splitting) {
  if (splitting == Splitting::none) {
    std::string text = joined(values);
    // It may stand for no word of its own, but is a part of one here.
    std::erase(text, kNoWord);
    word.text += text;
    word.is_word = true;
    return;
  }
  bool first = true;
  for (const std::string& value : values) {
    if (!std::exchange(first, false)) finish(word, into);
    if (splitting == Splitting::words) {
      append_split(value, word, into);
    } else {
      const bool is_no_word = value.starts_with(kNoWord);
      word.text += is_no_word ? value.substr(1) : value;
      word.is_word = word.is_word || !is_no_word;
    }
  }
}

}  // namespace braid
