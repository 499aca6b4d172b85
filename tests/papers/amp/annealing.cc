#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "braid/search/random_numbers.h"
#include "braid/search/random_tiling.h"

#include "papers/amp/strategies.h"

namespace braid {
namespace {

/// Devices as a mesh: mesh[column][row], a column for each node. Empty when nodes differ in size.
std::vector<std::vector<std::int32_t>> mesh_of(const AmpCluster& cluster) {
  std::vector<std::vector<std::int32_t>> mesh(cluster.node_bytes_per_s.size());
  for (std::int32_t device = 0; device < cluster.devices(); ++device) {
    mesh[static_cast<std::size_t>(cluster.node[static_cast<std::size_t>(device)])].push_back(
        device);
  }
  for (const auto& column : mesh) {
    if (column.size() != mesh.front().size()) return {};
  }
  return mesh;
}

/// Each strategy that was tried, once.
class Record {
 public:
  void add(const AmpChoice& choice) {
    const AmpStrategy& s = choice.strategy;
    seen_.emplace(std::tuple(s.tp, s.dp, s.micro_batch, s.device), choice);
  }
  std::vector<AmpChoice> best_first() const {
    std::vector<AmpChoice> found;
    found.reserve(seen_.size());
    for (const auto& [key, choice] : seen_) found.push_back(choice);
    std::stable_sort(found.begin(), found.end(),
                     [](const AmpChoice& a, const AmpChoice& b) { return a.cost_s < b.cost_s; });
    return found;
  }

 private:
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::vector<std::int32_t>>,
           AmpChoice>
      seen_;
};

}  // namespace

std::vector<AmpChoice> amp_anneal(const AmpModel& model, const AmpCluster& cluster,
                                  std::int64_t global_batch, const AmpRules& rules,
                                  const AmpRandomOptions& options) {
  constexpr double kHottest_s = 10;
  const std::vector<AmpStrategy> degrees = amp_degrees(model, cluster, global_batch);
  if (degrees.empty()) return {};
  const auto mesh = mesh_of(cluster);
  Record record;
  for (std::int32_t chain = 0; chain < options.chains; ++chain) {
    RandomNumbers random(options.seed + static_cast<std::uint64_t>(chain));
    const auto place = [&](AmpStrategy strategy) {
      if (!mesh.empty()) strategy.device = random_tiling(mesh, strategy.tp, strategy.dp, random);
      if (strategy.device.empty()) strategy.device = rank_order(cluster);
      return amp_evaluate(model, cluster, strategy, global_batch, rules);
    };
    auto current = place(degrees[random.below(degrees.size())]);
    if (current.has_value()) record.add(*current);
    for (std::int32_t step = 0; step < options.steps; ++step) {
      // Change tp or dp only, and draw the rest anew.
      const bool keep_dp = random.below(2) == 0;
      std::vector<AmpStrategy> near;
      for (const AmpStrategy& candidate : degrees) {
        if (!current.has_value() || (keep_dp ? candidate.dp == current->strategy.dp
                                             : candidate.tp == current->strategy.tp)) {
          near.push_back(candidate);
        }
      }
      const auto next = place(near[random.below(near.size())]);
      const double chance = random.share();
      if (!next.has_value()) continue;
      record.add(*next);
      const double temperature_s = kHottest_s * (1 - static_cast<double>(step) / options.steps);
      if (!current.has_value() ||
          chance < std::exp(std::min((current->cost_s - next->cost_s) / temperature_s, 0.0))) {
        current = next;
      }
    }
  }
  return record.best_first();
}

std::vector<AmpChoice> amp_draw(const AmpModel& model, const AmpCluster& cluster,
                                std::int64_t global_batch, const AmpRules& rules,
                                const AmpRandomOptions& options) {
  const std::vector<AmpStrategy> degrees = amp_degrees(model, cluster, global_batch);
  if (degrees.empty()) return {};
  Record record;
  RandomNumbers random(options.seed);
  for (std::int64_t n = 0; n < std::int64_t{options.chains} * options.steps; ++n) {
    AmpStrategy strategy = degrees[random.below(degrees.size())];
    strategy.device = rank_order(cluster);
    random.shuffle(strategy.device);
    const auto choice = amp_evaluate(model, cluster, strategy, global_batch, rules);
    if (choice.has_value()) record.add(*choice);
  }
  return record.best_first();
}

}  // namespace braid
