#include "braid/profile/piper_profile.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "braid/base/quantity.h"
#include "braid/base/text.h"

namespace braid {
namespace {

constexpr std::int64_t kMostId = std::int64_t{1} << 53;

struct FileEdge {
  std::int32_t source, target;  ///< Places of the layers in the file.
  double bytes;
};

/// Ids of the layers of the file.
class Ids {
 public:
  void add(const Value& id, std::int32_t place) {
    if (!places_.emplace(id.as_int_in(0, kMostId), place).second) {
      id.fail("a second layer has id " + std::to_string(id.as_int()), "give each its own id");
    }
  }
  std::int32_t place(const Value& id) const {
    const auto found = places_.find(id.as_int_in(0, kMostId));
    if (found == places_.end()) id.fail("no layer has id " + std::to_string(id.as_int()));
    return found->second;
  }
  /// Place of the layer whose id is a key of an object; -1 when there is none.
  std::int32_t place_of_key(std::string_view key) const {
    const auto number = finite_double(key);
    if (!number || *number < 0 || *number > static_cast<double>(kMostId)) return -1;
    const auto found = places_.find(static_cast<std::int64_t>(*number));
    return found == places_.end() || std::to_string(found->first) != key ? -1 : found->second;
  }

 private:
  std::map<std::int64_t, std::int32_t> places_;
};

std::vector<FileEdge> read_edges(const Value& edges, const Ids& ids) {
  std::vector<FileEdge> read;
  std::map<std::pair<std::int32_t, std::int32_t>, bool> seen;
  for (const Value& edge : edges.elements()) {
    const FileEdge next{ids.place(edge["sourceId"]), ids.place(edge["destId"]),
                        profile_figure(edge["communicationCost"], kMostStated)};
    if (!seen.emplace(std::pair(next.source, next.target), true).second) {
      edge.fail("the edge is listed twice", "add its bytes to the first");
    }
    read.push_back(next);
  }
  return read;
}

/// For each layer of the file its number in topological order, ties in file order.
std::vector<std::int32_t> topological_numbers(const Value& nodes, std::size_t layers,
                                              const std::vector<FileEdge>& edges) {
  std::vector<std::vector<std::int32_t>> successors(layers);
  std::vector<std::int32_t> waits(layers, 0), numbers(layers, -1);
  for (const FileEdge& edge : edges) {
    successors[static_cast<std::size_t>(edge.source)].push_back(edge.target);
    ++waits[static_cast<std::size_t>(edge.target)];
  }
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> ready;
  for (std::size_t v = 0; v < layers; ++v) {
    if (waits[v] == 0) ready.push(static_cast<std::int32_t>(v));
  }
  std::int32_t next = 0;
  while (!ready.empty()) {
    const auto v = static_cast<std::size_t>(ready.top());
    ready.pop();
    numbers[v] = next++;
    for (const std::int32_t w : successors[v]) {
      if (--waits[static_cast<std::size_t>(w)] == 0) ready.push(w);
    }
  }
  const auto left = std::find(numbers.begin(), numbers.end(), -1);
  if (left != numbers.end()) {
    nodes[static_cast<std::size_t>(left - numbers.begin())].fail(
        "the layer is on a cycle of edges, or after one");
  }
  return numbers;
}

using EdgeNumbers = std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t>;

/// Where the layers and edges that an option speaks of are.
struct LayerNumbers {
  const Ids& ids;
  const std::vector<std::int32_t>& numbers;  ///< By place in the file.
  const EdgeNumbers& edges;
};

/// Reads the re-layouts of one direction of an option of layer `layer` into `option`.
void read_syncs(const Value& syncs, bool entering, std::int32_t layer, std::size_t edges_there,
                const LayerNumbers& there, Option& option) {
  if (!syncs.exists()) return;
  const auto members = syncs.members();
  for (const auto& [key, value] : members) {
    const std::int32_t place = there.ids.place_of_key(key);
    const std::int32_t other = place < 0 ? -1 : there.numbers[static_cast<std::size_t>(place)];
    const auto edge =
        there.edges.find(entering ? std::pair(other, layer) : std::pair(layer, other));
    if (edge == there.edges.end()) {
      value.fail("no edge " + std::string(entering ? "from " : "to ") + in_quotes(key));
    }
    const double bytes = profile_figure(value, kMostStated);
    if (bytes == 0) continue;
    const auto known =
        std::find_if(option.edge_syncs.begin(), option.edge_syncs.end(),
                     [&](const EdgeSync& sync) { return sync.edge == edge->second; });
    EdgeSync& sync = known != option.edge_syncs.end() ? *known : option.edge_syncs.emplace_back();
    sync.edge = edge->second;
    (entering ? sync.forward_bytes : sync.backward_bytes) = bytes;
  }
  if (members.size() != edges_there) {
    syncs.fail("speaks of " + std::to_string(members.size()) + " edges, but there are " +
               std::to_string(edges_there));
  }
}

/// Everything that an option is, for finding equal lists of options.
std::string bytes_of(const std::vector<Option>& options) {
  std::string bytes;
  const auto add = [&](double number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  for (const Option& option : options) {
    bytes += option.name + '\0';
    add(option.how.tp);
    add(option.cost.forward.compute_s);
    add(option.cost.stash_bytes);
    add(option.cost.fixed_bytes);
    add(option.cost.gradient_bytes);
    add(static_cast<double>(option.edge_syncs.size()));
    for (const EdgeSync& sync : option.edge_syncs) {
      add(sync.edge);
      add(sync.forward_bytes);
      add(sync.backward_bytes);
    }
  }
  return bytes;
}

struct LayerEdges {
  std::size_t in = 0, out = 0;
};

std::vector<Option> read_options(const Value& configurations, std::int32_t layer,
                                 const LayerEdges& at, const LayerNumbers& there) {
  std::vector<Option> options;
  for (const auto& [key, list] : configurations.members()) {
    const auto tp = finite_double(key);
    if (!tp || !(*tp >= 1 && *tp <= 1 << 20) ||
        std::to_string(static_cast<std::int64_t>(*tp)) != key) {
      list.fail(in_quotes(key) + " is no tensor-parallel degree", "use 1, 2, 4 …");
    }
    for (const Value& entry : list.elements()) {
      Option option;
      option.name = entry["id"].as_string();
      option.how.tp = static_cast<int>(*tp);
      if (option.name == "activation recomp") option.how.recompute = Recompute::full;
      option.cost.forward.compute_s = profile_figure(entry["timePerSample"], kMostStated);
      option.cost.gradient_bytes = profile_figure(entry["parameterSize"], kMostStated);
      option.cost.stash_bytes = profile_figure(entry["memoryUsageA"], kMostStated);
      option.cost.fixed_bytes = profile_figure(entry["memoryUsageB"], kMostStated);
      read_syncs(entry["syncTimeFw"], true, layer, at.in, there, option);
      read_syncs(entry["syncTimeBw"], false, layer, at.out, there, option);
      std::sort(option.edge_syncs.begin(), option.edge_syncs.end(),
                [](const EdgeSync& a, const EdgeSync& b) { return a.edge < b.edge; });
      options.push_back(std::move(option));
    }
  }
  if (options.empty()) configurations.fail("the layer has no option for any degree");
  std::stable_sort(options.begin(), options.end(),
                   [](const Option& a, const Option& b) { return a.how.tp < b.how.tp; });
  return options;
}

}  // namespace

bool is_piper_profile(const Value& root) {
  return root.is_object() && !root["braid"].exists() && root["nodes"].is_array();
}

PiperProfile piper_profile_from_json(const Value& root) {
  PiperProfile read;
  read.devices = root["maxDevices"].exists() ? root["maxDevices"].as_int_in(1, kMostId) : 0;
  read.micro_batches = root["mbsInBatch"].exists() ? root["mbsInBatch"].as_int_in(1, kMostId) : 0;
  const auto limit = [&](const char* key) {
    if (!root[key].exists()) return 0.0;
    const double value = profile_figure(root[key], kMostStated);
    if (value == 0) root[key].fail("must be above zero");
    return value;
  };
  read.memory_bytes = limit("maxMemoryPerDevice");
  read.bandwidth_bytes = limit("bandwidth");

  const Value nodes = root["nodes"];
  const std::vector<Value> layers = nodes.elements();
  if (layers.empty()) nodes.fail("the profile has no layers");
  Ids ids;
  for (std::size_t v = 0; v < layers.size(); ++v) {
    ids.add(layers[v]["id"], static_cast<std::int32_t>(v));
  }
  const std::vector<FileEdge> file_edges = read_edges(root["edges"], ids);
  const auto numbers = topological_numbers(nodes, layers.size(), file_edges);

  Profile& profile = read.profile;
  profile.provenance = "file";
  std::vector<LayerEdges> at(layers.size());
  for (const FileEdge& edge : file_edges) {
    const ProfileEdge next{numbers[static_cast<std::size_t>(edge.source)],
                           numbers[static_cast<std::size_t>(edge.target)], edge.bytes};
    ++at[static_cast<std::size_t>(next.source)].out;
    ++at[static_cast<std::size_t>(next.target)].in;
    profile.edges.push_back(next);
  }
  std::sort(profile.edges.begin(), profile.edges.end(),
            [](const ProfileEdge& a, const ProfileEdge& b) {
              return std::pair(a.source, a.target) < std::pair(b.source, b.target);
            });
  EdgeNumbers edges;
  for (std::size_t e = 0; e < profile.edges.size(); ++e) {
    edges[{profile.edges[e].source, profile.edges[e].target}] = static_cast<std::int32_t>(e);
  }
  std::vector<std::size_t> place(layers.size());
  for (std::size_t v = 0; v < layers.size(); ++v) place[static_cast<std::size_t>(numbers[v])] = v;
  std::map<std::string, std::int32_t> kinds;
  for (std::size_t v = 0; v < layers.size(); ++v) {
    const Value& layer = layers[place[v]];
    const std::string id = std::to_string(layer["id"].as_int());
    std::vector<Option> options =
        read_options(layer["TMPCs"], static_cast<std::int32_t>(v), at[v], {ids, numbers, edges});
    const auto [kind, is_new] =
        kinds.try_emplace(bytes_of(options), static_cast<std::int32_t>(kinds.size()));
    if (is_new) profile.kinds.push_back(std::move(options));
    profile.layers.push_back({layer["name"].string_or("layer") + " " + id, kind->second});
  }
  return read;
}

}  // namespace braid
