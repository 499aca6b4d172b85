#pragma once

#include <functional>
#include <string>
#include <vector>

// CLI11 stays behind this header and verb.cc: each file that includes it takes ten times as long to
// compile.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace braid {

/// An option or argument of a verb. Refers to the verb's; the setters return what they change.
class VerbOption {
 public:
  explicit VerbOption(CLI::Option* option) : option_(option) {}

  VerbOption required(bool value = true) const;
  VerbOption one_of(const std::vector<std::string>& words) const;
  VerbOption excludes(const VerbOption& other) const;
  /// Several values may be given at once, with this between them.
  VerbOption delimiter(char between) const;
  /// How --help names the value.
  VerbOption type_name(const std::string& name) const;
  /// --help tells what the value is where the option is not given.
  VerbOption show_default(const std::string& text) const;
  /// --help lists it under this heading.
  VerbOption group(const std::string& heading) const;
  /// What follows the value is not a further value.
  VerbOption one_value() const;

  bool given() const;
  /// As the user writes it, "--name".
  std::string name() const;
  /// Whether it is --`name`.
  bool is(const std::string& name) const;

 private:
  CLI::Option* option_;
};

/// A verb on the command line of the program. The variables that its options are kept in must
/// outlive parsing.
class Verb {
 public:
  Verb(CLI::App& program, const std::string& name, const std::string& description);

  /// What --help ends with.
  void footer(const std::string& text);
  /// --help leaves out the headings for which this is false when it is asked for, after all options
  /// have been read; --help-all has all.
  void show_group_if(std::function<bool(const std::string& heading)> shown);

  // A name without dashes is an argument's.
  VerbOption add_option(const std::string& name, std::string& value,
                        const std::string& description);
  VerbOption add_option(const std::string& name, std::vector<std::string>& values,
                        const std::string& description);
  VerbOption add_option(const std::string& name, const std::function<void(const std::string&)>& set,
                        const std::string& description);
  /// May be repeated, with one value each time; `set` gets all values at once.
  VerbOption add_repeated(const std::string& name,
                          const std::function<void(const std::vector<std::string>&)>& set,
                          const std::string& description);
  VerbOption add_flag(const std::string& name, bool& value, const std::string& description);

  /// The option of that name, which there must be.
  VerbOption option(const std::string& name) const;
  /// All so far, in the order in which they were added.
  std::vector<VerbOption> options() const;

 private:
  CLI::App* app_;
};

}  // namespace braid
