#include "braid/planners/within_options.h"

#include <algorithm>
#include <set>
#include <string>

#include "braid/base/error.h"
#include "braid/base/index.h"

namespace braid {
namespace {

std::string text_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "without recomputation";
    case Recompute::selective:
      return "with selective recomputation";
    case Recompute::full:
      break;
  }
  return "with full recomputation";
}

/// What a planner's search begins with: nothing offloaded, and the degrees that are fixed.
struct Start {
  const SpaceOptions& space;
  Recompute recompute;

  bool holds(const Execution& how) const {
    return how.recompute == recompute && !how.offload_activations && !how.offload_weights &&
           !how.whole_experts && space.tp.allows(how.tp) && space.cp.allows(how.cp) &&
           space.ep.allows(how.ep) && space.micro_batch.allows(how.micro_batch) &&
           (how.tp == 1 || !space.sequence_parallel ||
            *space.sequence_parallel == how.sequence_parallel);
  }

  /// "of tp 4 without recomputation".
  std::string text() const {
    std::string text;
    const auto add = [&](const char* name, const Degrees& degrees) {
      if (degrees.is_any()) return;
      text += (text.empty() ? "of " : ", ") + std::string(name) + degrees.text();
    };
    add("tp ", space.tp);
    add("cp ", space.cp);
    add("ep ", space.ep);
    add("micro-batch ", space.micro_batch);
    return text + (text.empty() ? "" : " ") + text_of(recompute);
  }
};

/// Throws Error when no execution that a search could begin with goes for all layers.
void check_start(const Profile& profile, const Start& start, std::string_view planner) {
  const std::vector<Execution>& all = start.space.listed->all();
  if (std::any_of(all.begin(), all.end(), [&](const Execution& how) { return start.holds(how); })) {
    return;
  }
  const std::string needs =
      "planner " + std::string(planner) + " needs options " + start.text() + " for every layer";
  for (const ProfileLayer& layer : profile.layers) {
    const std::vector<Option>& options = profile.kinds[at(layer.kind)];
    if (std::any_of(options.begin(), options.end(),
                    [&](const Option& option) { return start.holds(option.how); })) {
      continue;
    }
    throw Error(needs + "; the profile has none for layer " + layer.name,
                "add it to the profile, or fix what the profile has (--tp, --micro-batch, "
                "--recompute)");
  }
  throw Error(needs + "; the profile's layers have none in common",
              "give all layers options of the same degrees and micro-batch");
}

}  // namespace

SpaceOptions within_options(const Job& job, const LayerOptions& layers, SpaceOptions space,
                            Recompute start, std::string_view planner) {
  const Profile* profile = layers.listed();
  if (profile == nullptr) return space;
  space.listed = layers.limits(1).listed;
  const std::set<int> sizes = space.listed->micro_batches();
  if (space.micro_batch.is_any() && sizes.size() == 1) {
    space.micro_batch = *sizes.begin();
    if (job.global_batch % *sizes.begin() != 0) {
      throw Error("the profile's micro-batches of " + std::to_string(*sizes.begin()) +
                      " samples do not divide the global batch of " +
                      std::to_string(job.global_batch),
                  "choose a multiple with --global-batch or --max-microbatches");
    }
  }
  if (states_some_memory(*profile)) {
    if (space.zero.value_or(Zero::none) != Zero::none) {
      throw Error(Where{"", 0, "--zero"},
                  "the profile states memory and gradients as they are, and nothing shards these",
                  "leave it out");
    }
    space.zero = Zero::none;
    space.allow_offload = false;
  }
  check_start(*profile, Start{space, space.recompute.value_or(start)}, planner);
  return space;
}

}  // namespace braid
