#include "braid/schedule/path_bound.h"

#include <algorithm>
#include <cassert>

#include "braid/base/index.h"
#include "braid/base/rounding.h"

namespace braid {

double pipeline_path_bound_s(const Pipeline& pipeline, PathBoundWorkspace& workspace) {
  assert(pipeline.vp == 1);
  std::vector<double>& before_s = workspace.before_s;
  std::vector<double>& after_s = workspace.after_s;
  const std::size_t stages = at(pipeline.pp);
  before_s.resize(stages);
  after_s.resize(stages);
  for (std::size_t s = 0; s < stages; ++s) {
    before_s[s] = std::max(
        0.0, parameters_ready_s(pipeline.sync[s], pipeline.forward_s[s]) - pipeline.forward_s[s]);
    after_s[s] = tail_s(pipeline.sync[s], pipeline.backward_s[s]);
  }
  // All transfers to a stage come before the first one from it.
  for (const Transfer& transfer : pipeline.transfers) {
    const std::size_t from = at(transfer.source);
    const std::size_t to = at(transfer.target);
    assert(from < to);
    before_s[to] =
        std::max(before_s[to], before_s[from] + pipeline.forward_s[from] + transfer.time_s);
    after_s[to] =
        std::max(after_s[to], transfer.back_s() + pipeline.backward_s[from] + after_s[from]);
  }
  double longest_s = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const double passes_s = static_cast<double>(pipeline.micro_batches_of(s)) *
                            (pipeline.forward_s[s] + pipeline.backward_s[s]);
    longest_s = std::max(longest_s, before_s[s] + passes_s + after_s[s]);
  }
  return longest_s * kBelowTolerance;
}

}  // namespace braid
