#include "braid/trainers/pytorch/local_names.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace braid {
namespace {

constexpr std::array<std::string_view, 3> kPlainNames = {"x", "y", "z"};

bool is_plain(const std::string& name) {
  return std::find(kPlainNames.begin(), kPlainNames.end(), name) != kPlainNames.end();
}

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
  const auto unused = std::find_if(free.begin(), free.end(), [&](const std::string& name) {
    return is_plain(name) && !names_.has(name);
  });
  if (unused == free.end()) {
    const auto plain =
        std::find_if(kPlainNames.begin(), kPlainNames.end(),
                     [&](std::string_view name) { return !names_.has(std::string(name)); });
    return bind(id, plain == kPlainNames.end() ? wanted : std::string(*plain));
  }
  const std::string name = *unused;
  free.erase(unused);
  return bind(id, name);
}

}  // namespace braid
