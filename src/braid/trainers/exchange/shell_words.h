#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "braid/trainers/exchange/shell_text.h"
#include "braid/trainers/exchange/shell_values.h"

namespace braid {

/// Reads words of a script, without their quotes and with what stands for something put in its
/// place: $NAME, ${NAME} and the forms of it (:- := :+ # % / ^ , : and elements of arrays), $((…)).
/// What is not known is left as a mark.
class ShellWordReader {
 public:
  ShellWordReader(ShellText& text, ShellState& state) : text_(text), state_(state) {}

  /// Adds the words that begin here: one, or as many as variables without quotes stand for.
  void read(ShellWords& into);
  /// The one word that begins here, whose spaces do not divide it, as behind NAME=.
  ShellWords read_undivided();
  /// A part of the text as within quotes.
  std::string expanded(std::size_t begin, std::size_t end);
  /// What the expression of $((…)) or ((…)) gives; what it sets is set. nullopt: not known.
  std::optional<std::int64_t> arithmetic(std::size_t begin, std::size_t end);
  /// As arithmetic(), of an expression that is a word already.
  std::optional<std::int64_t> assigned_by(const std::string& expression);

 private:
  /// How the value of a variable becomes words.
  enum class Splitting : std::uint8_t {
    words,     ///< At spaces: $A.
    elements,  ///< One for each element of an array: "${A[@]}".
    none,      ///< One: "$A".
  };
  /// The word at hand, and whether there is one (quotes make an empty one).
  struct Word {
    std::string text;
    bool is_word = false;
  };
  /// "NAME[INDEX]" in front of a form.
  struct Parameter {
    std::string name, index;
    bool has_index = false, is_length = false, is_indirect = false;
    std::size_t form = 0;  ///< Where its form begins.
  };

  bool ends_word() const;
  bool is_quoted_list() const;
  void read_plain(Word& word);
  void read_quoted(Word& word, ShellWords& into);
  void read_literal(Word& word);
  void skip_command(Word& word);
  void finish(Word& word, ShellWords& into);
  void expand(Word& word, ShellWords& into, bool quoted);
  void expand_arithmetic(Word& word, ShellWords& into);
  void expand_braced(Word& word, ShellWords& into, bool quoted);
  Parameter parameter(std::size_t end);
  std::optional<ShellWords> value_of(const Parameter& parameter);
  std::optional<ShellWords> slice(const ShellWords& value, const Parameter& parameter,
                                  std::size_t end);
  std::optional<ShellWords> transformed(const ShellWords& value, std::size_t form, std::size_t end);
  /// Takes the forms that say what stands for what is not set; false: it is none of these.
  bool take_default(const Parameter& parameter, const std::optional<ShellWords>& value,
                    std::size_t end, Splitting splitting, Word& word, ShellWords& into);
  void append(const ShellWords& values, Word& word, ShellWords& into, Splitting splitting);
  void append_split(const std::string& value, Word& word, ShellWords& into);
  void leave_out(const std::string& name, Word& word);

  ShellText& text_;
  ShellState& state_;
  std::size_t expanded_ = 0;
  bool undivided_ = false;
  int depth_ = 0;
};

}  // namespace braid
