#include "braid/profile/listed_executions.h"

#include <algorithm>
#include <map>

#include "braid/base/index.h"

namespace braid {

ListedExecutions::Key ListedExecutions::key_of(const Execution& how) {
  return {how.micro_batch,
          how.tp,
          how.sequence_parallel,
          how.cp,
          how.ep,
          how.whole_experts,
          how.recompute,
          how.offload_activations,
          how.offload_weights};
}

ListedExecutions::ListedExecutions(const Profile& profile) {
  std::vector<bool> used(profile.kinds.size(), false);
  for (const ProfileLayer& layer : profile.layers) used[at(layer.kind)] = true;
  // How many kinds have it.
  struct Count {
    std::size_t any = 0, manual = 0;
  };
  std::map<Key, Count> counts;
  std::map<Key, Execution> first;
  std::size_t kinds = 0;
  for (std::size_t kind = 0; kind < profile.kinds.size(); ++kind) {
    if (!used[kind]) continue;
    ++kinds;
    std::map<Key, bool> here;  // Whether it is there as manual.
    for (const Option& option : profile.kinds[kind]) {
      const Key key = key_of(option.how);
      bool& manual = here.try_emplace(key, false).first->second;
      manual = manual || option.sharded.empty();
      first.try_emplace(key, option.how);
    }
    for (const auto& [key, manual] : here) {
      Count& count = counts[key];
      ++count.any;
      count.manual += manual ? 1 : 0;
    }
  }
  for (const auto& [key, count] : counts) {
    if (count.any < kinds) continue;
    const Execution& how = first.at(key);
    all_.push_back(how);
    any_.insert(key);
    degrees_.insert({how.tp, how.sequence_parallel, how.cp, how.ep});
    if (count.manual < kinds) continue;
    manual_.insert(key);
    manual_tp_.insert(how.tp);
  }
}

bool ListedExecutions::has(const Execution& how, bool manual) const {
  return (manual ? manual_ : any_).contains(key_of(how));
}

bool ListedExecutions::has_degrees(const Execution& how) const {
  if (degrees_.contains({how.tp, true, how.cp, how.ep})) return true;
  return !how.sequence_parallel && degrees_.contains({how.tp, false, how.cp, how.ep});
}

std::set<int> ListedExecutions::micro_batches() const {
  std::set<int> sizes;
  for (const Execution& how : all_) sizes.insert(how.micro_batch);
  return sizes;
}

std::vector<int> ListedExecutions::auto_tp() const {
  std::set<int> found;
  for (const Execution& how : all_) {
    if (how.tp > 1 && !how.sequence_parallel && !manual_.contains(key_of(how))) {
      found.insert(how.tp);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace braid
