#include "braid/planners/phaze/from_profile.h"

#include <algorithm>
#include <map>
#include <set>

#include "braid/base/dtype.h"
#include "braid/base/error.h"
#include "braid/profile/pass_split.h"

namespace braid {
namespace {

bool splits_one_way(const Option& option) {
  const Execution& how = option.how;
  return how.cp == 1 && how.ep == 1 && !how.offload_weights && !how.offload_activations;
}

/// Of the options of one degree, the fastest with that recomputation; null when there is none.
const Option* fastest(const std::vector<Option>& options, int tp, Recompute recompute) {
  const Option* found = nullptr;
  for (const Option& option : options) {
    if (option.how.tp != tp || option.how.recompute != recompute || !splits_one_way(option)) {
      continue;
    }
    if (found == nullptr || option.cost.time_s() < found->cost.time_s()) found = &option;
  }
  return found;
}

std::set<int> degrees_of(const std::vector<Option>& options) {
  std::set<int> degrees;
  for (const Option& option : options) {
    if (option.how.recompute == Recompute::none && splits_one_way(option)) {
      degrees.insert(option.how.tp);
    }
  }
  return degrees;
}

void check_one_size(const Profile& profile) {
  std::set<int> sizes;
  for (const auto& options : profile.kinds) {
    for (const Option& option : options) sizes.insert(option.how.micro_batch);
  }
  if (sizes.size() <= 1) return;
  throw Error("the profile has options for several micro-batch sizes",
              "write one profile for each size, and give them all with --profile");
}

/// The degrees that all layers have. Throws Error when there is none.
std::set<int> common_degrees(const Profile& profile) {
  std::set<int> common;
  for (std::size_t v = 0; v < profile.layers.size(); ++v) {
    const std::set<int> own = degrees_of(options_of(profile, static_cast<std::int32_t>(v)));
    if (own.empty()) {
      throw Error(Where{"", 0, profile.layers[v].name},
                  "the layer has no option that phaze can use",
                  "profile it without recomputation, context or expert parallelism and offload");
    }
    if (v == 0) common = own;
    std::erase_if(common, [&](int tp) { return own.count(tp) == 0; });
    if (common.empty()) {
      throw Error(Where{"", 0, profile.layers[v].name},
                  "no tensor-parallel degree has an option for every layer up to this one",
                  "phaze runs all layers with one degree; add options, or use --planner piper");
    }
  }
  return common;
}

PhazeLayer layer_of(const std::vector<Option>& options, int tp, double time_unit_s,
                    const Precision& precision) {
  const Option& plain = *fastest(options, tp, Recompute::none);
  const double parameters = plain.cost.dense_parameters + plain.cost.expert_parameters;
  const double gradient_bytes = bytes_per_element(precision.gradient);
  PhazeLayer layer;
  const double first_s = forward_pass_s(plain, fastest(options, tp, Recompute::full));
  layer.forward_s = first_s * time_unit_s;
  layer.backward_s = (plain.cost.time_s() - first_s) * time_unit_s;
  layer.weight_bytes =
      plain.cost.gradient_bytes >= 0 ? plain.cost.gradient_bytes : parameters * gradient_bytes;
  layer.fixed_bytes = plain.cost.fixed_bytes >= 0
                          ? plain.cost.fixed_bytes
                          : parameters * (bytes_per_element(precision.weight) + gradient_bytes +
                                          precision.optimizer_bytes_per_parameter);
  layer.activation_bytes = plain.cost.stash_bytes;
  layer.tensor_parallel = tp > 1;
  return layer;
}

/// Half of the re-layout that the options of an edge's ends ask for.
void add_layouts(const Profile& profile, int tp, PhazeWidth& width) {
  for (std::size_t v = 0; v < profile.layers.size(); ++v) {
    const Option& plain =
        *fastest(options_of(profile, static_cast<std::int32_t>(v)), tp, Recompute::none);
    for (const EdgeSync& sync : plain.edge_syncs) {
      width.edge_bytes[static_cast<std::size_t>(sync.edge)] +=
          (sync.forward_bytes + sync.backward_bytes) / 2;
    }
  }
}

}  // namespace

PhazeProblem phaze_from_profile(const Profile& profile, double time_unit_s,
                                const Precision& precision) {
  check_one_size(profile);
  PhazeProblem problem;
  for (const ProfileLayer& layer : profile.layers) problem.names.push_back(layer.name);
  for (const ProfileEdge& edge : profile.edges) {
    problem.edges.emplace_back(edge.source, edge.target);
  }
  for (const int tp : common_degrees(profile)) {
    PhazeWidth width;
    width.tp = tp;
    for (std::size_t v = 0; v < profile.layers.size(); ++v) {
      width.layers.push_back(
          layer_of(options_of(profile, static_cast<std::int32_t>(v)), tp, time_unit_s, precision));
    }
    const int samples = profile.kinds.front().front().how.micro_batch;
    for (const ProfileEdge& edge : profile.edges) width.edge_bytes.push_back(edge.bytes * samples);
    add_layouts(profile, tp, width);
    problem.widths.push_back(std::move(width));
  }
  return problem;
}

}  // namespace braid
