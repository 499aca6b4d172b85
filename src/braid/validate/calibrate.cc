#include "braid/validate/calibrate.h"

#include <map>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/parallel.h"
#include "braid/validate/fit.h"

namespace braid {

std::vector<CalibrationRuns> runs_by_chip(const std::vector<MeasuredRun>& runs) {
  std::vector<PreparedRun> prepared(runs.size());
  parallel_for(runs.size(), [&](std::size_t i) {
    prepared[i] = prepare(runs[i]);
    if (!prepared[i].reason.empty()) return;
    try {
      static_cast<void>(metrics_of(prepared[i], prepared[i].system));
    } catch (const Error& error) {
      prepared[i].reason = error.what();
    }
  });
  std::map<std::string, CalibrationRuns> chips;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    // Times on several types of chips tell apart none of them.
    if (!prepared[i].reason.empty() || prepared[i].system.groups.size() > 1) continue;
    const std::string name = prepared[i].system.groups.front().chip.name;
    CalibrationRuns& of_chip = chips[name];
    of_chip.chip = name;
    of_chip.runs.push_back(std::move(prepared[i]));
    of_chip.datasets.push_back(runs[i].dataset);
    of_chip.rows.push_back(i);
  }
  std::vector<CalibrationRuns> result;
  result.reserve(chips.size());
  for (auto& [name, of_chip] : chips) result.push_back(std::move(of_chip));
  return result;
}

ChipCalibration calibrate_chip(const CalibrationRuns& runs) {
  FitRuns all;
  all.datasets = runs.datasets;
  all.runs.reserve(runs.runs.size());
  for (const PreparedRun& run : runs.runs) all.runs.push_back(&run);
  const Fit fit(all);
  ChipCalibration result;
  result.chip = runs.chip;
  result.runs = all.runs.size();
  result.before = achieved_of(all.runs.front()->system);
  result.mape_before = mean_error(fit.residuals(fit.prior()));
  result.after = fit.best();
  result.mape_after = mean_error(fit.residuals(result.after));
  return result;
}

}  // namespace braid
