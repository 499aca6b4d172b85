#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/plan/outcome.h"

namespace braid {

/// How devices fail and how a run gets over it.
struct FailureModel {
  /// Mean time between failures of one device. By default that of Llama 3's training: 419
  /// unexpected interruptions of 16,384 GPUs in 54 days (arXiv:2407.21783, section 3.3.4).
  double device_mtbf_s = 16384.0 * 54 * 86400 / 419;
  /// Rate at which one device saves and loads its share of a checkpoint. By default the 2 TB/s that
  /// the storage of Llama 3's 16,384 GPUs sustains (arXiv:2407.21783, section 3.3.1).
  double checkpoint_bytes_per_s = 2e12 / 16384;
  std::optional<double> save_s, load_s;  ///< Of one checkpoint, in place of that rate.
  /// From a failure to the start of loading: finding and replacing the device. An assumption.
  double restart_s = 600;
};

/// A run to be paid for.
struct RunQuestion {
  double tokens = 0;  ///< Samples where the model has no sequence.
  FailureModel failures;
  /// Power usage effectiveness: what the site draws for each watt of the chips.
  double pue = 1;
};

/// What a job's run costs beside one iteration's time.
struct RunCosts {
  double tokens = 0;
  std::string unit = "tokens";  ///< Or samples, of models without a sequence.
  double iterations = 0;
  double compute_s = 0;  ///< Of all iterations, were nothing ever to fail.
  /// Share of the time that makes progress: the rest goes into checkpoints, work that failures
  /// undo, and restarts.
  double goodput = 1;
  double checkpoint_bytes = 0;
  double checkpoint_s = 0;           ///< To save one.
  double load_s = 0;                 ///< To load one.
  double checkpoint_interval_s = 0;  ///< Work between two, Daly's optimum.
  double mtbf_s = 0;                 ///< Of all devices of the plan together.
  double wall_s = 0;                 ///< compute_s / goodput; infinite: it makes no progress.
  double device_hours = 0;
  std::optional<double> usd;  ///< Where nodes have a price per hour.
  std::optional<double> kwh;  ///< Of the chips at their rated power, where that is known.
  /// What these depend on, and why there is no price or no energy, for people.
  std::vector<std::string> assumptions;
};

/// The interval between checkpoints that makes a run shortest, and the share of time that makes
/// progress with it, for failures that come as a Poisson process (Daly 2006, "A higher order
/// estimate of the optimum checkpoint interval for restart dumps"): the interval is
///   sqrt(2·save·mtbf)·(1 + sqrt(save / 2·mtbf) / 3 + (save / 2·mtbf) / 9) - save
/// for save < 2·mtbf, else mtbf (0 where saving takes no time), and the run takes mtbf·e^(recover /
/// mtbf)·(e^((interval + save) / mtbf) - 1) / interval times as long as without failures. `save_s`
/// to write a checkpoint, `recover_s` from a failure until work goes on, `mtbf_s` between failures
/// of the whole job.
struct CheckpointSchedule {
  double interval_s = 0, goodput = 1;
};
CheckpointSchedule daly_schedule(double save_s, double recover_s, double mtbf_s);

/// The devices that the plan uses are counted, nodes that it touches are paid for whole.
///
///     RunCosts costs = run_costs(candidate, {.tokens = 15e12});
///     costs.wall_s / 86400;  // days
RunCosts run_costs(const Candidate& candidate, const RunQuestion& question);

}  // namespace braid
