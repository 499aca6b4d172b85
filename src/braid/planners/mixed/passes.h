#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/mixed/cost_cache.h"
#include "braid/planners/mixed/end_exchange.h"
#include "braid/planners/mixed/problem.h"
#include "braid/planners/mixed/stage_times.h"
#include "braid/planners/mixed/suffixes.h"
#include "braid/planners/mixed/work.h"

namespace braid {

/// What one pass over a problem finds.
struct MixedPass {
  /// By rising base_s: the best, and the best of others in number of stages, devices used or config
  /// of the first stage. Empty: there is none.
  std::vector<MixedPipeline> pipelines;
  /// The least excess above the limit that kept a stage from taking more.
  double next_excess_s = kInfinity;
  bool memory_bound = false;  ///< Memory kept some stage from taking more.
  bool time_bound = false;    ///< Some limit on times did.
  std::int64_t steps = 0;     ///< Stages tried, and MixedCosts::work() since the last pass.
};

/// The passes over one problem; what they share is kept.
class MixedPasses {
 public:
  /// `last_configs` [config]: whether the last stage may have it; empty: any.
  explicit MixedPasses(const MixedProblem& problem, std::vector<std::uint8_t> last_configs = {});

  /// The pipeline of least base_s whose stages all have an excess of at most `excess_s`, among
  /// those that may take no more than `cutoff_s`, by bound_s(); a shorter one may have more excess.
  /// A dynamic program over (stages, devices used, layers left, config of the first stage), in
  /// which a suffix of the pipeline that is shorter and begins with a shorter stage is always
  /// better; of several that are not both the least of either is taken when there are more than a
  /// few. Cost: its states times configs times layers of a stage. Gives up, with nothing, after
  /// `most_steps`.
  MixedPass run(double excess_s, double cutoff_s, std::int64_t most_steps);

  double least_base_s() const { return times_.least_base_s(); }

 private:
  struct State {
    std::vector<std::int32_t> used;
    double ahead_s = 0;        ///< See MixedEndExchange.
    double capacity_left = 0;  ///< Of the devices not used, see MixedWork.
    std::int64_t devices_left = 0;
    MixedSuffixes suffixes;  ///< In cells of [config · (layers + 1) + left end].
  };
  /// What a stage is put in front of.
  struct Start {
    double below_s = 0;
    double next_s = 0;              ///< Of the stage behind, with handing over to it and back.
    double late_s = 0, rise_s = 0;  ///< As MixedSuffix has them, less a handover.
    double peak_s = 0;
    std::int16_t below = -1;
    std::int32_t below_suffix = -1;
  };
  /// The stages of a config that suffixes of a state begin with, and the devices behind them.
  struct Behind {
    std::size_t config = 0;
    std::vector<std::int32_t> used;
    MixedCostCache::At* cached = nullptr;
  };
  /// How a stage is put in front of others: layers before `right` in this config and variant, on
  /// the devices behind which `cached` holds, into `to`.
  struct Extension;
  using Level = std::map<std::int64_t, State>;  ///< By number of the devices used.
  struct Pass;
  static bool no_worse(const Start& a, const Start& b);

  double least_exchange_s(MixedCostCache::At& cached, std::size_t config, std::size_t variant,
                          const State& with);
  void extend(const State& from, Level& next, Pass& pass);
  std::vector<Behind> behind_of(const State& from);
  void grow(const State& from, std::span<const Behind> behind, std::size_t config, State& to,
            Pass& pass);
  std::int64_t most_stages(std::int32_t left, const State& state) const;
  std::int32_t take(const Extension& stage, std::int32_t first_left, const Start& start);
  void take_from_all(const Extension& stage, std::int32_t first_left,
                     std::span<const Start> starts);
  void take_any_variant(std::size_t config, std::int32_t right, std::span<const Start> starts,
                        MixedCostCache::At& cached, State& to, Pass& pass);
  MixedPipeline rebuild(const Pass& pass, std::size_t number) const;
  void set_times(MixedPipeline& pipeline) const;

  const MixedProblem& problem_;
  MixedStageTimes times_;
  MixedWork work_;
  MixedCostCache cache_;  ///< Kept from pass to pass.
  MixedEndExchange end_exchange_;
  std::int64_t counted_work_;  ///< Of MixedCosts::work(), what some pass's steps have.
  std::size_t layers_ = 0, variants_ = 1;
  std::int32_t fewest_devices_ = std::numeric_limits<std::int32_t>::max();  ///< Of any config.
};

}  // namespace braid
