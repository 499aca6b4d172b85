#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

/// Whether something holds, as far as a script alone says.
enum class Holds : std::uint8_t { no, yes, unknown };
constexpr Holds holds_if(bool condition) { return condition ? Holds::yes : Holds::no; }

/// Which commands of a script's branches and loops are run: those of the branch that is chosen.
/// Where that is not known, the first that may be, so that what is run is never of two branches.
///
///     ShellBranches branches;
///     branches.begin_if(Holds::no);  // if [ 1 -gt 2 ]; then
///     branches.is_skipped();         // true
///     branches.begin_else();         // else
///     branches.is_skipped();         // false
///     branches.end();                // fi
class ShellBranches {
 public:
  void begin_if(Holds test);
  void begin_else(Holds test = Holds::yes);  ///< Of elif, what its test says.
  /// The commands of the test of elif, which run where no branch before it did.
  void begin_test();
  /// nullopt: not known, as what an assignment of the environment gives.
  void begin_case(std::optional<std::string> subject);
  /// Patterns as they stand before the bracket: "a|b", "*". Ignored outside of `case`.
  void begin_arm(std::string_view patterns);
  void end_arm();                                ///< ;; and the like.
  void begin_loop(Holds runs = Holds::unknown);  ///< Unknown: it may run never or often.
  void begin_group(Holds runs);                  ///< Commands in brackets.
  void end();                                    ///< fi, esac, done, a bracket.

  bool awaits_pattern() const { return !open_.empty() && open_.back().awaits_pattern; }
  bool is_case() const { return !open_.empty() && open_.back().is_case; }
  bool is_skipped() const;
  bool is_uncertain() const;  ///< Not skipped, and nobody knows whether it runs.

 private:
  enum class State : std::uint8_t { runs, skipped, unknown };
  struct Branch {
    State state = State::unknown;
    bool is_chosen = false;  ///< A branch before ran, or may have.
    bool is_case = false, awaits_pattern = false;
    std::optional<std::string> subject;
  };

  static void take(Branch& branch, Holds test);

  std::vector<Branch> open_;
};

}  // namespace braid
