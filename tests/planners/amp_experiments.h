#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/system/system.h"

#include "papers/amp/model.h"

namespace braid {

/// A setting of AMP's evaluation (Li et al. 2022, §4.3): four nodes of four GPUs.
struct AmpExperiment {
  std::string name;
  AmpCluster cluster;  ///< As AMP sees it.
  System system;       ///< The same nodes, of the catalogue.
  AmpModel model;      ///< As AMP sees it.
  AmpModel physical;   ///< With real volumes and activations.
  std::int64_t global_batch = 1;
  /// Places of the model's layers among the items that measured plans number, and one more.
  std::vector<std::int32_t> item;
};

/// One measured strategy.
struct AmpTrial {
  AmpStrategy strategy;
  Ends ends;  ///< In layers of the model.
  bool finished = false;
  double measured_s = 0;
  double program_s = 0;  ///< What AMP's program predicted.
};

/// "homogeneous", "het_cluster" or "het_model", from the layer times in `folder`.
AmpExperiment amp_experiment(const std::string& name, const std::string& folder);
/// What was measured of it; empty when nothing is given out.
std::vector<AmpTrial> amp_trials(const AmpExperiment& experiment, const std::string& folder);

/// Seconds of an iteration of a trial as braid times any plan: of the layers' measured times on the
/// experiment's system, stages waiting for what they send.
struct AmpForecast {
  double iteration_s = 0;
  bool fits = true;
};
AmpForecast amp_forecast(const AmpModel& model, const System& system, const AmpTrial& trial,
                         std::int64_t global_batch);

/// Rank r on device r: Megatron's order, and AMP's.
AmpStrategy in_rank_order(std::int32_t pp, std::int32_t dp, std::int32_t tp,
                          std::int32_t micro_batch);

}  // namespace braid
