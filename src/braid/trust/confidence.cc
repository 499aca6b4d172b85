#include "braid/trust/confidence.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/trust/likeness.h"

namespace braid {
namespace {

constexpr std::size_t kMostNearest = 3;

struct Limit {
  double JobTraits::*of;
  const char* text;  ///< Of the greatest that was measured.
};
constexpr Limit kLimits[] = {{&JobTraits::devices, "no measured run on more than {:.0f} {}"},
                             {&JobTraits::tp, "no measured run with tp above {:.0f} on {}"},
                             {&JobTraits::pp, "no measured run with pp above {:.0f} on {}"},
                             {&JobTraits::cp, "no measured run with cp above {:.0f} on {}"},
                             {&JobTraits::ep, "no measured run with ep above {:.0f} on {}"}};

std::vector<std::string> beyond(const JobTraits& job, const Evidence& runs) {
  std::vector<const JobTraits*> same;
  for (const RunError& run : runs) {
    if (run.traits.chip == job.chip) same.push_back(&run.traits);
  }
  if (same.empty()) return {"no measured run on " + job.chip};
  std::vector<std::string> lines;
  const auto say_unless = [&](const auto& holds, const std::string& text) {
    const bool any =
        std::any_of(same.begin(), same.end(), [&](const JobTraits* run) { return holds(*run); });
    if (!any) lines.push_back(text + " on " + job.chip);
  };
  say_unless([&](const JobTraits& run) { return run.trainer == job.trainer; },
             job.trainer.empty() ? "no measured run without a trainer's ways"
                                 : "no measured run by " + job.trainer);
  say_unless([&](const JobTraits& run) { return run.experts == job.experts; },
             job.experts ? "no measured run of experts" : "no measured run of a dense model");
  say_unless([&](const JobTraits& run) { return bits_of(run.format) == bits_of(job.format); },
             "no measured run in " + job.format);
  for (const Limit& limit : kLimits) {
    double most = 0;
    for (const JobTraits* run : same) most = std::max(most, run->*limit.of);
    if (job.*limit.of > most) {
      lines.push_back(fmt::format(fmt::runtime(limit.text), most, job.chip));
    }
  }
  return lines;
}

std::string memory_from(const JobTraits& job, const Evidence& runs) {
  std::size_t count = 0;
  std::set<std::string> chips;
  for (const RunError& run : runs) {
    if (!run.memory || run.traits.trainer != job.trainer) continue;
    ++count;
    chips.insert(run.traits.chip);
  }
  return fmt::format("{} run{} on {}", count, count == 1 ? "" : "s", fmt::join(chips, ", "));
}

std::vector<RunError> nearest(const JobTraits& job, const Evidence& runs) {
  std::vector<std::pair<double, const RunError*>> order;
  order.reserve(runs.size());
  for (const RunError& run : runs) order.emplace_back(distance_of(job, run.traits), &run);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<RunError> found;
  for (const auto& [distance, run] : order) {
    if (found.size() == kMostNearest) break;
    const bool known =
        std::any_of(found.begin(), found.end(), [&, near = run](const RunError& one) {
          return one.source == near->source && one.model == near->model &&
                 one.traits.chip == near->traits.chip &&
                 one.traits.devices == near->traits.devices &&
                 one.traits.parameters == near->traits.parameters;
        });
    if (!known) found.push_back(*run);
  }
  return found;
}

}  // namespace

Confidence confidence_of(const JobTraits& job, const Evidence& runs) {
  return {time_interval(job, runs), memory_interval(job, runs), memory_from(job, runs),
          beyond(job, runs), nearest(job, runs)};
}

std::optional<Confidence> confidence_of(const Plan& plan, const Metrics& metrics) {
  if (plan.profile.provenance != "estimated" || plan.stages.empty()) return std::nullopt;
  Confidence confidence = confidence_of(traits_of(plan, metrics));
  if (plan.seq_len == 0) {
    confidence.beyond.insert(confidence.beyond.begin(),
                             "all measured runs are of models of sequences");
  }
  return confidence;
}

}  // namespace braid
