#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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

/// The steps from where some choices are made: each single choice of `left` that gives a state;
/// where none does, the pairs that do of the first choice that has any; else all that is left at
/// once, or nothing where that gives no state either. `walk` has
///   State                            the type of a state,
///   std::optional<State> after(made) the state with these choices made; nullopt: there is none,
///   bool is_better(a, b)             of two states,
///   bool may_be_next(made, choice)   whether this choice changes anything yet, alone.
/// Cost: linear in the choices, each an after(), and quadratic where only pairs work.
template <typename Walk>
std::vector<Step<typename Walk::State>> next_steps(const Walk& walk, Choices left, Choices made) {
  constexpr std::size_t kMostChoices = 32;
  std::vector<Step<typename Walk::State>> steps;
  const auto look_at = [&](Choices next) {
    if (auto after = walk.after(made | next)) steps.push_back({next, *std::move(after)});
  };
  const auto is_left = [left](std::size_t choice) { return (left & choice_bit(choice)) != 0; };
  for (std::size_t c = 0; c < kMostChoices; ++c) {
    const bool alone = left == choice_bit(c);
    if (is_left(c) && (alone || walk.may_be_next(made, choice_bit(c)))) look_at(choice_bit(c));
  }
  for (std::size_t c = 0; c < kMostChoices && steps.empty(); ++c) {
    for (std::size_t d = c + 1; d < kMostChoices && is_left(c); ++d) {
      if (is_left(d)) look_at(choice_bit(c) | choice_bit(d));
    }
  }
  if (steps.empty()) look_at(left);
  return steps;
}

/// Makes all choices of `left`, the step behind which the state is best first (steepest descent).
/// Ends early where next_steps() has none. Cost: at most quadratic in the choices, each an after(),
/// and cubic where only pairs work.
template <typename Walk>
class SteepestSteps {
 public:
  using State = typename Walk::State;

  explicit SteepestSteps(const Walk& walk) : walk_(walk) {}

  std::vector<Step<State>> steps(Choices left) const {
    std::vector<Step<State>> all;
    Choices made = 0;
    while (left != 0) {
      std::vector<Step<State>> found = next_steps(walk_, left, made);
      if (found.empty()) break;
      std::size_t best = 0;
      for (std::size_t s = 1; s < found.size(); ++s) {
        if (walk_.is_better(found[s].after, found[best].after)) best = s;
      }
      left &= ~found[best].next;
      made |= found[best].next;
      all.push_back(std::move(found[best]));
    }
    return all;
  }

 private:
  const Walk& walk_;
};

/// A walk that looks each state up once.
template <typename Walk>
class RememberingWalk {
 public:
  using State = typename Walk::State;

  explicit RememberingWalk(const Walk& walk) : walk_(walk) {}

  const std::optional<State>& after(Choices made) const {
    const auto found = known_.find(made);
    return found != known_.end() ? found->second
                                 : known_.emplace(made, walk_.after(made)).first->second;
  }
  bool is_better(const State& a, const State& b) const { return walk_.is_better(a, b); }
  bool may_be_next(Choices made, Choices next) const { return walk_.may_be_next(made, next); }
  std::int64_t rise(const State& a, const State& b) const { return walk_.rise(a, b); }
  bool fits(const State& state) const { return walk_.fits(state); }

 private:
  const Walk& walk_;
  mutable std::map<Choices, std::optional<State>> known_;
};

/// Makes all choices of `left` in the order of steps, as next_steps() has them, in which the sum of
/// the rises is least; of such orders one with fewest states that do not fit, and of these, from
/// the first step on, the one behind which the state is best. `walk` has also
///   std::int64_t rise(a, b)  how much worse b is than a, at least 0,
///   bool fits(state)
/// Cost: a next_steps() for every set of choices that can be made, at most 2 to the power of their
/// number: for a RememberingWalk of few.
template <typename Walk>
class LeastRises {
 public:
  using State = typename Walk::State;

  explicit LeastRises(const Walk& walk) : walk_(walk) {}

  /// Nothing where there is no state before the first or behind the last of them.
  std::vector<Step<State>> steps(Choices left) {
    std::vector<Step<State>> all;
    std::optional<State> here = walk_.after(0);
    if (!here || !walk_.after(left)) return all;
    Choices made = 0;
    while (left != 0) {
      const Choices next = from(made, *here, left).next;
      here = walk_.after(made | next);
      all.push_back({next, *here});
      left &= ~next;
      made |= next;
    }
    return all;
  }

 private:
  /// What is least from some choices on, and the step that leads there.
  struct Rest {
    std::int64_t rises = 0;
    int misfits = 0;
    Choices next = 0;
  };

  const Rest& from(Choices made, const State& here, Choices left) {
    const auto known = rests_.find(made);
    if (known != rests_.end()) return known->second;
    std::optional<Rest> least;
    std::optional<State> behind;
    if (left == 0) least.emplace();
    for (const Step<State>& step : left != 0 ? next_steps(walk_, left, made) : Steps()) {
      Rest rest = from(made | step.next, step.after, left & ~step.next);
      rest.rises += walk_.rise(here, step.after);
      rest.misfits += walk_.fits(step.after) ? 0 : 1;
      rest.next = step.next;
      const bool is_less =
          !least || std::pair(rest.rises, rest.misfits) < std::pair(least->rises, least->misfits);
      const bool is_equal = least && rest.rises == least->rises && rest.misfits == least->misfits;
      if (!is_less && !(is_equal && walk_.is_better(step.after, *behind))) continue;
      least = rest;
      behind = step.after;
    }
    return rests_.emplace(made, *least).first->second;
  }

  using Steps = std::vector<Step<State>>;
  const Walk& walk_;
  std::map<Choices, Rest> rests_;
};

}  // namespace braid
