#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// A way to have one item: what it costs and what it weighs, both at least zero.
struct KnapsackChoice {
  double cost = 0;
  double weight = 0;
};

/// Equal items, each of which has to be had in one of these ways.
struct KnapsackGroup {
  std::int32_t count = 1;
  std::span<const KnapsackChoice> choices;
};

enum class KnapsackAnswer : std::uint8_t {
  yes,
  no,
  unknown,  ///< Too many partial selections to decide.
};

/// Multiple-choice knapsack: a choice for every item with the sum of weights at most `capacity` and
/// little cost (Kellerer, Pferschy and Pisinger, "Knapsack Problems", 2004, chapter 11).
///
/// From every item's cheapest choice, steps along the convex hulls of (weight, cost) are taken in
/// order of cost per weight saved until the weight fits. Cutting the last step short bounds the
/// cost from below; taking it whole gives the greedy selection. What lies between is decided
/// exactly: choices whose reduced cost exceeds the gap are out, and the others are combined group
/// by group with dominated sums dropped.
class Knapsack {
 public:
  /// Is there a selection that costs at most `limit`? If so, it is in selection() and cost().
  /// Not always the cheapest one.
  KnapsackAnswer at_most(std::span<const KnapsackGroup> groups, double capacity, double limit);
  /// The cheapest selection, or `no` when nothing fits. `unknown`: what was found may not be the
  /// cheapest.
  KnapsackAnswer cheapest(std::span<const KnapsackGroup> groups, double capacity);
  /// The greedy selection, or `no` when nothing fits.
  KnapsackAnswer greedy(std::span<const KnapsackGroup> groups, double capacity);

  double cost() const { return cost_; }
  /// For each group, how many of its items take each choice, group after group.
  std::span<const std::int32_t> selection() const { return selection_; }

 private:
  struct Step {
    double ratio, cost, saved;
    std::int32_t group, from, to;
  };
  struct Sum {
    double cost, weight;
    double reduced;  ///< Cost above the bound so far.
    std::int32_t before;
    std::int32_t mix;
  };
  struct Mix {
    double cost, weight, reduced;
    std::size_t counts;  ///< Offset in mix_counts_.
  };

  bool relax(std::span<const KnapsackGroup> groups, double capacity);
  KnapsackAnswer decide(std::span<const KnapsackGroup> groups, double capacity, double limit,
                        bool first);
  bool mix_choices(const KnapsackGroup& group, double budget);
  void trace(std::span<const KnapsackGroup> groups, std::int32_t last);

  double cost_ = 0;
  std::vector<std::int32_t> selection_;
  std::vector<Step> steps_;
  double bound_ = 0;   ///< Of the relaxation.
  double price_ = 0;   ///< Cost of a unit of weight at its optimum.
  bool tight_ = true;  ///< Something had to give way.
  std::vector<Sum> sums_;
  std::vector<std::size_t> level_begin_;
  std::vector<Mix> mixes_;
  std::vector<std::int32_t> mix_counts_;
};

}  // namespace braid
