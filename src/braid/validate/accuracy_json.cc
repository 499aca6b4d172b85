#include "braid/validate/accuracy_json.h"

#include <utility>

namespace braid {
namespace {

Json lines_of(const std::vector<MeasuredRun>& runs, const std::vector<std::size_t>& indices) {
  Json lines = Json::array();
  for (const std::size_t i : indices) lines.push_back(runs[i].line);
  return lines;
}

Json group_to_json(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& columns,
                   const AccuracyGroup& group) {
  const Accuracy& a = group.accuracy;
  Json json = Json::object();
  json["by"] = Json::object();
  for (std::size_t i = 0; i < columns.size(); ++i) json["by"][columns[i]] = group.values[i];
  json["rows"] = a.runs;
  json["predicted"] = a.predicted;
  if (a.predicted > 0) {
    json["mape"] = a.mape;
    json["median_ape"] = a.median_ape;
    json["bias"] = a.bias;
    json["p90_ape"] = a.p90_ape;
    json["worst"] = a.worst;
    json["worst_row"] = runs[a.worst_run].line;
    json["constant_efficiency"] = a.constant_efficiency;
    json["constant_efficiency_mape"] = a.constant_efficiency_mape;
    json["bound_mape"] = a.bound_mape;
  }
  if (a.ranked > 0) {
    json["spearman"] = a.spearman;
    json["regret"] = a.regret;
    json["ranked"] = a.ranked;
  }
  if (a.intervals > 0) {
    json["covered"] = a.covered;
    json["interval_width"] = a.width;
  }
  if (a.memory_intervals > 0) json["memory_covered"] = a.memory_covered;
  if (a.memory_runs > 0) {
    json["memory_rows"] = a.memory_runs;
    json["memory_mape"] = a.memory_mape;
    json["memory_bias"] = a.memory_bias;
  }
  json["predicted_below_bound"] = a.predicted_below_bound;
  json["measured_below_bound"] = lines_of(runs, a.measured_below_bound);
  return json;
}

Json run_to_json(const MeasuredRun& run, const Prediction& prediction) {
  const Metrics& m = prediction.metrics;
  Json json = Json::object();
  json["row"] = run.line;
  json["dataset"] = run.dataset;
  json["chip"] = prediction.chip;
  json["measured_s"] = prediction.measured_s;
  json["predicted_s"] = m.iteration_time_s;
  if (prediction.interval) {
    json["low_s"] = m.iteration_time_s * prediction.interval->low;
    json["high_s"] = m.iteration_time_s * prediction.interval->high;
  }
  json["bound_s"] = prediction.bound_s;
  json["error"] = prediction.ratio() - 1;
  json["compute_s"] = m.compute_s;
  json["recompute_s"] = m.recompute_s;
  json["tp_comm_s"] = m.tp_comm_s;
  json["cp_comm_s"] = m.cp_comm_s;
  json["ep_comm_s"] = m.ep_comm_s;
  json["pp_comm_s"] = m.pp_comm_s;
  json["dp_comm_s"] = m.dp_comm_s;
  json["bubble_s"] = m.bubble_s;
  json["optimizer_s"] = m.optimizer_s;
  json["memory_bytes"] = m.peak_memory_bytes;
  if (prediction.measured_memory_bytes > 0) {
    json["measured_memory_bytes"] = prediction.measured_memory_bytes;
  }
  return json;
}

}  // namespace

Json accuracy_to_json(const std::vector<MeasuredRun>& runs,
                      const std::vector<Prediction>& predictions,
                      const std::vector<std::string>& columns,
                      const std::vector<AccuracyGroup>& groups) {
  Json json = Json::object();
  json["groups"] = Json::array();
  for (const AccuracyGroup& group : groups) {
    json["groups"].push_back(group_to_json(runs, columns, group));
  }
  json["unpredicted"] = Json::array();
  json["runs"] = Json::array();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (predictions[i].predicted()) {
      json["runs"].push_back(run_to_json(runs[i], predictions[i]));
    } else {
      json["unpredicted"].push_back({{"row", runs[i].line}, {"reason", predictions[i].reason}});
    }
  }
  return json;
}

}  // namespace braid
