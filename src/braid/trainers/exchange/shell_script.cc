#include "braid/trainers/exchange/shell_script.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "braid/base/error.h"
#include "braid/trainers/exchange/shell_arithmetic.h"
#include "braid/trainers/exchange/shell_branches.h"
#include "braid/trainers/exchange/shell_values.h"

namespace braid {
namespace {

constexpr std::size_t kMostExpanded = std::size_t{1} << 20;

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  ShellScript read() {
    while (at_ < text_.size()) read_command();
    if (!opened_.empty()) {
      const Opened open = opened_.back();
      at_ = open.at;
      fail("'" + open.word + "' is not closed");
    }
    return std::move(script_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
    const auto line = std::count(text_.begin(), end, '\n') + 1;
    throw Error(Where{file_, static_cast<int>(line), ""}, message, "close it");
  }

  bool at(std::string_view token) const { return text_.substr(at_, token.size()) == token; }
  bool ends_command() const {
    return at_ == text_.size() ||
           std::string_view("\n;&|").find(text_[at_]) != std::string_view::npos;
  }

  /// Spaces, continued lines and comments; in an array also ends of lines.
  void skip_blank(bool lines) {
    while (at_ < text_.size()) {
      if (at("\\\n")) {
        at_ += 2;
      } else if (at("\\\r\n")) {
        at_ += 3;
      } else if (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r' ||
                 (lines && text_[at_] == '\n')) {
        ++at_;
      } else if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  void read_command() {
    if (branches_.awaits_pattern()) return read_pattern();
    ShellCommand command;
    const std::size_t begin = at_;
    const std::size_t unknown_before = unknown_;
    for (skip_blank(false); !ends_command() && !branches_.awaits_pattern(); skip_blank(false)) {
      if (!(command.empty() && read_assignment())) read_word(command);
      if (command.size() == 1 && is_before_command(command[0])) {
        if (command[0] == "else") branches_.begin_else();
        command.clear();
      }
      if (command.size() == 3 && command[0] == "case" && command[2] == "in") {
        const bool is_known = unknown_ == unknown_before && !has_marks(command);
        note_condition(command);
        branches_.begin_case(is_known ? std::optional(command[1]) : std::nullopt);
        opened_.push_back({"case", begin});
        command.clear();
      }
    }
    const bool has_text = at_ < text_.size();
    // Tests that && or || put together are not looked into.
    const bool is_whole = !has_text || text_[at_] == ';' || text_[at_] == '\n';
    const bool is_known = unknown_ == unknown_before && !has_marks(command);
    const bool is_test = !command.empty() && command[0].starts_with('[');
    const Holds value = !is_test ? Holds::yes : is_known ? value_of_test(command) : Holds::unknown;
    if (is_test) note_condition(command);
    if (!command.empty()) finish_command(command, is_whole && is_known, begin);
    if (branches_.awaits_pattern()) return;
    if (at("&&") || at("||")) return chain(value);
    runs_ = Holds::yes;
    if (branches_.is_case() && at(";;")) {
      at_ += at(";;&") ? 3 : 2;
      branches_.end_arm();
    } else {
      if (at("\n")) skip_given_texts();
      ++at_;
    }
  }

  /// What << gives to the command, from the end of its line to the line that ends it. What is a
  /// script itself is read as if it stood there.
  void skip_given_texts() {
    for (const std::string& mark : given_ends_) {
      const std::size_t first = at_ + 1;
      std::size_t begin = first;
      while (begin < text_.size()) {
        const std::size_t end = std::min(text_.find('\n', begin), text_.size());
        std::string_view line = text_.substr(begin, end - begin);
        line.remove_prefix(std::min(line.find_first_not_of('\t'), line.size()));
        begin = end + 1;
        if (line == mark) break;
      }
      begin = std::min(begin, text_.size());
      const std::string_view body = text_.substr(std::min(first, begin), begin - first);
      if (body.find(".py") != std::string_view::npos) break;
      at_ = begin - 1;
    }
    given_ends_.clear();
  }

  /// Takes note of words such as <<EOF, <<-"EOF", << EOF.
  void note_given_text(std::string word) {
    if (!std::exchange(awaits_given_end_, false)) {
      if (!word.starts_with("<<") || word.starts_with("<<<")) return;
      word.erase(0, word.starts_with("<<-") ? 3 : 2);
    }
    awaits_given_end_ = word.empty();
    if (!word.empty()) given_ends_.push_back(without_marks(word));
  }

  /// Takes note of what a condition rests on and is not known.
  void note_condition(const ShellCommand& command) {
    for (std::string word : command) {
      for (const std::size_t number : take_marks(word)) {
        if (number < names_.size() && !is_skipped()) note(names_[number], script_.of_conditions);
      }
    }
  }

  /// "2>", ">>log", "&>": where output goes, which no program gets as an argument.
  static bool is_redirection(const std::string& word) {
    const std::size_t sign = word.find_first_not_of("0123456789&");
    return sign != std::string::npos && word[sign] == '>';
  }

  /// The words of a command without marks, of which the script takes note.
  void add_command(const ShellCommand& words) {
    ShellCommand plain;
    bool is_target = false;
    for (std::string word : words) {
      if (std::exchange(is_target, false)) continue;
      if (word == "|") break;  // Of a variable's value.
      if (is_redirection(word)) {
        is_target = word.back() == '>';
        continue;
      }
      const bool is_no_word = !word.empty() && word.front() == kNoWord;
      for (const std::size_t number : take_marks(word)) {
        if (number >= names_.size()) continue;
        script_.unknown_parts.push_back(
            {script_.commands.size(), plain.size(), is_no_word, names_[number]});
      }
      if (!is_no_word) plain.push_back(std::move(word));
    }
    if (!plain.empty()) script_.commands.push_back(std::move(plain));
  }

  /// Whether the command behind && or || runs, where `value` is of the one before it. Commands that
  /// are no tests are taken to succeed.
  void chain(Holds value) {
    // What did not run leaves what was known before it.
    if (runs_ == Holds::no) value = wanted_ == Holds::yes ? Holds::no : Holds::yes;
    if (runs_ == Holds::unknown) value = Holds::unknown;
    wanted_ = holds_if(text_[at_] == '&');
    at_ += 2;
    runs_ = value == Holds::unknown ? value : holds_if(value == wanted_);
  }

  bool is_skipped() const { return branches_.is_skipped() || runs_ == Holds::no; }
  bool is_uncertain() const {
    return !is_skipped() && (runs_ == Holds::unknown || branches_.is_uncertain());
  }

  /// ShellWords that a command follows on the same line.
  static bool is_before_command(const std::string& word) {
    return word == "export" || word == "declare" || word == "local" || word == "then" ||
           word == "do" || word == "else";
  }

  /// `is_known`: the words are all that a test depends on. `begin` is where it stands.
  void finish_command(ShellCommand& command, bool is_known, std::size_t begin) {
    const std::string& word = command.front();
    if (word == "if" || word == "elif") {
      note_condition(command);
      const std::span<const std::string> test = std::span(command).subspan(1);
      const Holds holds = is_known ? value_of_test(test) : Holds::unknown;
      if (word == "if") {
        branches_.begin_if(holds);
        opened_.push_back({word, begin});
      } else {
        branches_.begin_else(holds);
      }
    } else if (word == "for" || word == "while" || word == "until" || word == "select") {
      branches_.begin_loop();
      opened_.push_back({word, begin});
    } else if (word == "fi" || word == "esac" || word == "done") {
      close();
    } else if (!word.starts_with('[') && !is_skipped()) {
      add_command(command);
    }
  }

  void close() {
    branches_.end();
    if (!opened_.empty()) opened_.pop_back();
  }

  /// What stands before the bracket of the next arm of `case`, or its end.
  void read_pattern() {
    for (skip_blank(true); at(";"); skip_blank(true)) ++at_;
    if (at("esac") && (at_ + 4 == text_.size() || !is_shell_name_part(text_[at_ + 4]))) {
      at_ += 4;
      return close();
    }
    const std::size_t end = text_.find(')', at_);
    if (end == std::string_view::npos) {
      at_ = text_.size();
      return;
    }
    branches_.begin_arm(text_.substr(at_, end - at_));
    at_ = end + 1;
  }

  /// NAME=word, NAME+=word, NAME=(words), NAME+=(words).
  bool read_assignment() {
    std::size_t end = at_;
    if (end == text_.size() || !is_shell_name_start(text_[end])) return false;
    while (end < text_.size() && is_shell_name_part(text_[end])) ++end;
    const bool adds = text_.substr(end, 2) == "+=";
    if (!adds && text_.substr(end, 1) != "=") return false;
    const std::string name(text_.substr(at_, end - at_));
    at_ = end + (adds ? 2 : 1);
    ShellWords value;
    const bool array = at("(");
    if (array) {
      ++at_;
      for (skip_blank(true); !at(")"); skip_blank(true)) {
        if (at_ == text_.size()) fail("the brackets of " + name + " are not closed");
        read_word(value);
      }
      ++at_;
    } else {
      in_assignment_ = true;
      if (!ends_command() && text_[at_] != ' ' && text_[at_] != '\t') read_word(value);
      in_assignment_ = false;
    }
    if (is_skipped()) return true;
    ShellWords& stored = variables_[name];
    if (is_uncertain() && (adds || stored != value)) {
      note(name, script_.uncertain);
    }
    if (!adds) stored.clear();
    if (adds && !array) {
      value = {joined(stored) + joined(value)};
      stored.clear();
    }
    stored.insert(stored.end(), value.begin(), value.end());
    return true;
  }

  /// How the value of a variable becomes words.
  enum class Splitting : std::uint8_t {
    words,     ///< At spaces: $A.
    elements,  ///< One for each element of an array: "${A[@]}".
    none,      ///< One: "$A".
  };

  // The word at hand, and whether there is one (quotes make an empty one).
  struct Word {
    std::string text;
    bool is_word = false;
  };

  void finish(Word& word, ShellWords& into) {
    expanded_ += word.text.size() + 1;
    if (expanded_ > kMostExpanded) fail("the variables expand to more than 1 MiB; a loop");
    if (!word.is_word && !word.text.empty()) word.text.insert(word.text.begin(), kNoWord);
    if (word.is_word || !word.text.empty()) into.push_back(std::move(word.text));
    word = {};
  }

  void read_word(ShellWords& into) {
    Word word;
    const std::size_t begin = at_;
    while (!ends_command() &&
           std::string_view(" \t\r()").find(text_[at_]) == std::string_view::npos) {
      const char c = text_[at_];
      if (c == '\\') {
        if (at("\\\n") || at("\\\r\n")) break;
        at_ = std::min(at_ + 1, text_.size());
        if (at_ < text_.size()) word.text += text_[at_++];
        word.is_word = true;
      } else if (c == '\'') {
        const std::size_t end = text_.find('\'', at_ + 1);
        if (end == std::string_view::npos) fail("a quote is not closed");
        word.text += text_.substr(at_ + 1, end - at_ - 1);
        word.is_word = true;
        at_ = end + 1;
      } else if (c == '"') {
        read_quoted(word, into);
      } else if (c == '$') {
        expand(word, into, in_assignment_);
      } else if (c == '`') {
        skip_command(word);
      } else {
        word.text += c;
        word.is_word = true;
        ++at_;
      }
    }
    if (at_ == begin) ++at_;  // A bracket of a subshell or a function.
    note_given_text(word.text);
    finish(word, into);
  }

  void read_quoted(Word& word, ShellWords& into) {
    word.is_word = true;
    ++at_;
    while (!at("\"")) {
      if (at_ >= text_.size()) fail("a quote is not closed");
      if (text_[at_] == '$') {
        expand(word, into, true);
      } else if (text_[at_] == '`') {
        skip_command(word);
      } else if (at("\\\n")) {
        at_ += 2;
      } else if (text_[at_] == '\\' && at_ + 1 < text_.size() &&
                 std::string_view("\"\\$`").find(text_[at_ + 1]) != std::string_view::npos) {
        word.text += text_[at_ + 1];
        at_ += 2;
      } else {
        word.text += text_[at_++];
      }
    }
    ++at_;
  }

  /// A command between backticks, which is not run.
  void skip_command(Word& word) {
    const std::size_t end = text_.find('`', at_ + 1);
    if (end == std::string_view::npos) fail("a quote is not closed");
    leave_out(std::string(text_.substr(at_, end + 1 - at_)), word);
    at_ = end + 1;
  }

  /// End of what a bracket at `begin` opens.
  std::size_t closing(std::size_t begin, char open, char close) const {
    int depth = 0;
    for (std::size_t i = begin; i < text_.size(); ++i) {
      if (text_[i] == open) ++depth;
      if (text_[i] == close && --depth == 0) return i;
    }
    fail("a bracket is not closed");
  }

  static void note(const std::string& name, std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  /// Marks what is not known in the word that it is a part of.
  void leave_out(const std::string& name, Word& word) {
    ++unknown_;
    if (!is_skipped()) note(name, script_.undefined);
    const auto found = std::find(names_.begin(), names_.end(), name);
    const auto number = std::distance(names_.begin(), found);
    if (found == names_.end()) names_.push_back(name);
    word.text += kMark + std::to_string(number) + kMarkEnd;
  }

  /// What begins with $; unquoted it may be several words.
  void expand(Word& word, ShellWords& into, bool quoted) {
    if (at("$((")) {
      const std::size_t end = closing(at_ + 1, '(', ')');
      const std::string_view inner = text_.substr(at_ + 3, end > at_ + 4 ? end - at_ - 4 : 0);
      at_ = end + 1;
      if (const auto value = value_of_arithmetic(inner, variables_)) {
        append({std::to_string(*value)}, word, into, Splitting::none);
      } else {
        leave_out("$((" + std::string(inner) + "))", word);
      }
      return;
    }
    if (at("$(")) {
      const std::size_t end = closing(at_ + 1, '(', ')');
      leave_out(std::string(text_.substr(at_, end + 1 - at_)), word);
      at_ = end + 1;
      return;
    }
    if (at("${")) return expand_braced(word, into, quoted);
    std::size_t end = at_ + 1;
    while (end < text_.size() && is_shell_name_part(text_[end])) ++end;
    if (end == at_ + 1) {  // $@, $1, a lone $.
      word.text += text_[at_++];
      word.is_word = true;
      return;
    }
    const std::string name(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end;
    append_variable(name, word, into, quoted ? Splitting::none : Splitting::words);
  }

  /// A part of the text, expanded as within quotes.
  std::string expanded(std::size_t begin, std::size_t end) {
    constexpr int kMostDepth = 20;
    if (++depth_ > kMostDepth) fail("brackets are nested too deep");
    const std::string_view whole = std::exchange(text_, text_.substr(0, end));
    Word word;
    ShellWords into;
    for (at_ = begin; at_ < end;) {
      const char c = text_[at_];
      if (c == '$') {
        expand(word, into, true);
      } else if (c == '`') {
        skip_command(word);
      } else {
        if (c != '"' && c != '\'') word.text += c;
        ++at_;
      }
    }
    text_ = whole;
    --depth_;
    return word.text;
  }

  void expand_braced(Word& word, ShellWords& into, bool quoted) {
    const std::size_t end = closing(at_ + 1, '{', '}');
    std::size_t at_form = at_ + 2;
    while (at_form < end && is_shell_name_part(text_[at_form])) ++at_form;
    const std::string name(text_.substr(at_ + 2, at_form - at_ - 2));
    bool whole = false;
    for (const std::string_view all : {"[@]", "[*]"}) {
      if (text_.substr(at_form, all.size()) != all) continue;
      at_form += all.size();
      whole = all == "[@]";
    }
    const Splitting splitting = !quoted ? Splitting::words
                                : whole ? Splitting::elements
                                        : Splitting::none;
    const bool takes_empty = at_form < end && text_[at_form] == ':';
    if (takes_empty) ++at_form;
    const char form = at_form < end ? text_[at_form] : ' ';
    const auto found = variables_.find(name);
    const bool is_set =
        found != variables_.end() && !(takes_empty && without_marks(joined(found->second)).empty());
    if (form == '+' && !name.empty()) {
      if (is_set) append({expanded(at_form + 1, end)}, word, into, splitting);
    } else if ((form == '-' || form == '=') && !name.empty() && !is_set) {
      const std::string value = expanded(at_form + 1, end);
      append({value}, word, into, splitting);
      if (form == '=' && !is_skipped()) variables_[name] = {value};
    } else {
      append_variable(name, word, into, splitting);
    }
    at_ = end + 1;
  }

  void append_variable(const std::string& name, Word& word, ShellWords& into, Splitting splitting) {
    const auto found = variables_.find(name);
    if (found != variables_.end()) return append(ShellWords(found->second), word, into, splitting);
    leave_out("$" + name, word);
  }

  void append(const ShellWords& values, Word& word, ShellWords& into, Splitting splitting) {
    if (splitting == Splitting::none) {
      word.text += joined(values);
      word.is_word = true;
      return;
    }
    bool first = true;
    for (const std::string& value : values) {
      if (!std::exchange(first, false)) finish(word, into);
      if (splitting == Splitting::elements) {
        word.text += value;
        word.is_word = word.is_word || !value.starts_with(kNoWord);
        continue;
      }
      bool in_mark = false;
      for (const char c : value) {
        if (c == ' ' || c == '\t' || c == '\n') {
          finish(word, into);
          continue;
        }
        in_mark = in_mark || c == kMark;
        word.text += c;
        word.is_word = word.is_word || !(in_mark || c == kNoWord);
        in_mark = in_mark && c != kMarkEnd;
      }
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t expanded_ = 0;
  bool in_assignment_ = false;  ///< There, words are not split.
  ShellVariables variables_;
  ShellBranches branches_;
  struct Opened {
    std::string word;
    std::size_t at = 0;
  };
  std::vector<Opened> opened_;           ///< What has no end so far.
  std::vector<std::string> names_;       ///< Of marks.
  std::vector<std::string> given_ends_;  ///< Lines that end what << gives to the command at hand.
  bool awaits_given_end_ = false;        ///< Behind << that stands alone.
  int depth_ = 0;                        ///< Of expanded().
  Holds runs_ = Holds::yes;              ///< Whether && and || let the command at hand run.
  Holds wanted_ = Holds::yes;            ///< What the operator before it wants of the one before.
  std::size_t unknown_ = 0;              ///< How often something was not known.
  ShellScript script_;
};

}  // namespace

ShellScript read_shell_script(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

}  // namespace braid
