#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace braid {

/// A set of choices, a bit for each.
using Choices = std::uint32_t;
constexpr Choices choice_bit(std::size_t choice) { return Choices{1} << choice; }

/// Choices that are made together, and the state behind them.
template <typename State>
struct Step {
  Choices next;
  State after;
};

/// Makes all choices of `left`, the best one first (steepest descent): the single one behind which
/// the state is best; where no single one gives a state, the best pair; else all at once. Ends
/// early where these give none. `walk` has
///   State                                the type of a state,
///   std::optional<State> after(made)     the state with these choices made; nullopt: there is
///   none, bool is_better(a, b)                 of two states, bool may_be_next(made, choice)
///   whether this choice changes anything yet, alone.
/// Cost: at most quadratic in the choices, each an after(), and cubic where only pairs work.
template <typename Walk>
class SteepestSteps {
 public:
  using State = typename Walk::State;

  explicit SteepestSteps(const Walk& walk) : walk_(walk) {}

  std::vector<Step<State>> steps(Choices left) {
    std::vector<Step<State>> all;
    Choices made = 0;
    while (left != 0) {
      const Choices next = best_next(left, made);
      std::optional<State> after = walk_.after(made | next);
      if (!after) break;
      left &= ~next;
      made |= next;
      all.push_back({next, std::move(*after)});
    }
    return all;
  }

 private:
  static constexpr std::size_t kMostChoices = 32;

  Choices best_next(Choices left, Choices made) const {
    Choices best = 0;
    std::optional<State> found;
    const auto look_at = [&](Choices next) {
      std::optional<State> after = walk_.after(made | next);
      if (!after || (found && !walk_.is_better(*after, *found))) return;
      found = std::move(after);
      best = next;
    };
    const auto is_left = [left](std::size_t choice) { return (left & choice_bit(choice)) != 0; };
    for (std::size_t c = 0; c < kMostChoices; ++c) {
      const bool alone = left == choice_bit(c);
      if (is_left(c) && (alone || walk_.may_be_next(made, choice_bit(c)))) look_at(choice_bit(c));
    }
    for (std::size_t c = 0; c < kMostChoices && best == 0; ++c) {
      for (std::size_t d = c + 1; d < kMostChoices && is_left(c); ++d) {
        if (is_left(d)) look_at(choice_bit(c) | choice_bit(d));
      }
    }
    return best != 0 ? best : left;
  }

  const Walk& walk_;
};

}  // namespace braid
