#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "braid/planners/job/braid_space.h"
#include "braid/planners/job/mixed_job.h"
#include "braid/planners/mixed/places.h"
#include "braid/planners/mixed/problem.h"
#include "braid/profile/split_limits.h"

namespace braid {

/// braid's planner for mixed systems and bandwidth matrices (docs/design.md, "Planner braid on
/// mixed clusters"): flushed 1F1B whose stages each have devices, tp, dp, ep, recomputation and
/// ZeRO of their own, or all the same where the trainer has one form for all stages: whole nodes
/// then, which its ranks fill one after the other. Best first over the samples of a round; for
/// each, solve_mixed() finds layers, configs and devices together, and what it finds is simulated;
/// what may then yet be faster is gone through by search_depth_first(). Throws Error for
/// restrictions to what the space does not have.
Outcome plan_mixed(const Job& job, const System& system, const BraidSpace& space,
                   const Budget& budget, const Progress& progress);

/// Pipelines of one number of samples in a round (dp · micro-batch of every stage), as a problem
/// for solve_mixed.
class MixedFamily final : public MixedCosts {
 public:
  /// What families share from one to the next.
  struct Known {
    using RateKey = std::vector<std::int64_t>;
    /// Both outlive this.
    Known(const System& system, std::span<const DeviceRun> runs) : places(system, runs) {}
    MixedPlaces places;
    std::map<RateKey, SyncRates> rates;
  };

  /// Of one stage, or of two and more: what several layers share costs them different amounts; or
  /// of any number where layers share nothing.
  enum class Stages : std::uint8_t { any, one, several };

  /// How many stages there are.
  struct Depth {
    Stages stages = Stages::any;
    std::int32_t least = 1, most = 1;
  };

  /// Stages in any form, or all of them in this one. With a form and one number of stages the
  /// pipeline fills nodes, one after the other.
  MixedFamily(MixedJob& job, const SpaceOptions& space, std::int64_t round_samples, Depth depth,
              Known& shared, const std::optional<Configuration>& form = std::nullopt);
  MixedFamily(const MixedFamily&) = delete;
  MixedFamily& operator=(const MixedFamily&) = delete;
  MixedFamily(MixedFamily&&) = delete;
  MixedFamily& operator=(MixedFamily&&) = delete;
  ~MixedFamily() override = default;

  bool empty() const { return problem_.configs.empty(); }
  /// All that some stage may have, each once.
  std::vector<Configuration> forms() const;
  const MixedProblem& problem() const { return problem_; }
  std::vector<PlacedStage> stages(const MixedPipeline& pipeline) const;

  bool allows(Used used, std::int32_t config) override;
  double handover_s(Used used, std::int32_t below, std::int32_t above,
                    std::int32_t cut_class) override;
  SyncRates rates(Used used, std::int32_t config, std::int32_t variant) override;
  bool exchanges() const override;
  double exchange_s(Used used, std::int32_t first, std::int32_t variant,
                    std::int32_t last) override;
  double least_exchange_s(Used used, std::int32_t first, std::int32_t last) override;
  std::int64_t work() const override;

 private:
  void add_degrees();
  void add_forms(const Configuration& degrees);
  void add_forms_of(const Configuration& config);
  void add_form(const Configuration& degrees, const std::vector<std::int32_t>& takes);
  std::vector<Configuration> variants_of(const Configuration& degrees) const;
  bool saves_memory(const Configuration& variant) const;
  bool fills_nodes(Used used, std::int32_t config) const;
  double message_s(Used used, std::int32_t first, std::int32_t last, std::span<const double> bytes);
  /// [shared parameter]: what a stage of this config has of its gradient; 0: others than the first
  /// and the last layer hold it.
  void fill_shared_bytes(std::int32_t config, std::int32_t variant,
                         std::vector<double>& bytes) const;
  SyncRates rates_of(const Configuration& variant, std::span<const std::int64_t> devices) const;
  const std::vector<std::int32_t>& takes_of(std::int32_t config) const {
    return problem_.configs[static_cast<std::size_t>(config)].takes;
  }

  MixedJob& job_;
  const SpaceOptions& space_;
  std::int64_t round_samples_;
  Depth depth_;
  std::optional<Configuration> form_;
  Known& known_;
  MixedPlaces& places_;                               ///< Of known_.
  std::vector<std::vector<Configuration>> variants_;  ///< [config][variant]
  std::vector<double> bytes_of_class_;
  /// [config][shared parameter]: the least of fill_shared_bytes() for any config on the same
  /// devices.
  std::vector<std::vector<double>> least_shared_bytes_;
  MixedProblem problem_;
  SplitLimits split_;
};

}  // namespace braid
