#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/planners/piper/tables.h"

namespace braid {

/// Decides whether there are stages none of which takes longer than a threshold. Keeps references
/// to the problem and its tables.
///
/// First, from the empty suffix up, the least devices and, apart from that, the least sum of data-
/// parallel degrees that each suffix can do with are bounded: by the least degree of each stage
/// that keeps the threshold and the linear relaxation of the knapsack, behind as small a sum as
/// possible. Often the stages behind the bound are a solution, or there can be none. Else the
/// undominated pairs of both numbers are followed exactly, those left out that with the devices
/// which the layers before need at least (bounded in the same way, from the whole suffix down) are
/// too many.
class PiperThreshold {
 public:
  /// `most_work`: stages examined before giving up; 0: no limit.
  PiperThreshold(const PiperProblem& problem, PiperTables& tables, std::int64_t most_work);

  /// False: there are no such stages for this limit or any lower one.
  bool may_keep(double limit);
  /// The stages behind the bounds that may_keep(limit) has just found, if they keep the limit.
  std::optional<std::vector<PiperStage>> bounding_stages(double limit);
  /// Such stages, bounds or not; nullopt when there are none or the work is used up.
  /// may_keep(limit) has just been true.
  std::optional<std::vector<PiperStage>> followed_stages(double limit);
  /// The one or the other, in the order of their cost; nullopt when there are none or the work is
  /// used up.
  std::optional<PiperSolution> keep(double limit);

  /// False once a knapsack has been too large to decide: "no" may then be wrong.
  bool proven() const { return tables_.proven(); }
  bool exhausted() const { return most_work_ > 0 && work_ >= most_work_; }
  std::int64_t work() const { return work_; }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr std::int64_t kTooMany = std::int64_t{1} << 60;
  /// The least whole number of at least x >= 0, but for rounding.
  static std::int64_t ceil_of(double x);

  /// A stage in front of a suffix.
  struct Link {
    std::int32_t inner = kNone;
    std::int32_t degree = 0;
    std::int32_t dp = 0;
  };
  /// Stages for a suffix.
  struct State : PiperUse {
    std::int32_t inner = kNone;
    std::int32_t set = 0;
    std::int32_t degree = 0, dp = 0;  ///< Of the first stage; indices in the tables.
    std::int64_t in_flight = 0;
  };
  struct Cached {
    bool known = false;
    PiperStageSums sums;
  };

  PiperStageSums& stage_of(std::size_t inner, std::size_t outer, std::int32_t degree);
  std::int32_t first_dp(PiperStageSums& stage, std::size_t fast, std::int64_t behind, double limit,
                        std::int64_t most_dp, bool exact);
  std::size_t first_fast_dp(const PiperStageSums& stage, double limit) const;
  std::size_t first_synchronised_dp(const PiperStageSums& stage, double limit) const;
  void bound_suffix(std::size_t inner, std::size_t outer, double limit);
  void bound_by_waste(std::size_t outer, double limit);
  void bound_before(double limit);
  bool raise_fast_dp(std::size_t inner, PiperStageSums& stage, std::size_t& fast, double limit);
  void extend(const State& inner, std::int32_t number, PiperStageSums& stage, std::size_t fast,
              double limit);
  void extend_heuristically(const State& inner, std::int32_t number, PiperStageSums& stage,
                            std::size_t fast, double limit);
  std::vector<PiperStage> price(std::vector<PiperStage> stages);

  const PiperProblem& problem_;
  PiperStagePricer pricer_;
  PiperTables& tables_;
  std::int64_t most_work_, most_suffix_, work_ = 0;
  bool exact_knapsack_;
  std::vector<Cached> cached_;
  PiperStageSums uncached_;

  // Bounds of each suffix, and of what comes before it.
  std::vector<std::int64_t> least_devices_, least_suffix_, devices_before_;
  std::vector<double> waste_;
  std::vector<Link> links_;  ///< That the least devices come from.
  std::int64_t most_devices_here_ = 0, most_suffix_here_ = 0;

  std::vector<State> states_;
  std::vector<std::size_t> begin_;  ///< States of each suffix.
  std::vector<State> front_;        ///< Of the suffix at hand.
};

}  // namespace braid
