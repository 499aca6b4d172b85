#include <algorithm>
#include <cstddef>
#include <vector>

#include "braid/chip/cores/core_block.h"

namespace braid {
namespace {

/// Few operators have few weights worth finding.
constexpr std::size_t kMostRounds = 400, kRoundsPerOperator = 6;

/// Of a unit of time on one core, what it adds to the mean.
double weight_on_one(const CoreBlock& block, const MeanBound& bound, std::size_t i) {
  const CoreKind kind = block.operators[i].work.kind;
  double weight = bound.through[i];
  if (needs_tensor_core(kind) && block.cores.tensor > 0) {
    weight += bound.tensor / static_cast<double>(block.cores.tensor);
  }
  if (needs_vector_core(kind) && block.cores.vector > 0) {
    weight += bound.vector / static_cast<double>(block.cores.vector);
  }
  return weight;
}

double weight_on_all(const CoreBlock& block, const MeanBound& bound, std::size_t i) {
  if (block.rule == AllCoresRule::alone) return 1;
  const CoreKind kind = block.operators[i].work.kind;
  return bound.through[i] + (needs_tensor_core(kind) ? bound.tensor : 0) +
         (needs_vector_core(kind) ? bound.vector : 0);
}

/// Fills in the costs and modes that follow from the weights; returns the sum of the costs of what
/// is left.
double fill_costs(const CoreBlock& block, const Bitset& left, MeanBound& bound) {
  bound.cost_s.resize(block.operators.size());
  bound.spread.resize(block.operators.size());
  for (std::size_t i = 0; i < block.operators.size(); ++i) {
    const BlockOperator& op = block.operators[i];
    const double one_s = op.work.one_core_s * weight_on_one(block, bound, i);
    const double all_s = op.work.all_cores_s * weight_on_all(block, bound, i);
    bound.spread[i] = op.may_spread && all_s < one_s;
    bound.cost_s[i] = bound.spread[i] ? all_s : one_s;
  }
  double sum_s = 0;
  left.for_each([&](std::size_t i) { sum_s += bound.cost_s[i]; });
  return sum_s;
}

/// What takes longest when modes are given, beside what runs alone: cores of a kind, or a chain.
struct Busiest {
  enum class What { tensor, vector, chain } what = What::chain;
  std::vector<std::size_t> chain;
};

Busiest busiest_of(const CoreBlock& block, const Bitset& left, const std::vector<bool>& spread) {
  const std::size_t count = block.operators.size();
  const bool alone = block.rule == AllCoresRule::alone;
  double tensor_s = 0, vector_s = 0;
  std::vector<double> longest_s(count, 0);  // Of the chains that end with it.
  std::vector<std::int32_t> from(count, -1);
  std::size_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!left.test(i)) continue;
    const BlockOperator& op = block.operators[i];
    const double one_s = spread[i] ? 0 : op.work.one_core_s;
    const double all_s = spread[i] && !alone ? op.work.all_cores_s : 0;
    if (needs_tensor_core(op.work.kind) && block.cores.tensor > 0) {
      tensor_s += one_s / static_cast<double>(block.cores.tensor) + all_s;
    }
    if (needs_vector_core(op.work.kind) && block.cores.vector > 0) {
      vector_s += one_s / static_cast<double>(block.cores.vector) + all_s;
    }
    for (const std::int32_t earlier : op.earlier) {
      if (!left.test(static_cast<std::size_t>(earlier))) continue;
      if (from[i] < 0 || longest_s[static_cast<std::size_t>(earlier)] >
                             longest_s[static_cast<std::size_t>(from[i])]) {
        from[i] = earlier;
      }
    }
    longest_s[i] = one_s + all_s + (from[i] < 0 ? 0 : longest_s[static_cast<std::size_t>(from[i])]);
    if (longest_s[i] > longest_s[last]) last = i;
  }
  if (tensor_s >= std::max(vector_s, longest_s[last])) return {Busiest::What::tensor, {}};
  if (vector_s >= longest_s[last]) return {Busiest::What::vector, {}};
  Busiest chain;
  for (auto i = static_cast<std::int32_t>(last); i >= 0; i = from[static_cast<std::size_t>(i)]) {
    chain.chain.push_back(static_cast<std::size_t>(i));
  }
  return chain;
}

/// Moves the weights by `step` towards what is busiest.
void lean_towards(const Busiest& busiest, double step, MeanBound& bound) {
  bound.tensor *= 1 - step;
  bound.vector *= 1 - step;
  bound.chains *= 1 - step;
  for (double& share : bound.through) share *= 1 - step;
  if (busiest.what == Busiest::What::tensor) bound.tensor += step;
  if (busiest.what == Busiest::What::vector) bound.vector += step;
  if (busiest.what == Busiest::What::chain) bound.chains += step;
  for (const std::size_t i : busiest.chain) bound.through[i] += step;
}

}  // namespace

MeanBound core_bound(const CoreBlock& block, CoreKind kind) {
  MeanBound bound;
  bound.through.assign(block.operators.size(), 0);
  (needs_tensor_core(kind) ? bound.tensor : bound.vector) = 1;
  fill_costs(block, Bitset(block.operators.size()), bound);
  return bound;
}

MeanBound mean_bound(const CoreBlock& block, const Bitset& left) {
  MeanBound bound;
  bound.through.assign(block.operators.size(), 0);
  bound.spread.assign(block.operators.size(), false);
  MeanBound best;
  double best_s = -1;
  const std::size_t rounds = std::min(kMostRounds, kRoundsPerOperator * left.count());
  for (std::size_t round = 0; round < rounds; ++round) {
    lean_towards(busiest_of(block, left, bound.spread), 2 / static_cast<double>(round + 2), bound);
    const double sum_s = fill_costs(block, left, bound);
    if (sum_s > best_s) {
      best_s = sum_s;
      best = bound;
    }
  }
  return best;
}

}  // namespace braid
