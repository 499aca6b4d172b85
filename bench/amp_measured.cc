// Forecasts of AMP's measured runs beside AMP's own predictions:
//
//   amp_measured [FOLDER]
//
// FOLDER (default: $BRAID_REFERENCE_DIR/reference/amp) holds profiled_layer_costs.json and
// measured.csv; settings of which it has no runs are left out. docs/amp.md says what the columns
// mean.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/rank_statistics.h"
#include "braid/report/table.h"

#include "planners/amp_experiments.h"

namespace braid {
namespace {

using Row = std::vector<std::string>;

/// What a model says of all runs: times, and whether they fit.
struct Forecasts {
  std::vector<double> time_s;
  std::vector<bool> fits;
};

Forecasts amps_own(const std::vector<AmpTrial>& trials) {
  Forecasts forecasts;
  for (const AmpTrial& trial : trials) {
    forecasts.time_s.push_back(trial.program_s);
    forecasts.fits.push_back(true);
  }
  return forecasts;
}

Forecasts forecasts_of(const AmpModel& model, const System& system, const AmpExperiment& experiment,
                       const std::vector<AmpTrial>& trials) {
  Forecasts forecasts;
  for (const AmpTrial& trial : trials) {
    const AmpForecast forecast = amp_forecast(model, system, trial, experiment.global_batch);
    forecasts.time_s.push_back(forecast.iteration_s);
    forecasts.fits.push_back(forecast.fits);
  }
  return forecasts;
}

/// Every device as fast as all are on average.
AmpModel averaged(AmpModel model, const AmpCluster& cluster) {
  const auto all = model.forward_s;
  for (auto& type : model.forward_s) {
    for (std::size_t d = 0; d < type.size(); ++d) {
      for (std::size_t l = 0; l < type[d].size(); ++l) {
        double sum_s = 0;
        for (const std::int32_t of : cluster.type) {
          sum_s += all[static_cast<std::size_t>(of)][d][l];
        }
        type[d][l] = sum_s / cluster.devices();
      }
    }
  }
  return model;
}

/// A card for each device, each as fast as the node's one.
System with_own_cards(System system) {
  const auto devices = static_cast<double>(system.groups.front().devices_per_node);
  for (NetworkLevel& level : system.levels) {
    level.bytes_per_s = level.unit_bytes_per_s;
    level.unit_bytes_per_s *= devices;
    level.rails = static_cast<int>(devices);
  }
  for (DeviceGroup& group : system.groups) group.node_bytes_per_s *= devices;
  return system;
}

Row row_of(const std::string& name, const std::vector<AmpTrial>& trials,
           const Forecasts& forecasts) {
  constexpr double kDoesNotFit_s = 1e6;  // Behind all that fit, in their own order.
  std::vector<double> measured_s, of_measured_s, actual_s, predicted_s;
  double error = 0;
  int foreseen = 0, refused = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const AmpTrial& trial = trials[i];
    const double time_s = forecasts.time_s[i];
    predicted_s.push_back(time_s + (forecasts.fits[i] ? 0 : kDoesNotFit_s));
    actual_s.push_back(trial.finished ? trial.measured_s : std::numeric_limits<double>::infinity());
    if (!forecasts.fits[i]) ++(trial.finished ? refused : foreseen);
    if (!trial.finished) continue;
    measured_s.push_back(trial.measured_s);
    of_measured_s.push_back(time_s);
    error += std::abs(time_s / trial.measured_s - 1);
  }
  Row row = {name, fmt::format("{:.3f}", rank_correlation(of_measured_s, measured_s))};
  for (const std::size_t top : {1, 3, 5}) {
    row.push_back(fmt::format("{:.1f}%", 100 * top_regret(predicted_s, actual_s, top)));
  }
  row.push_back(fmt::format("{:.1f}%", 100 * error / static_cast<double>(measured_s.size())));
  row.push_back(std::to_string(foreseen));
  row.push_back(std::to_string(refused));
  return row;
}

/// The first five choices of the forecast, beside AMP's prediction and what was measured.
std::string choices_text(const std::vector<AmpTrial>& trials, const Forecasts& forecasts) {
  std::vector<std::size_t> order(trials.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(!forecasts.fits[a], forecasts.time_s[a]) <
           std::pair(!forecasts.fits[b], forecasts.time_s[b]);
  });
  std::vector<Row> rows = {{"choice", "pp", "dp", "tp", "mbs", "forecast", "AMP", "measured"}};
  for (std::size_t i = 0; i < std::min<std::size_t>(5, order.size()); ++i) {
    const AmpTrial& trial = trials[order[i]];
    const AmpStrategy& strategy = trial.strategy;
    rows.push_back({std::to_string(i + 1), std::to_string(strategy.pp), std::to_string(strategy.dp),
                    std::to_string(strategy.tp), std::to_string(strategy.micro_batch),
                    fmt::format("{:.3f}", forecasts.time_s[order[i]]),
                    fmt::format("{:.3f}", trial.program_s),
                    trial.finished ? fmt::format("{:.2f}", trial.measured_s) : "failed"});
  }
  return text_table(rows);
}

void print(const std::string& name, const std::string& folder) {
  const AmpExperiment experiment = amp_experiment(name, folder);
  const std::vector<AmpTrial> trials = amp_trials(experiment, folder);
  if (trials.empty()) return;
  const AmpModel& model = experiment.physical;
  const System& system = experiment.system;
  std::vector<Row> rows = {
      {"model", "rank", "top 1", "top 3", "top 5", "error", "foreseen", "refused"}};
  rows.push_back(row_of("AMP", trials, amps_own(trials)));
  const auto add = [&](const std::string& what, const AmpModel& of, const System& on) {
    rows.push_back(row_of(what, trials, forecasts_of(of, on, experiment, trials)));
  };
  add("forecast", model, system);
  add("- card shared by flows", model, with_own_cards(system));
  add("- devices' own speed", averaged(model, experiment.cluster), system);
  System without = system;
  for (DeviceGroup& group : without.groups) group.chip.efficiency.host_operator_s = 0;
  add("- issue of operators", model, without);
  without = system;
  for (DeviceGroup& group : without.groups) group.intra_node.half_bytes = 0;
  add("- size of messages", model, without);
  without = system;
  for (NetworkLevel& level : without.levels) level.efficiency = 1;
  add("- Ethernet's efficiency", model, without);
  add("- real volumes, memory", experiment.model, system);
  std::size_t finished = 0;
  for (const AmpTrial& trial : trials) finished += trial.finished ? 1 : 0;
  fmt::print("{}: {} runs, {} finished\n{}\n{}\n", name, trials.size(), finished, text_table(rows),
             choices_text(trials, forecasts_of(model, system, experiment, trials)));
}

}  // namespace
}  // namespace braid

int main(int argc, char** argv) {
  try {
    std::string folder = argc > 1 ? argv[1] : "";
    if (folder.empty()) {
      const char* root = std::getenv("BRAID_REFERENCE_DIR");
      if (root == nullptr) {
        fmt::print(stderr, "name the folder of AMP's data or set BRAID_REFERENCE_DIR\n");
        return 2;
      }
      folder = std::string(root) + "/reference/amp";
    }
    for (const char* name : {"homogeneous", "het_cluster", "het_model"}) braid::print(name, folder);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
