#include "braid/planners/uniform/searched_space.h"

#include <algorithm>
#include <vector>

#include "braid/base/and_list.h"

namespace braid {

namespace {

bool may_have_stages(const SpaceLimits& limits, const SpaceOptions& options) {
  const std::int64_t most = std::min<std::int64_t>(
      {limits.devices, limits.layers, std::int64_t{options.can.most_stages}});
  return options.pp.at_most(most) > 1;
}

bool may_have(ScheduleKind kind, const SpaceOptions& options) {
  if (options.schedule && *options.schedule != kind) return false;
  return options.can.allows(kind);
}

}  // namespace

std::string searched_space(const SpaceLimits& limits, const SpaceOptions& options) {
  std::vector<std::string> parts;
  if (!may_have_stages(limits, options)) {
    parts.emplace_back("plans of one stage");
  } else {
    if (may_have(ScheduleKind::one_f_one_b, options)) {
      parts.emplace_back("under 1F1B every split of the layers into consecutive stages");
    }
    std::vector<std::string> dealt;
    if (may_have(ScheduleKind::interleaved, options) && options.vp.at_most(limits.layers / 2) > 1) {
      dealt.emplace_back("interleaving");
    }
    if (may_have(ScheduleKind::gpipe, options)) dealt.emplace_back("GPipe");
    if (!dealt.empty()) {
      parts.push_back("under " + and_list(dealt) +
                      " layers in equal numbers, in equal times, evened out stage by stage, and as "
                      "trainers deal them");
    }
  }
  std::string text = and_list(parts, "; ");
  return text + (parts.size() == 1 ? ", and" : "; and") +
         " every plan one setting away from the best of these";
}

}  // namespace braid
