#include "braid/cli/map_cores.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/index.h"
#include "braid/base/json.h"
#include "braid/base/quantity.h"
#include "braid/chip/cores/schedule_cores.h"
#include "braid/cli/verb.h"
#include "braid/cli/written.h"
#include "braid/graph/training.h"
#include "braid/profile/core_layer.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/rank_graph.h"
#include "braid/report/core_gantt.h"
#include "braid/report/table.h"

namespace braid {
namespace {

/// A pass of a layer, scheduled.
struct CorePass {
  const char* name = "";
  CoreLayer layer;
  std::vector<CoreName> names;
  CoreOutcome outcome;
  /// Each operator on all cores of its kind, one after the other.
  double in_turn_s = 0;
};

struct CoreMappedLayer {
  std::string name;
  std::int64_t count = 1;  ///< Layers of this kind.
  std::vector<CorePass> passes;
};

class CoreMap {
 public:
  CoreMap(const Graph& graph, const Chip& chip, const CoreMapOptions& options)
      : graph_(graph),
        options_(options),
        cores_(cores_of(chip)),
        leaving_(leaving_tensors(graph)) {}

  std::vector<CoreMappedLayer> layers() {
    std::vector<CoreMappedLayer> result;
    if (options_.layer) {
      result.push_back(mapped(*options_.layer));
      return result;
    }
    std::vector<std::int32_t> kinds;
    for (std::size_t l = 0; l < graph_.layers.size(); ++l) {
      const std::int32_t kind = graph_.layers[l].kind;
      const auto known = std::find(kinds.begin(), kinds.end(), kind);
      if (known != kinds.end()) {
        ++result[static_cast<std::size_t>(known - kinds.begin())].count;
        continue;
      }
      kinds.push_back(kind);
      result.push_back(mapped(static_cast<LayerId>(l)));
    }
    return result;
  }

 private:
  CoreMappedLayer mapped(LayerId layer) {
    Execution how;
    how.micro_batch = static_cast<int>(options_.micro_batch);
    const Graph rank = rank_layer(graph_, layer, how, leaving_[at(layer)]);
    CoreMappedLayer result;
    result.name = graph_.layers[at(layer)].name;
    if (!options_.training) {
      result.passes.push_back(pass(rank, kRankLayer, "forward"));
      return result;
    }
    const Graph step = training_graph(rank);
    result.passes.push_back(pass(step, kRankLayer, "forward"));
    result.passes.push_back(pass(step, kRankBackwardLayer, "backward"));
    return result;
  }

  CorePass pass(const Graph& graph, LayerId layer, const char* name) {
    CorePass result;
    result.name = name;
    result.layer = core_layer(graph, layer, cores_, memo_);
    for (const std::vector<OperatorId>& task : result.layer.operators) {
      CoreName part =
          core_name(graph.operators[at(task.front())], graph.layers[at(kRankLayer)].name);
      for (std::size_t i = 1; i < task.size(); ++i) {
        part.name +=
            " + " + core_name(graph.operators[at(task[i])], graph.layers[at(kRankLayer)].name).name;
      }
      result.names.push_back(std::move(part));
    }
    result.outcome = schedule_cores(result.layer.problem, options_.budget);
    for (const CoreOperator& op : result.layer.problem.operators) {
      result.in_turn_s += std::min(op.one_core_s, op.all_cores_s);
    }
    return result;
  }

  const Graph& graph_;
  const CoreMapOptions& options_;
  AcceleratorCores cores_;
  std::vector<std::vector<TensorId>> leaving_;
  NestMemo memo_;
};

/// "all tensor cores", "tensor 3", "tensor 0 and vector 0".
std::string place_of(CoreKind kind, const PlacedOperator& placed) {
  if (kind == CoreKind::none) return "";
  if (placed.all_cores) {
    return kind == CoreKind::fused ? "all cores" : fmt::format("all {} cores", name_of(kind));
  }
  std::string text;
  if (placed.tensor_core >= 0) text = fmt::format("tensor {}", placed.tensor_core);
  if (placed.vector_core >= 0) {
    text += fmt::format("{}vector {}", text.empty() ? "" : " and ", placed.vector_core);
  }
  return text;
}

std::string proof(const CoreOutcome& outcome) {
  return outcome.status == CoreStatus::optimal ? "proven"
                                               : fmt::format("{:.2f} %", 100 * outcome.gap());
}

std::string layers_text(const std::vector<CoreMappedLayer>& layers) {
  std::vector<std::vector<std::string>> rows = {
      {"layer", "number", "pass", "operators", "time", "one by one", "gap"}};
  for (const CoreMappedLayer& layer : layers) {
    for (const CorePass& pass : layer.passes) {
      rows.push_back({layer.name, std::to_string(layer.count), pass.name,
                      std::to_string(pass.layer.problem.operators.size()),
                      format_seconds(pass.outcome.schedule.makespan_s),
                      format_seconds(pass.in_turn_s), proof(pass.outcome)});
    }
  }
  return text_table(rows);
}

std::string operators_text(const CorePass& pass) {
  const bool backward = pass.names.front().part != CorePart::forward;
  std::vector<std::vector<std::string>> rows = {{"operator", "on", "from", "to"}};
  if (backward) rows.front().insert(rows.front().begin() + 1, "gradient of");
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < pass.names.size(); ++i) {
    if (pass.layer.problem.operators[i].kind != CoreKind::none) order.push_back(i);
  }
  const std::vector<PlacedOperator>& placed = pass.outcome.schedule.operators;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return placed[a].start_s < placed[b].start_s;
  });
  for (const std::size_t i : order) {
    rows.push_back({pass.names[i].name, place_of(pass.layer.problem.operators[i].kind, placed[i]),
                    format_seconds(placed[i].start_s), format_seconds(placed[i].end_s)});
    if (!backward) continue;
    const bool weights = pass.names[i].part == CorePart::weight_gradient;
    rows.back().insert(rows.back().begin() + 1, weights ? "weights" : "inputs");
  }
  return text_table(rows);
}

Json pass_json(const CorePass& pass) {
  Json json = Json::object();
  json["pass"] = pass.name;
  json["status"] = pass.outcome.status == CoreStatus::optimal ? "optimal" : "budget_exhausted";
  json["time_s"] = pass.outcome.schedule.makespan_s;
  json["lower_bound_s"] = pass.outcome.bound_s;
  json["in_turn_s"] = pass.in_turn_s;
  json["work"] = pass.outcome.work;
  json["operators"] = Json::array();
  for (std::size_t i = 0; i < pass.names.size(); ++i) {
    const CoreOperator& op = pass.layer.problem.operators[i];
    const PlacedOperator& placed = pass.outcome.schedule.operators[i];
    Json one = {{"name", pass.names[i].name},   {"kind", name_of(op.kind)},
                {"one_core_s", op.one_core_s},  {"all_cores_s", op.all_cores_s},
                {"start_s", placed.start_s},    {"end_s", placed.end_s},
                {"all_cores", placed.all_cores}};
    if (placed.tensor_core >= 0) one["tensor_core"] = placed.tensor_core;
    if (placed.vector_core >= 0) one["vector_core"] = placed.vector_core;
    json["operators"].push_back(std::move(one));
  }
  json["edges"] = pass.layer.problem.edges;
  return json;
}

Json layers_json(const Graph& graph, const Chip& chip, const CoreMapOptions& options,
                 const std::vector<CoreMappedLayer>& layers) {
  Json json = Json::object();
  json["model"] = graph.name;
  json["chip"] = chip.name;
  json["micro_batch"] = options.micro_batch;
  json["layers"] = Json::array();
  for (const CoreMappedLayer& layer : layers) {
    Json one = {{"layer", layer.name}, {"number", layer.count}, {"passes", Json::array()}};
    for (const CorePass& pass : layer.passes) one["passes"].push_back(pass_json(pass));
    json["layers"].push_back(std::move(one));
  }
  return json;
}

CoreDrawing drawing_of(const std::string& layer, const Chip& chip, const CorePass& pass) {
  return {fmt::format("{} {} on {}", layer, pass.name, chip.name), pass.layer.problem, pass.outcome,
          pass.names};
}

void print_layer(const Chip& chip, const CoreMappedLayer& layer) {
  for (const CorePass& pass : layer.passes) {
    fmt::print("\n{}\n{}; one after the other on all cores {}\n", operators_text(pass),
               core_summary(drawing_of(layer.name, chip, pass)), format_seconds(pass.in_turn_s));
  }
}

}  // namespace

int map_on_cores(const Graph& graph, const Chip& chip, const CoreMapOptions& options) {
  if (!options.gantt.empty() && !options.layer) {
    throw Error("--gantt: a picture is of one layer", "add --layer");
  }
  const std::vector<CoreMappedLayer> layers = CoreMap(graph, chip, options).layers();
  if (!options.gantt.empty()) {
    const CoreDrawing drawing = drawing_of(layers.front().name, chip, layers.front().passes.back());
    const bool page = options.gantt.ends_with(".html");
    write_file(options.gantt, page ? core_page(drawing) : core_gantt_svg(drawing));
  }
  if (options.gantt == "-") return kFound;
  if (options.json) {
    fmt::print("{}", to_text(layers_json(graph, chip, options, layers)));
    return kFound;
  }
  const Accelerator& accelerator = chip.accelerator->chip;
  fmt::print("{} on {}: {} tensor cores of {} x {}, {} vector cores; {} {} a micro-batch\n",
             graph.name, chip.name, accelerator.tensor.count, accelerator.tensor.width,
             accelerator.tensor.depth, accelerator.vector.count, options.micro_batch,
             options.micro_batch == 1 ? "sample" : "samples");
  if (!options.layer) {
    fmt::print("\n{}", layers_text(layers));
  } else {
    print_layer(chip, layers.front());
    say_written_below({written_picture(options.gantt)});
  }
  return kFound;
}

}  // namespace braid
