#include "braid/trainers/pytorch/local_names.h"

#include <algorithm>
#include <array>

namespace braid {
namespace {

constexpr std::array<const char*, 2> kPlainNames = {"x", "y"};

}  // namespace

const std::string& LocalNames::bind(ValueId id, const std::string& wanted) {
  return bound_[id] = names_.unique(wanted);
}

std::vector<std::string> LocalNames::read(std::span<const ValueId> ids) {
  std::vector<std::string> free;
  std::set<ValueId> seen;
  for (const ValueId id : ids) {
    if (!has(id) || !seen.insert(id).second || --reads_[id] > 0) continue;
    free.push_back(bound_.at(id));
    names_.release(free.back());
    bound_.erase(id);
  }
  return free;
}

const std::string& LocalNames::bind_result(ValueId id, std::vector<std::string>& free,
                                           const std::string& wanted) {
  const auto unused = std::find_if(free.begin(), free.end(),
                                   [&](const std::string& name) { return !names_.has(name); });
  if (unused == free.end()) {
    const auto plain = std::find_if(kPlainNames.begin(), kPlainNames.end(),
                                    [&](const char* name) { return !names_.has(name); });
    return bind(id, plain == kPlainNames.end() ? wanted : *plain);
  }
  const std::string name = *unused;
  free.erase(unused);
  return bind(id, name);
}

}  // namespace braid
