#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "braid/plan/stage_context.h"
#include "braid/planners/job/mixed_job.h"
#include "braid/profile/split_limits.h"
#include "braid/schedule/pipeline_time.h"

namespace braid::test {

/// Every pipeline of the space of planner braid on mixed clusters (docs/design.md), for tiny jobs:
/// up to two kinds of devices, four replicas, four devices to a shard group, no offload. From the
/// last stage to the first: each form on each split of the next devices of the two kinds, each
/// range of layers, each way to run it that fits memory; ways that save memory where no other fits.
/// What stages and handovers cost is worked out once for all pipelines that have them; the time is
/// the simulator's.
class AllPipelines {
 public:
  /// Shown each pipeline's stages from the first on, and its time.
  using Visit = std::function<void(std::span<const PlacedStage> stages, double time_s)>;

  /// Keeps references.
  AllPipelines(const Job& job, const System& system, const SpaceOptions& space);

  /// The least time of all, infinite when there is none; leaves out pipelines one stage of which
  /// has passes to do for longer than the best found.
  double least_s();
  void for_each(const Visit& visit);

  std::int64_t simulated() const { return simulated_; }

 private:
  /// Layers of a stage run in one way.
  struct Piece {
    bool known = false;
    ChunkTotals totals;
    StageLoad load;
    std::vector<std::int8_t> fits;  ///< By micro-batches in flight; -1: not known yet.
  };
  struct Way {
    Configuration form;
    bool saves_memory = false;
    /// [whether it is the only stage]
    std::array<std::unique_ptr<const Plan>, 2> plan;
    std::array<std::unique_ptr<const StageContext>, 2> context;
    std::array<std::vector<Piece>, 2> pieces;  ///< [begin · (layers + 1) + end]
  };
  /// A form on certain devices.
  struct Site {
    std::uint64_t number = 0;
    std::vector<std::int64_t> devices;
    std::array<std::int64_t, 2> takes = {};
    std::vector<Way> ways;
  };
  struct Chosen {
    Site* site = nullptr;
    std::size_t way = 0;
    std::int32_t begin = 0, end = 0;
    std::int64_t depth = 1;  ///< Stages on the longest way to the end.
    const Piece* piece = nullptr;
  };
  /// A round of samples and the devices of each kind taken.
  using Place = std::array<std::int64_t, 3>;

  void run();
  void add(std::int32_t right);
  void add_stage(Chosen& stage);
  void finish();
  bool is_tried(const Configuration& form) const;
  const std::vector<Site*>& sites();
  void make_sites(Configuration form, std::vector<Site*>& made);
  std::unique_ptr<Site> make_site(const Configuration& form, std::int64_t first) const;
  std::vector<Configuration> ways_of(const Configuration& form) const;
  Piece& piece(Site& site, std::size_t way, std::int32_t begin, std::int32_t end, bool only);
  bool fits(Site& site, std::size_t way, const Chosen& stage, bool only);
  std::int64_t depth_of(const Chosen& stage) const;
  bool leads(const Chosen& from, const Chosen& to) const;
  PlacedStage placed(const Chosen& stage) const;
  EdgeLoad handover(const Chosen& from, const Chosen& to);
  double exchange_s(const Chosen& first, const Chosen& last);

  const Job& job_;
  const SpaceOptions& space_;
  MixedJob costs_;
  SplitLimits split_;
  std::int32_t layers_ = 0;
  std::int64_t round_ = 1;
  std::array<std::int64_t, 2> used_ = {};
  std::vector<Chosen> stages_;  ///< The last first.
  std::vector<std::unique_ptr<Site>> all_sites_;
  std::map<Place, std::vector<Site*>> sites_;
  std::unordered_map<std::uint64_t, EdgeLoad> handovers_;
  std::unordered_map<std::uint64_t, double> exchanges_;
  Pipeline pipeline_;
  PipelineWorkspace workspace_;
  Visit visit_;
  bool prune_ = false;
  double best_s_ = std::numeric_limits<double>::infinity();
  std::int64_t simulated_ = 0;
};

}  // namespace braid::test
