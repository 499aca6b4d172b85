#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace braid {

/// Something that the planners of one family alone are told, beside the space: one of a few words.
struct FamilyOption {
  std::string_view name;         ///< "objective": --objective on the command line.
  std::string_view description;  ///< For users: what each word says, and which is the default.
  std::span<const std::string_view> words;
  /// These are more words of the option of that name that all planners have, such as a schedule.
  bool adds_to_general = false;
};

/// All that the planners of a family alone are told.
struct FamilyOptions {
  std::string_view heading;  ///< Of --help: "Planner phaze".
  std::span<const FamilyOption> options;
};

/// The words that were given, by option; what was not given is as by default.
using FamilyWords = std::map<std::string, std::string, std::less<>>;

/// The word that was given for an option; empty: none was.
inline std::string_view word_of(const FamilyWords& words, std::string_view option) {
  const auto found = words.find(option);
  return found == words.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace braid
