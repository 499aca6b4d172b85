#include "braid/planners/phaze/problem.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string_view>

#include <fmt/format.h>

#include "braid/base/quantity.h"

namespace braid {
namespace {

constexpr double kMostCost = 1e30;  // Sums and products of a few thousand such stay finite.
constexpr std::int64_t kMostPhazeDevices = 10'000'000;
constexpr std::int64_t kMostMicroBatches = 1'000'000'000;
constexpr std::size_t kMostPhazeLayers = 4096;

using EdgeSizes = std::map<std::pair<std::int32_t, std::int32_t>, double>;

/// One entry of "nodes" and "edges", layers numbered as listed.
struct RawWidth {
  std::vector<std::int64_t> ids;
  std::vector<PhazeLayer> layers;
  EdgeSizes edges;
};

RawWidth read_width(const Value& nodes, const Value& edges, const PhazeReading& reading) {
  RawWidth width;
  std::map<std::int64_t, std::int32_t> index;
  if (nodes.size() == 0) nodes.fail("there are no layers");
  if (nodes.size() > kMostPhazeLayers) {
    nodes.fail(fmt::format("{} layers are too many", nodes.size()),
               fmt::format("join layers: at most {} can be planned", kMostPhazeLayers));
  }
  for (const Value& node : nodes.elements()) {
    const std::int64_t id = node["id"].as_int();
    if (!index.emplace(id, static_cast<std::int32_t>(index.size())).second) {
      node["id"].fail(fmt::format("there is another layer {}", id), "give each layer its own id");
    }
    PhazeLayer layer;
    layer.forward_s = profile_figure(node["optimalLatencyFw"], kMostCost) * reading.latency_unit_s;
    layer.backward_s = profile_figure(node["optimalLatencyBw"], kMostCost) * reading.latency_unit_s;
    layer.weight_bytes = profile_figure(node["parameterSize"], kMostCost);
    layer.activation_bytes = profile_figure(node["activationSize"], kMostCost);
    layer.tensor_parallel = node["isTensorParallelized"].as_bool();
    width.ids.push_back(id);
    width.layers.push_back(layer);
  }
  for (const Value& edge : edges.elements()) {
    const auto end = [&](std::string_view key) {
      const auto found = index.find(edge[key].as_int());
      if (found == index.end()) {
        edge[key].fail(fmt::format("there is no layer {}", edge[key].as_int()),
                       "name a layer of the same width");
      }
      return found->second;
    };
    const std::pair<std::int32_t, std::int32_t> ends{end("sourceId"), end("destId")};
    const double bytes = profile_figure(edge["communicationCost"], kMostCost);
    double& size = width.edges[ends];
    size = reading.last_tensor_only ? bytes : size + bytes;
  }
  return width;
}

/// Layers in topological order; of those that are free, the one listed first.
std::vector<std::int32_t> topological_places(const RawWidth& width, const Value& where) {
  const std::size_t count = width.layers.size();
  std::vector<std::vector<std::int32_t>> next(count);
  std::vector<std::int32_t> waiting(count, 0);
  for (const auto& [ends, bytes] : width.edges) {
    next[static_cast<std::size_t>(ends.first)].push_back(ends.second);
    ++waiting[static_cast<std::size_t>(ends.second)];
  }
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free;
  for (std::size_t l = 0; l < count; ++l) {
    if (waiting[l] == 0) free.push(static_cast<std::int32_t>(l));
  }
  std::vector<std::int32_t> place(count, -1);
  std::int32_t placed = 0;
  while (!free.empty()) {
    const std::int32_t layer = free.top();
    free.pop();
    place[static_cast<std::size_t>(layer)] = placed++;
    for (const std::int32_t after : next[static_cast<std::size_t>(layer)]) {
      if (--waiting[static_cast<std::size_t>(after)] == 0) free.push(after);
    }
  }
  const auto stuck = std::find(place.begin(), place.end(), -1);
  if (stuck != place.end()) {
    where.fail(fmt::format("layer {} is on or behind a cycle of edges",
                           width.ids[static_cast<std::size_t>(stuck - place.begin())]),
               "edges must form an acyclic graph");
  }
  return place;
}

PhazeWidth in_order(const RawWidth& width, std::int32_t tp, const std::vector<std::int32_t>& place,
                    const std::vector<std::pair<std::int32_t, std::int32_t>>& edges) {
  PhazeWidth ordered;
  ordered.tp = tp;
  ordered.layers.resize(width.layers.size());
  for (std::size_t l = 0; l < place.size(); ++l) {
    ordered.layers[static_cast<std::size_t>(place[l])] = width.layers[l];
  }
  EdgeSizes sizes;
  for (const auto& [ends, bytes] : width.edges) {
    sizes[{place[static_cast<std::size_t>(ends.first)],
           place[static_cast<std::size_t>(ends.second)]}] = bytes;
  }
  ordered.edge_bytes.reserve(edges.size());
  for (const auto& edge : edges) ordered.edge_bytes.push_back(sizes.at(edge));
  return ordered;
}

std::int32_t tensor_width(std::string_view key, const Value& value) {
  std::int32_t tp = 0;
  for (const char digit : key) {
    if (digit < '0' || digit > '9' || tp > 100'000) {
      tp = 0;
      break;
    }
    tp = tp * 10 + (digit - '0');
  }
  if (tp < 1) value.fail(fmt::format("'{}' is no tensor-parallel width", key), "use 1, 2, 4 …");
  return tp;
}

}  // namespace

bool is_phaze_input(const Value& root) {
  return root.is_object() && !root["braid"].exists() && root["nodes"].is_object();
}

PhazeProblem read_phaze(const Value& root, const PhazeReading& reading) {
  PhazeProblem problem;
  problem.devices = root["maxDevices"].as_int_in(1, kMostPhazeDevices);
  problem.memory_bytes = profile_figure(root["maxMemoryPerDevice"], kMostCost);
  problem.bytes_per_s = root["bandwidth"].as_double_in(1e-30, kMostCost);
  problem.micro_batches = root["mbsInBatch"].as_int_in(1, kMostMicroBatches);
  problem.recompute = root["activationRecomputation"].as_bool();
  const std::string_view optimizer = root["optimizerAlgorithm"].as_string();
  if (optimizer != "SGD" && optimizer != "Adam") {
    root["optimizerAlgorithm"].fail(fmt::format("unknown optimizer '{}'", optimizer),
                                    "use SGD or Adam");
  }
  problem.optimizer_bytes_per_weight_byte = optimizer == "Adam" ? 1 : 0;
  if (root["fixedPP"].exists()) {
    PhazeExpert expert;
    expert.pp = root["fixedPP"].as_int_in(1, kMostPhazeDevices);
    expert.tp = root["fixedTMPC"].as_int_in(1, kMostPhazeDevices);
    expert.dp = root["fixedDP"].as_int_in(1, kMostPhazeDevices);
    expert.transformer_layers = root["numTransformerLayers"].as_int_in(1, kMostPhazeLayers);
    problem.expert = expert;
  }

  std::map<std::int32_t, RawWidth> widths;
  for (const auto& [key, nodes] : root["nodes"].members()) {
    const std::int32_t tp = tensor_width(key, nodes);
    widths[tp] = read_width(nodes, root["edges"][key], reading);
  }
  if (widths.empty()) root["nodes"].fail("there are no layers");
  const RawWidth& first = widths.begin()->second;
  const std::vector<std::int32_t> place = topological_places(first, root["edges"]);
  problem.names.resize(first.ids.size());
  for (std::size_t l = 0; l < place.size(); ++l) {
    problem.names[static_cast<std::size_t>(place[l])] = std::to_string(first.ids[l]);
  }
  for (const auto& [ends, bytes] : first.edges) {
    problem.edges.emplace_back(place[static_cast<std::size_t>(ends.first)],
                               place[static_cast<std::size_t>(ends.second)]);
  }
  std::sort(problem.edges.begin(), problem.edges.end());
  for (const auto& [tp, width] : widths) {
    const auto same_edge = [](const auto& a, const auto& b) { return a.first == b.first; };
    if (width.ids != first.ids || !std::equal(width.edges.begin(), width.edges.end(),
                                              first.edges.begin(), first.edges.end(), same_edge)) {
      root["nodes"].fail(fmt::format("layers or edges of width {} differ from those of width {}",
                                     tp, widths.begin()->first),
                         "list the same ids, in the same order, and the same edges for each width");
    }
    problem.widths.push_back(in_order(width, tp, place, problem.edges));
  }
  return problem;
}

}  // namespace braid
