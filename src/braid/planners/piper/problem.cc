#include "braid/planners/piper/problem.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/infinity.h"

namespace braid {
namespace {

std::string bad_field(const PiperOption& option, std::size_t ins, std::size_t outs) {
  if (!is_cost(option.time)) return "time";
  if (!is_cost(option.parameter_bytes)) return "parameter size";
  if (!is_cost(option.in_flight_bytes)) return "memory per micro-batch in flight";
  if (!is_cost(option.fixed_bytes)) return "fixed memory";
  const auto bad = [](const std::vector<double>& bytes) {
    return !std::all_of(bytes.begin(), bytes.end(), is_cost);
  };
  if (bad(option.in_sync_bytes) || bad(option.out_sync_bytes)) return "re-layout";
  assert(option.in_sync_bytes.empty() || option.in_sync_bytes.size() == ins);
  assert(option.out_sync_bytes.empty() || option.out_sync_bytes.size() == outs);
  (void)ins, (void)outs;
  return "";
}

/// Tensors that cross a stage's border one way, and whether another edge has to be paid for.
struct Payments {
  PiperTensors rule;
  std::vector<std::pair<std::int32_t, double>> paid;  ///< Layer that makes the tensor, its bytes.

  bool is_due(const PiperEdge& edge) {
    if (rule == PiperTensors::per_edge) return true;
    const std::pair tensor(edge.source, edge.bytes);
    if (std::find(paid.begin(), paid.end(), tensor) != paid.end()) return false;
    paid.push_back(tensor);
    return true;
  }
};

void check_limits(const PiperProblem& problem, const std::string& file) {
  const auto count = [&](const char* name, std::int64_t value) {
    if (value >= 1 && value <= kMostPiperDevices) return;
    throw Error(Where{file, 0, name}, std::to_string(value) + " is out of range",
                "use 1 to " + std::to_string(kMostPiperDevices));
  };
  count("devices", problem.devices);
  count("max-microbatches", problem.micro_batches);
  count("step of data-parallel degrees", problem.dp_multiple);
  count("largest data-parallel degree", std::min(problem.most_dp, kMostPiperDevices));
  const auto positive = [&](const char* name, double value) {
    if (std::isfinite(value) && value > 0) return;
    throw Error(Where{file, 0, name}, "must be a finite number above zero");
  };
  positive("memory", problem.memory_bytes);
  positive("bandwidth", problem.bandwidth_bytes);
  if (problem.levels.empty()) return;
  std::int64_t devices = 1;
  for (const PiperLevel& level : problem.levels) {
    count("devices of a level", level.devices);
    positive("bandwidth of a level", level.bandwidth_bytes);
    devices = std::min(devices * level.devices, kMostPiperDevices + 1);
  }
  if (devices != problem.devices) {
    throw Error(Where{file, 0, "devices"},
                "the levels' devices do not multiply to " + std::to_string(problem.devices));
  }
  assert(problem.levels.front().bandwidth_bytes == problem.bandwidth_bytes);
}

}  // namespace

void check_piper_problem(const PiperProblem& problem, const std::string& file) {
  check_limits(problem, file);
  const auto fail = [&](const std::string& key, const std::string& message) {
    throw Error(Where{file, 0, key}, message);
  };
  if (problem.nodes.empty()) fail("nodes", "the profile has no layers");
  const auto nodes = static_cast<std::int32_t>(problem.nodes.size());
  std::vector<std::size_t> ins(problem.nodes.size(), 0), outs(problem.nodes.size(), 0);
  std::pair<std::int32_t, std::int32_t> before{-1, -1};
  for (const PiperEdge& edge : problem.edges) {
    if (edge.source < 0 || edge.target >= nodes || edge.source >= edge.target) {
      fail("edges", "an edge joins a layer that does not exist or leads backwards");
    }
    const std::string& name = problem.nodes[static_cast<std::size_t>(edge.source)].name;
    if (std::pair(edge.source, edge.target) <= before) fail(name, "its edges are not in order");
    before = {edge.source, edge.target};
    if (!is_cost(edge.bytes) || !is_cost(whole_bytes(edge)))
      fail(name, "an edge's bytes must be a finite number of at least 0");
    ++outs[static_cast<std::size_t>(edge.source)];
    ++ins[static_cast<std::size_t>(edge.target)];
  }
  for (std::size_t v = 0; v < problem.nodes.size(); ++v) {
    const PiperNode& node = problem.nodes[v];
    if (node.degrees.empty()) fail(node.name, "has no option for any tensor-parallel degree");
    int last = 0;
    for (const PiperDegree& degree : node.degrees) {
      if (degree.tp <= last) fail(node.name, "its tensor-parallel degrees are not in order");
      last = degree.tp;
      if (degree.options.empty()) {
        fail(node.name, "has no option for tensor-parallel degree " + std::to_string(degree.tp));
      }
      for (const PiperOption& option : degree.options) {
        const std::string field = bad_field(option, ins[v], outs[v]);
        if (field.empty()) continue;
        fail(node.name, "option '" + option.name + "' for degree " + std::to_string(degree.tp) +
                            ": its " + field + " must be a finite number of at least 0");
      }
    }
  }
}

void check_flat(const PiperProblem& problem, const char* planner) {
  if (problem.levels.empty()) return;
  throw Error(std::string(planner) + " takes the network as flat", "leave out its levels");
}

double piper_share(const PiperProblem& problem, std::int64_t dp) {
  if (problem.rules.split != PiperSplit::uneven) return 1.0 / static_cast<double>(dp);
  const std::int64_t most = (problem.micro_batches + dp - 1) / dp;
  return static_cast<double>(most) / static_cast<double>(problem.micro_batches);
}

double piper_sync_factor(const PiperProblem& problem, std::int64_t dp) {
  return piper_sync_factor(problem, dp, dp);
}

double piper_sync_factor(const PiperProblem& problem, std::int64_t dp, std::int64_t local_dp) {
  const double sent = 4.0 * static_cast<double>(local_dp - 1) / static_cast<double>(local_dp);
  return problem.rules.sync == PiperSync::per_batch
             ? sent / static_cast<double>(problem.micro_batches)
             : sent * piper_share(problem, dp);
}

double whole_bytes(const PiperEdge& edge) {
  return edge.whole_bytes < 0 ? edge.bytes : edge.whole_bytes;
}

double piper_weight_bytes(const PiperNode& node) {
  double least = kInfinity;
  for (const PiperDegree& degree : node.degrees) {
    for (const PiperOption& option : degree.options) {
      least = std::min(least, degree.tp * option.parameter_bytes);
    }
  }
  return least;
}

std::vector<std::int64_t> piper_dp_degrees(const PiperProblem& problem) {
  const std::int64_t most = std::min({problem.devices, problem.micro_batches, problem.most_dp});
  std::vector<std::int64_t> degrees;
  for (std::int64_t d = std::max<std::int64_t>(1, problem.least_dp); d <= most; ++d) {
    if (problem.rules.split == PiperSplit::even && problem.micro_batches % d != 0) continue;
    if (d % problem.dp_multiple != 0) continue;
    degrees.push_back(d);
  }
  return degrees;
}

PiperStagePricer::PiperStagePricer(const PiperProblem& problem)
    : problem_(problem),
      ins_(problem.nodes.size()),
      outs_(problem.nodes.size()),
      place_(problem.nodes.size(), -1) {
  for (std::size_t e = 0; e < problem.edges.size(); ++e) {
    for (auto* ends : {&ins_[at(problem.edges[e].target)], &outs_[at(problem.edges[e].source)]}) {
      ends->push_back({static_cast<std::int32_t>(e), static_cast<std::int32_t>(ends->size())});
    }
  }
}

const PiperOption& PiperStagePricer::chosen(const PiperStage& stage, std::size_t i) const {
  const PiperNode& node = problem_.nodes[at(stage.nodes[i])];
  const auto degree = std::find_if(node.degrees.begin(), node.degrees.end(),
                                   [&](const PiperDegree& d) { return d.tp == stage.tp; });
  assert(degree != node.degrees.end());
  return degree->options[at(stage.options[i])];
}

double PiperStagePricer::border_bytes(const PiperStage& stage) {
  for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
    place_[at(stage.nodes[i])] = static_cast<std::int32_t>(i);
  }
  struct Crossing {
    End end;
    std::size_t layer;  ///< In the stage.
    bool enters;
  };
  std::vector<Crossing> crossings;
  for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
    for (const End& end : ins_[at(stage.nodes[i])]) {
      if (place_[at(problem_.edges[at(end.edge)].source)] < 0) crossings.push_back({end, i, true});
    }
    for (const End& end : outs_[at(stage.nodes[i])]) {
      if (place_[at(problem_.edges[at(end.edge)].target)] < 0) crossings.push_back({end, i, false});
    }
  }
  for (const std::int32_t v : stage.nodes) place_[at(v)] = -1;
  // What is paid for a tensor of several readers depends on which comes first.
  std::sort(crossings.begin(), crossings.end(),
            [](const Crossing& a, const Crossing& b) { return a.end.edge < b.end.edge; });
  Payments in_payments{problem_.rules.tensors, {}}, out_payments = in_payments;
  double bytes = 0;
  for (const Crossing& crossing : crossings) {
    const PiperEdge& edge = problem_.edges[at(crossing.end.edge)];
    if (!(crossing.enters ? in_payments : out_payments).is_due(edge)) continue;
    const PiperOption& option = chosen(stage, crossing.layer);
    const auto& sync = crossing.enters ? option.in_sync_bytes : option.out_sync_bytes;
    bytes += 2 * (edge.bytes + (sync.empty() ? 0 : sync[at(crossing.end.number)]));
  }
  return bytes;
}

void PiperStagePricer::price(PiperStage& stage) {
  double time = 0, parameter_bytes = 0;
  stage.memory_bytes = 0;
  const std::int64_t rounds = (stage.suffix + stage.dp - 1) / stage.dp;
  const auto in_flight = static_cast<double>(rounds);
  for (std::size_t i = 0; i < stage.nodes.size(); ++i) {
    const PiperOption& option = chosen(stage, i);
    time += option.time;
    parameter_bytes += option.parameter_bytes;
    stage.memory_bytes += option.in_flight_bytes * in_flight + option.fixed_bytes;
  }
  const std::int64_t replicas = stage.local_dp > 0 ? stage.local_dp : stage.dp;
  stage.time =
      piper_share(problem_, stage.dp) * (time + border_bytes(stage) / problem_.bandwidth_bytes) +
      piper_sync_factor(problem_, stage.dp, replicas) * parameter_bytes / problem_.bandwidth_bytes;
}

void price_piper_superstage(const PiperProblem& problem, const std::vector<PiperStage>& stages,
                            PiperSuperstage& superstage) {
  std::vector<bool> inside(problem.nodes.size(), false);
  double weight_bytes = 0;
  for (std::int32_t s = superstage.first; s < superstage.first + superstage.count; ++s) {
    for (const std::int32_t v : stages[static_cast<std::size_t>(s)].nodes) {
      inside[static_cast<std::size_t>(v)] = true;
      weight_bytes += piper_weight_bytes(problem.nodes[static_cast<std::size_t>(v)]);
    }
  }
  Payments in_payments{problem.rules.tensors, {}}, out_payments = in_payments;
  double border_bytes = 0;
  for (const PiperEdge& edge : problem.edges) {
    const bool source = inside[static_cast<std::size_t>(edge.source)];
    const bool target = inside[static_cast<std::size_t>(edge.target)];
    if (source == target || !(source ? out_payments : in_payments).is_due(edge)) continue;
    border_bytes += 2 * whole_bytes(edge);
  }
  superstage.time = (piper_share(problem, superstage.all_dp) * border_bytes +
                     piper_sync_factor(problem, superstage.all_dp, superstage.dp) * weight_bytes) /
                    problem.levels[static_cast<std::size_t>(superstage.level)].bandwidth_bytes;
}

PiperSolution piper_solution_of(std::vector<PiperStage> stages) {
  PiperSolution solution;
  for (const PiperStage& stage : stages) solution.time = std::max(solution.time, stage.time);
  solution.stages = std::move(stages);
  return solution;
}

std::int64_t PiperSolution::devices_used() const {
  std::int64_t used = 0;
  for (const PiperStage& stage : stages) used += stage.dp * stage.tp;
  return used;
}

}  // namespace braid
