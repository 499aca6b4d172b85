#include "braid/trainers/exchange/shell_script.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "braid/base/text.h"
#include "braid/trainers/exchange/shell_assignments.h"
#include "braid/trainers/exchange/shell_branches.h"
#include "braid/trainers/exchange/shell_given_texts.h"
#include "braid/trainers/exchange/shell_lists.h"
#include "braid/trainers/exchange/shell_tests.h"
#include "braid/trainers/exchange/shell_text.h"
#include "braid/trainers/exchange/shell_words.h"

namespace braid {
namespace {

template <std::size_t N>
bool is_one_of(const std::string& word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 5> kDeclarations = {"export", "declare", "typeset", "local",
                                                           "readonly"};
constexpr std::array<std::string_view, 4> kLoops = {"for", "while", "until", "select"};

/// What scripts read in.
struct Sources {
  static constexpr std::size_t kMost = 64;
  const SourcedText& text_of;
  std::vector<std::string> open;  ///< Those that are being read, which do not read themselves.
  std::size_t read = 0;
  std::vector<std::string> missing;
};

class Reader {
 public:
  /// `state`: what is known before the first line. `is_unsure`: nobody knows whether all of it
  /// runs.
  Reader(std::string_view text, const std::string& file, ShellState state, Sources& sources,
         bool is_unsure = false)
      : state_(std::move(state)),
        text_(text, file),
        words_(text_, state_),
        assignments_(text_, words_, state_),
        sources_(sources),
        is_unsure_(is_unsure) {}

  /// Reads all of it, and gives what is known behind its last line.
  ShellState read_in() {
    read_commands();
    return std::move(state_);
  }

  ShellScript read() {
    read_commands();
    script_.undefined = std::move(state_.undefined);
    script_.uncertain = std::move(state_.uncertain);
    for (const std::string& name : state_.exported) {
      const auto found = state_.variables.find(name);
      if (found != state_.variables.end()) script_.exported.insert(*found);
    }
    script_.variables = std::move(state_.variables);
    script_.missing_files = std::move(sources_.missing);
    return std::move(script_);
  }

 private:
  void read_commands() {
    while (!text_.is_done()) read_command();
    for (auto open = opened_.rbegin(); open != opened_.rend(); ++open) {
      if (open->word == "{" || open->word == "(") continue;
      text_.move_to(open->at);
      text_.fail("'" + open->word + "' is not closed");
    }
  }

  /// What is open: a branch, a loop or brackets.
  struct Opened {
    std::string word;
    std::size_t at = 0;
    ShellList outside;        ///< The list that it is a part of.
    bool has_branch = false;  ///< `then` or `do` was there.
  };

  bool is_skipped() const { return branches_.is_skipped() || list_.runs() == Holds::no; }

  void note_where() {
    state_.is_skipped = is_skipped();
    state_.is_unsure = !state_.is_skipped &&
                       (is_unsure_ || list_.runs() == Holds::unknown || branches_.is_uncertain());
  }

  void open(const std::string& word, std::size_t at) {
    branches_.begin_group(list_.runs());
    opened_.push_back({word, at, list_, false});
    list_ = {};
  }

  bool is_open(std::string_view word) const {
    return !opened_.empty() && opened_.back().word == word;
  }

  /// Closes what began with one of the words, and brackets in it that are not closed.
  void close(std::initializer_list<std::string_view> begun_by) {
    const auto matches = [&](const Opened& each) {
      return std::find(begun_by.begin(), begun_by.end(), each.word) != begun_by.end();
    };
    if (std::none_of(opened_.begin(), opened_.end(), matches)) return;
    for (bool found = false; !found; opened_.pop_back()) {
      found = matches(opened_.back());
      if (opened_.back().has_branch) branches_.end();
      branches_.end();
      list_ = opened_.back().outside;
    }
    list_.end_command({});
  }

  void read_command() {
    if (branches_.awaits_pattern()) return read_pattern();
    note_where();
    text_.skip_blank(false);
    const std::size_t begin = text_.position();
    if (text_.is_at("((")) return read_arithmetic();
    if (text_.is_at("(")) {
      text_.move(1);
      return open("(", begin);
    }
    if (text_.is_at(")") && is_open("(")) {
      text_.move(1);
      close({"("});
      return separate();
    }
    ShellCommand command;
    bool declares = false, exports = false;
    while (!ends_command()) {
      if ((command.empty() || declares) && assignments_.read(exports)) {
        text_.skip_blank(false);
        continue;
      }
      read_word(command);
      if (!declares && command.size() == 1) {
        if (take_keyword(command[0], begin)) return;
        declares = is_one_of(command[0], kDeclarations);
        exports = command[0] == "export";
      }
      if (declares) take_declared(command, exports);
      text_.skip_blank(false);
      if (command.size() == 1 && text_.is_at("()")) {
        text_.move(2);
        return;  // A function, whose body is read where it stands.
      }
      if (command.size() == 1 && command[0] == "[[") read_extended_test(command);
      if (command.size() == 3 && command[0] == "case" && command[2] == "in") {
        return begin_case(command, begin);
      }
    }
    finish(command, begin);
    separate();
  }

  bool ends_command() const { return text_.ends_command() || (text_.is_at(")") && is_open("(")); }

  /// The names behind export, and the options of declare.
  void take_declared(ShellCommand& command, bool& exports) {
    if (command.empty()) return;
    const std::string& word = command.back();
    if (word == "-x" || word == "-gx") exports = true;
    if (exports && !word.empty() && is_shell_name_start(word[0])) state_.exported.insert(word);
    command.clear();
  }

  /// Words that other commands follow on the same line.
  bool take_keyword(const std::string& word, std::size_t begin) {
    if (word == "if" || word == "while" || word == "until" || word == "{") {
      open(word, begin);
    } else if (word == "!") {
      list_.negate();
    } else if (word == "then" || word == "do") {
      begin_body();
    } else if (word == "elif") {
      if (is_open("if")) branches_.begin_test();
      list_ = {};
    } else if (word == "else") {
      if (is_open("if")) branches_.begin_else();
      list_ = {};
    } else if (word == "function") {
      ShellCommand name;
      text_.skip_blank(false);
      if (!text_.ends_command()) read_word(name);
      text_.skip_blank(false);
      if (text_.is_at("()")) text_.move(2);
    } else {
      return take_end(word);
    }
    return true;
  }

  bool take_end(const std::string& word) {
    if (word == "fi") {
      close({"if"});
    } else if (word == "done") {
      close({"for", "while", "until", "select"});
    } else if (word == "esac") {
      close({"case"});
    } else if (word == "}") {
      close({"{"});
    } else {
      return false;
    }
    text_.skip_blank(false);
    // Words behind it, such as "< file", are no command.
    ShellCommand rest;
    while (!ends_command()) {
      read_word(rest);
      text_.skip_blank(false);
    }
    separate();
    return true;
  }

  /// Behind the test of a branch or a loop.
  void begin_body() {
    if (opened_.empty()) return;
    Opened& open = opened_.back();
    const Holds holds = list_.condition();
    list_ = {};
    if (open.word == "if") {
      if (open.has_branch) {
        branches_.begin_else(holds);
      } else {
        branches_.begin_if(holds);
      }
    } else if (!open.has_branch && is_one_of(open.word, kLoops)) {
      const Holds stays =
          open.word == "until" && holds != Holds::unknown ? holds_if(holds == Holds::no) : holds;
      const bool is_for = open.word == "for" || open.word == "select";
      branches_.begin_loop(is_for ? for_runs_ : stays == Holds::no ? stays : Holds::unknown);
    } else {
      return;
    }
    open.has_branch = true;
  }

  /// ((…)), which holds where it is not 0, or the head of "for ((…))".
  void read_arithmetic() {
    const std::size_t begin = text_.position();
    const std::size_t end = text_.closing(begin, '(', ')');
    const auto value = words_.arithmetic(begin + 2, end > begin + 2 ? end - 1 : begin + 2);
    text_.move_to(end + 1);
    list_.end_command({value ? holds_if(*value != 0) : Holds::unknown, false});
    separate();
  }

  /// A sign that stands in "[[ … ]]" alone; false: there is none.
  bool read_test_sign(ShellCommand& command) {
    for (const std::string_view sign : {"&&", "||", "(", ")", "<", ">"}) {
      if (!text_.is_at(sign)) continue;
      command.emplace_back(sign);
      text_.move(sign.size());
      text_.skip_blank(true);
      return true;
    }
    return false;
  }

  /// Further words of "[[ … ]]", among which && and brackets stand.
  void read_extended_test(ShellCommand& command) {
    while (!text_.is_done() && command.back() != "]]") {
      if (read_test_sign(command)) continue;
      if (text_.ends_command()) return;
      words_.read(command);
      text_.skip_blank(false);
    }
  }

  void read_word(ShellCommand& command) {
    const std::size_t before = command.size();
    words_.read(command);
    if (command.size() > before) given_texts_.note(command.back());
  }

  /// What separates a command from the next one.
  void separate() {
    text_.skip_blank(false);
    if (text_.is_at("&&") || text_.is_at("||")) {
      list_.chain(text_.is_at("&&"));
      return text_.move(2);
    }
    if (branches_.is_case() && text_.is_at(";;")) {
      text_.move(text_.is_at(";;&") ? 3 : 2);
      list_ = {};
      return branches_.end_arm();
    }
    if (text_.is_at("|")) return text_.move(text_.is_at("|&") ? 2 : 1);
    if (text_.is_at(")")) {
      if (!is_open("(")) text_.move(1);
      return;
    }
    list_.end();
    if (text_.is_at("\n")) given_texts_.skip(text_);
    text_.move(1);
  }

  /// Whether a mark stands for a variable that nothing sets.
  bool is_unset(std::size_t mark) const {
    if (mark >= state_.names.size()) return false;
    const std::string& name = state_.names[mark];
    return name.size() > 1 && name[0] == '$' &&
           std::all_of(name.begin() + 1, name.end(), is_shell_name_part);
  }

  /// The words of a test with nothing in place of variables that are not set.
  ShellCommand with_unset_empty(const ShellCommand& command) const {
    ShellCommand words;
    for (const std::string& word : command) {
      std::string plain = word;
      const bool is_no_word = !word.empty() && word.front() == kNoWord;
      const std::vector<std::size_t> marks = take_marks(plain);
      const bool is_known = std::all_of(marks.begin(), marks.end(),
                                        [this](std::size_t mark) { return is_unset(mark); });
      if (marks.empty() || !is_known) {
        words.push_back(word);
      } else if (!is_no_word) {
        words.push_back(std::move(plain));
      }
    }
    return words;
  }

  /// Takes note of what a condition depends on and is not known.
  void note_condition(const ShellCommand& command) {
    for (std::string word : command) {
      for (const std::size_t number : take_marks(word)) {
        if (number < state_.names.size() && !is_skipped()) {
          note_name(state_.names[number], script_.of_conditions);
        }
      }
    }
  }

  /// "2>", ">>log", "&>": where output goes, which no program gets as an argument.
  static bool is_redirection(const std::string& word) {
    if (word == "<" || word.starts_with("<<")) return true;
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
        is_target = word.back() == '>' || word.back() == '<';
        continue;
      }
      const bool is_no_word = !word.empty() && word.front() == kNoWord;
      for (const std::size_t number : take_marks(word)) {
        if (number >= state_.names.size()) continue;
        script_.unknown_parts.push_back(
            {script_.commands.size(), plain.size(), is_no_word, state_.names[number]});
      }
      if (!is_no_word) plain.push_back(std::move(word));
    }
    if (!plain.empty()) script_.commands.push_back(std::move(plain));
  }

  void finish(ShellCommand& command, std::size_t begin) {
    if (command.empty()) return list_.end_command({Holds::yes, false});
    const std::string& word = command.front();
    if (word == "for" || word == "select") return begin_for(command, begin);
    if (word == "case") return begin_case(command, begin);
    if (word.starts_with('[') || word == "test") {
      note_condition(command);
      return list_.end_command({value_of_test(with_unset_empty(command)), false});
    }
    if (word == "true" || word == "false") {
      return list_.end_command({holds_if(word == "true"), false});
    }
    if (word == "let") return run_let(command);
    if (!is_skipped()) {
      const std::size_t before = script_.commands.size();
      add_command(command);
      if (script_.commands.size() > before) read_sourced(script_.commands.back());
    }
    list_.end_command({});
  }

  /// Sets what the file sets that the command reads in, if it does.
  void read_sourced(const ShellCommand& command) {
    if (command.size() < 2 || (command[0] != "source" && command[0] != ".")) return;
    const std::string& name = command[1];
    const bool is_open =
        std::find(sources_.open.begin(), sources_.open.end(), name) != sources_.open.end();
    if (is_open || sources_.read >= Sources::kMost) return;
    ++sources_.read;
    std::optional<std::string> text = sources_.text_of ? sources_.text_of(name) : std::nullopt;
    // Of "$FOLDER/env.sh" whose folder is not known the rest is left: most often it is the
    // script's.
    if (!text && sources_.text_of && name.starts_with('/')) text = sources_.text_of(name.substr(1));
    if (!text) return note_name(name, sources_.missing);
    sources_.open.push_back(name);
    const bool is_unsure = state_.is_unsure;
    state_ = Reader(*text, name, std::move(state_), sources_, is_unsure).read_in();
    sources_.open.pop_back();
  }

  /// let "NAME*=2".
  void run_let(const ShellCommand& command) {
    std::optional<std::int64_t> value;
    for (std::size_t i = 1; i < command.size(); ++i) {
      value = words_.assigned_by(command[i]);
    }
    list_.end_command({value ? holds_if(*value != 0) : Holds::unknown, false});
  }

  /// "for NAME in …", of which the first value is taken; once where there is one alone.
  void begin_for(const ShellCommand& command, std::size_t begin) {
    open(command.front(), begin);
    for_runs_ = Holds::unknown;
    if (command.size() < 3 || command[2] != "in") return;
    const ShellWords values(command.begin() + 3, command.end());
    if (has_marks(values)) return;
    for_runs_ = values.empty() ? Holds::no : values.size() == 1 ? Holds::yes : Holds::unknown;
    if (values.empty()) return;
    set_variable(command[1], {values.front()}, state_);
    if (values.size() > 1 && !state_.is_skipped) state_.of_loops.insert(command[1]);
  }

  void begin_case(const ShellCommand& command, std::size_t begin) {
    note_condition(command);
    const ShellCommand words = with_unset_empty(command);
    const std::string subject = words.size() > 2 ? words[1] : "";
    open("case", begin);
    branches_.begin_case(has_marks({subject}) ? std::nullopt : std::optional(subject));
    opened_.back().has_branch = true;
  }

  /// What stands before the bracket of the next arm of `case`, or its end.
  void read_pattern() {
    for (text_.skip_blank(true); text_.is_at(";"); text_.skip_blank(true)) text_.move(1);
    const std::string_view behind = text_.part(text_.position() + 4, text_.position() + 5);
    if (text_.is_at("esac") && (behind.empty() || !is_shell_name_part(behind[0]))) {
      text_.move(4);
      close({"case"});
      return separate_behind_case();
    }
    const std::size_t at = text_.position();
    const std::size_t end = text_.find(")", text_.is_at("(") ? at + 1 : at);
    if (end < text_.end()) branches_.begin_arm(text_.part(at, end));
    text_.move_to(std::min(end + 1, text_.end()));
  }

  void separate_behind_case() {
    text_.skip_blank(false);
    if (!text_.is_done()) separate();
  }

  ShellState state_;
  ShellText text_;
  ShellWordReader words_;
  ShellAssignments assignments_;
  ShellGivenTexts given_texts_;
  ShellBranches branches_;
  ShellList list_;
  Sources& sources_;
  bool is_unsure_;
  std::vector<Opened> opened_;       ///< What has no end so far.
  Holds for_runs_ = Holds::unknown;  ///< Of the `for` that was read last.
  ShellScript script_;
};

}  // namespace

ShellScript read_shell_script(std::string_view text, const std::string& file,
                              const ShellVariables& known, const SourcedText& sourced) {
  ShellState state;
  state.variables = known;
  Sources sources{sourced, {}, 0, {}};
  return Reader(text, file, std::move(state), sources).read();
}

std::vector<ShellCommand> inner_commands(const ShellCommand& command, const ShellScript& script,
                                         const std::string& file) {
  for (const std::string& word : command) {
    const bool starts_program = contains(word, ".py") || contains(word, " -m ");
    if (!starts_program || !contains(word, " ") || !contains(word, "--")) continue;
    constexpr std::string_view kWrap = "--wrap=";
    const std::size_t begin = word.starts_with(kWrap) ? kWrap.size() : 0;
    return read_shell_script(std::string_view(word).substr(begin), file, script.exported).commands;
  }
  return {};
}

}  // namespace braid
