#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "braid/base/index.h"
#include "braid/planners/mixed/problem.h"

namespace braid {

/// What the stages of a problem take, and which fit. Layers [left, right) of a config run in a
/// variant.
class MixedStageTimes {
 public:
  explicit MixedStageTimes(const MixedProblem& problem);

  std::size_t layers() const { return layers_; }

  struct Time {
    double forward_s = 0, backward_s = 0;
    double head_s = 0;  ///< The first forward pass does not start before, in effect.
    double tail_s = 0;  ///< After the last backward pass.
    double plain_forward_s = 0, plain_backward_s = 0;  ///< Without data parallelism.
    double time_s() const { return forward_s + backward_s; }
  };
  Time of(std::size_t config, std::size_t variant, std::int32_t left, std::int32_t right,
          const SyncRates& rates) const;
  /// The same in two steps: without data parallelism, and what that adds.
  Time plain(std::size_t config, std::size_t variant, std::int32_t left, std::int32_t right) const;
  void synchronise(Time& plain, std::size_t config, std::size_t variant, std::int32_t left,
                   std::int32_t right, const SyncRates& rates) const;

  /// No stages before layer `left` take less, in whatever configs.
  double least_forward_before_s(std::int32_t left) const { return least_forward_s_[at(left)]; }
  double least_backward_before_s(std::int32_t left) const { return least_backward_s_[at(left)]; }
  double least_before_s(std::int32_t left) const { return least_s_[at(left)]; }
  /// No pipeline has a smaller base_s: every layer in its fastest config.
  double least_base_s() const { return least_s_.back(); }

  /// For each right end the least left end that fits memory with `in_flight` micro-batches; the
  /// right end itself when nothing does.
  const std::vector<std::int32_t>& first_fitting(std::size_t config, std::size_t variant,
                                                 std::int64_t in_flight);

 private:
  /// Sums over the layers before each, of one variant.
  struct Sums {
    std::vector<double> forward_s, backward_s, dense, expert;
  };

  const MixedProblem& problem_;
  std::size_t layers_ = 0, variants_ = 1;
  std::vector<std::vector<Sums>> sums_;  ///< [config][variant]
  std::vector<double> least_forward_s_, least_backward_s_, least_s_;
  /// [(config · variants + variant)][in flight], by right end; empty: not asked yet.
  std::vector<std::vector<std::vector<std::int32_t>>> fitting_;
};

}  // namespace braid
