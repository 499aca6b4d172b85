#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "braid/base/error.h"
#include "braid/profile/profile.h"

namespace braid {
namespace {

/// First field that is not a finite number of at least zero; empty when all are.
std::string bad_field(const LayerCost& cost) {
  const auto bad = [](double value) { return !std::isfinite(value) || value < 0; };
  const std::pair<const char*, const PassTime*> passes[] = {
      {"forward", &cost.forward},
      {"recompute", &cost.recompute},
      {"backward_input", &cost.backward_input},
      {"backward_weight", &cost.backward_weight}};
  for (const auto& [name, pass] : passes) {
    if (bad(pass->compute_s) || bad(pass->tp_comm_s) || bad(pass->cp_comm_s) ||
        bad(pass->ep_comm_s) || bad(pass->offload_s)) {
      return name;
    }
  }
  const std::pair<const char*, double> numbers[] = {
      {"hidden_tp_s", cost.hidden_tp_s},           {"model_flops", cost.model_flops},
      {"dense_parameters", cost.dense_parameters}, {"expert_parameters", cost.expert_parameters},
      {"stash_bytes", cost.stash_bytes},           {"offloaded_bytes", cost.offloaded_bytes},
      {"working_bytes", cost.working_bytes},       {"output_bytes", cost.output_bytes}};
  for (const auto& [name, value] : numbers) {
    if (bad(value)) return name;
  }
  return "";
}

}  // namespace

std::vector<double> output_bytes_of(const Profile& profile) {
  std::vector<double> bytes(profile.layers.size(), 0);
  std::vector<std::vector<double>> tensors(profile.layers.size());
  for (const ProfileEdge& edge : profile.edges) {
    const auto source = static_cast<std::size_t>(edge.source);
    std::vector<double>& known = tensors[source];
    if (std::find(known.begin(), known.end(), edge.bytes) != known.end()) continue;
    known.push_back(edge.bytes);
    bytes[source] += edge.bytes;
  }
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    if (profile.layers[l].output_bytes >= 0) bytes[l] = profile.layers[l].output_bytes;
  }
  return bytes;
}

bool states_some_memory(const Profile& profile) {
  for (const std::vector<Option>& options : profile.kinds) {
    for (const Option& option : options) {
      if (option.cost.fixed_bytes >= 0 || option.cost.gradient_bytes >= 0) return true;
    }
  }
  return false;
}

void check_profile(const Profile& profile, const std::string& file) {
  const auto fail = [&](const std::string& key, const std::string& message) {
    throw Error(Where{file, 0, key}, message);
  };
  const auto layers = static_cast<std::int32_t>(profile.layers.size());
  if (layers == 0) fail("layers", "the profile has no layers");
  for (const ProfileLayer& layer : profile.layers) {
    if (layer.kind < 0 || layer.kind >= static_cast<std::int32_t>(profile.kinds.size())) {
      fail(layer.name, "its kind does not exist");
    }
    if (profile.kinds[static_cast<std::size_t>(layer.kind)].empty()) {
      fail(layer.name, "has no option to run it");
    }
  }
  std::set<std::pair<std::int32_t, std::int32_t>> seen;
  for (std::size_t e = 0; e < profile.edges.size(); ++e) {
    const ProfileEdge& edge = profile.edges[e];
    for (const std::int32_t end : {edge.source, edge.target}) {
      if (end >= 0 && end < layers) continue;
      fail("edges[" + std::to_string(e) + "]", "there is no layer " + std::to_string(end));
    }
    const std::string& name = profile.layers[static_cast<std::size_t>(edge.source)].name;
    if (edge.source >= edge.target) {
      fail(name, "an edge leads back to an earlier layer: the layer graph has a cycle");
    }
    if (!seen.insert({edge.source, edge.target}).second) fail(name, "an edge is listed twice");
    if (!std::isfinite(edge.bytes) || edge.bytes < 0) {
      fail(name, "an edge's bytes must be zero or more");
    }
  }
  for (const SharedParameter& parameter : profile.shared) {
    const std::vector<std::int32_t>& readers = parameter.layers;
    if (readers.size() < 2) fail("shared", "a shared parameter needs two layers or more");
    if (readers.front() < 0 || readers.back() >= layers ||
        std::adjacent_find(readers.begin(), readers.end(), std::greater_equal<>()) !=
            readers.end()) {
      fail("shared", "a shared parameter's layers must exist and be listed in rising order");
    }
    if (!std::isfinite(parameter.elements) || parameter.elements < 0) {
      fail("shared", "a shared parameter's elements must be zero or more");
    }
  }
  for (const ProfileLayer& layer : profile.layers) {
    for (const Option& option : profile.kinds[static_cast<std::size_t>(layer.kind)]) {
      const std::string field = bad_field(option.cost);
      if (!field.empty()) {
        fail(layer.name, "option '" + option.name + "': " + field +
                             " must be a finite number of at least zero");
      }
      const double offloaded_bytes = option.cost.offloaded_bytes;
      if (offloaded_bytes > 0 && !option.how.offload_activations) {
        fail(layer.name, "option '" + option.name + "' offloads bytes, but not its activations");
      }
      if (offloaded_bytes > option.cost.stash_bytes) {
        fail(layer.name, "option '" + option.name + "' offloads more bytes than it stashes");
      }
      for (const EdgeSync& sync : option.edge_syncs) {
        if (sync.edge < 0 || sync.edge >= static_cast<std::int32_t>(profile.edges.size())) {
          fail(layer.name, "option '" + option.name + "' speaks of an edge that does not exist");
        }
      }
    }
  }
}

}  // namespace braid
