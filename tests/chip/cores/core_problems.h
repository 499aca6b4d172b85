#pragma once

#include <cstdint>
#include <random>

#include "braid/chip/cores/core_problem.h"

namespace braid {

/// What random problems look like.
struct CoreDice {
  int operators = 6;
  int most_cores = 4;
  int most_time = 12;    ///< On one core, in whole units; 0 occurs.
  bool fused = true;     ///< Whether some operators need a pair.
  double density = 0.3;  ///< Of the edges.
  AllCoresRule rule = AllCoresRule::alone;
};

/// Times are whole numbers, so that sums are exact.
inline CoreProblem random_core_problem(std::mt19937_64& dice, const CoreDice& like) {
  const auto below = [&](std::uint64_t count) { return static_cast<int>(dice() % count); };
  CoreProblem problem;
  problem.rule = like.rule;
  problem.cores = {1 + below(static_cast<std::uint64_t>(like.most_cores)),
                   1 + below(static_cast<std::uint64_t>(like.most_cores))};
  for (int i = 0; i < like.operators; ++i) {
    CoreOperator op;
    const int kind = below(like.fused ? 10 : 7);
    op.kind = kind < 1   ? CoreKind::none
              : kind < 4 ? CoreKind::tensor
              : kind < 7 ? CoreKind::vector
                         : CoreKind::fused;
    if (op.kind != CoreKind::none) {
      op.one_core_s = below(static_cast<std::uint64_t>(like.most_time) + 1);
      // From as fast as one core to several times as fast, now and then slower.
      op.all_cores_s = std::max(0, static_cast<int>(op.one_core_s) / (1 + below(4)) + below(3) - 1);
    }
    problem.operators.push_back(op);
    for (int j = 0; j < i; ++j) {
      if (static_cast<double>(dice() % 1000) < 1000 * like.density)
        problem.edges.emplace_back(j, i);
    }
  }
  return problem;
}

}  // namespace braid
