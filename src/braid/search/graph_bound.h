#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

/// Some stages of a pipeline on which layers take these times.
struct StagePace {
  std::span<const double> layer_s;
  std::int64_t count = 1;
};

/// No way to give layers to the stages, whole or in parts, in any order, makes
/// `of_sum` · (sum of stage times) + `of_longest` · (longest stage time) less.
///
/// By duality: whatever the weights w ≥ 0 of the stages, 1 in all, that is at least what it takes
/// when each layer goes where (of_sum + of_longest · w) · time is least. The weights are the best
/// ones for stages that differ by a factor; for those the bound is attained, in parts. And the
/// longest layer is on some stage. Linear in layers times entries of `stages`.
double least_pipeline_s(std::span<const StagePace> stages, double of_sum, double of_longest);

}  // namespace braid
