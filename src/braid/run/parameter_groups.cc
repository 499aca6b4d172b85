#include "braid/run/parameter_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {

std::vector<ParameterGroup> parameter_groups(const StagedModel& staged, const Plan& plan) {
  struct Holders {
    std::set<std::int32_t> ranks;
    Zero zero = Zero::parameters;
  };
  std::map<ValueId, Holders> holders;
  for (const StagePart& part : staged.parts) {
    const Zero zero = form_of(plan, at(part.stage)).zero;
    for (const ValueId parameter : part.parameters) {
      Holders& of = holders[parameter];
      of.ranks.insert(part.ranks.begin(), part.ranks.end());
      of.zero = std::min(of.zero, zero);
    }
  }
  std::map<std::pair<std::vector<std::int32_t>, Zero>, std::vector<ValueId>> by_ranks;
  for (const auto& [parameter, of] : holders) {
    by_ranks[{{of.ranks.begin(), of.ranks.end()}, of.zero}].push_back(parameter);
  }
  std::vector<ParameterGroup> groups;
  groups.reserve(by_ranks.size());
  for (auto& [key, parameters] : by_ranks) {
    groups.push_back({key.first, std::move(parameters), key.second});
  }
  for (const StagePart& part : staged.parts) {
    for (const ParameterGroup& group : groups) {
      if (!is_gathered(group) || group.ranks == part.ranks) continue;
      for (const ValueId id : part.parameters) {
        if (!std::binary_search(group.parameters.begin(), group.parameters.end(), id)) continue;
        throw Error(fmt::format("stage {} shards {} (ZeRO-3), which another stage holds too",
                                part.stage + 1, staged.model.program.values[at(id)].name),
                    "plan with --zero 2 or less");
      }
    }
  }
  return groups;
}

}  // namespace braid
