#include "chip/cores/every_core_schedule.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace braid {
namespace {

/// Placed operators, with a bit for each core that is taken, tensor cores first.
struct Taken {
  double start_s = 0, end_s = 0;
  std::uint64_t cores = 0;
};

class EverySchedule {
 public:
  explicit EverySchedule(const CoreProblem& problem)
      : problem_(problem),
        tensor_(problem.cores.tensor),
        vector_(problem.cores.vector),
        placed_(problem.operators.size()),
        done_(problem.operators.size(), false) {}

  double least() {
    go_on(0, 0);
    return least_;
  }

 private:
  void go_on(std::size_t placed, double makespan_s) {
    if (makespan_s >= least_) return;
    if (placed == problem_.operators.size()) {
      least_ = makespan_s;
      return;
    }
    for (std::size_t i = 0; i < problem_.operators.size(); ++i) {
      if (done_[i]) continue;
      const bool waits =
          std::any_of(problem_.edges.begin(), problem_.edges.end(), [&](const auto& edge) {
            return edge.second == static_cast<std::int32_t>(i) &&
                   !done_[static_cast<std::size_t>(edge.first)];
          });
      if (!waits) place_everywhere(i, placed, makespan_s);
    }
  }

  void place_everywhere(std::size_t i, std::size_t placed, double makespan_s) {
    const CoreOperator& op = problem_.operators[i];
    const std::uint64_t tensors = (1ULL << tensor_) - 1;
    const std::uint64_t vectors = ((1ULL << vector_) - 1) << tensor_;
    std::vector<std::pair<std::uint64_t, double>> ways;
    if (op.kind == CoreKind::none) ways.emplace_back(0, 0);
    if (op.kind == CoreKind::tensor) {
      for (int c = 0; c < tensor_; ++c) ways.emplace_back(1ULL << c, op.one_core_s);
    }
    if (op.kind == CoreKind::vector) {
      for (int c = 0; c < vector_; ++c) ways.emplace_back(1ULL << (tensor_ + c), op.one_core_s);
    }
    if (op.kind == CoreKind::fused) {
      for (int c = 0; c < std::min(tensor_, vector_); ++c) {
        ways.emplace_back((1ULL << c) | (1ULL << (tensor_ + c)), op.one_core_s);
      }
    }
    if (op.kind != CoreKind::none) {
      std::uint64_t all = tensors | vectors;
      if (problem_.rule == AllCoresRule::own_kind && op.kind == CoreKind::tensor) all = tensors;
      if (problem_.rule == AllCoresRule::own_kind && op.kind == CoreKind::vector) all = vectors;
      ways.emplace_back(all, op.all_cores_s);
    }
    for (const auto& [cores, takes_s] : ways) {
      const double start_s = earliest(i, cores);
      placed_[i] = {start_s, start_s + takes_s, cores};
      done_[i] = true;
      go_on(placed + 1, std::max(makespan_s, start_s + takes_s));
      done_[i] = false;
    }
  }

  /// When all that is placed before it, or on its cores, has ended. In order of starts nothing is
  /// ever put before what is placed already.
  double earliest(std::size_t i, std::uint64_t cores) const {
    double start_s = 0;
    for (const auto& [from, to] : problem_.edges) {
      if (to == static_cast<std::int32_t>(i)) {
        start_s = std::max(start_s, placed_[static_cast<std::size_t>(from)].end_s);
      }
    }
    for (std::size_t j = 0; j < placed_.size(); ++j) {
      if (done_[j] && (placed_[j].cores & cores) != 0)
        start_s = std::max(start_s, placed_[j].end_s);
    }
    return start_s;
  }

  const CoreProblem& problem_;
  int tensor_, vector_;
  std::vector<Taken> placed_;
  std::vector<bool> done_;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace

double least_core_makespan(const CoreProblem& problem) { return EverySchedule(problem).least(); }

}  // namespace braid
