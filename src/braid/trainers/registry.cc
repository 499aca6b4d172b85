#include "braid/trainers/registry.h"

#include <algorithm>

#include "braid/base/error.h"
#include "braid/trainers/deepspeed/export.h"
#include "braid/trainers/megatron/export.h"
#include "braid/trainers/megatron/import.h"
#include "braid/trainers/torchtitan/export.h"

namespace braid {
namespace {

struct Target {
  const char* name;
  Export (*write)(const Plan& plan);
};

constexpr Target kTargets[] = {{"megatron", export_megatron},
                               {"deepspeed", export_deepspeed},
                               {"torchtitan", export_torchtitan}};

/// Are layers divided in ways that were searched for?
bool has_searched_shardings(const Plan& plan) {
  for (const Stage& stage : plan.stages) {
    for (const Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const auto& options = options_of(plan.profile, chunk.layers[i]);
        if (!options[static_cast<std::size_t>(chunk.options[i])].divided.empty()) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> export_targets() {
  std::vector<std::string> names;
  for (const Target& target : kTargets) names.emplace_back(target.name);
  return names;
}

Export export_plan(const Plan& plan, const std::string& target) {
  const auto* known = std::find_if(std::begin(kTargets), std::end(kTargets),
                                   [&](const Target& each) { return each.name == target; });
  if (known == std::end(kTargets)) {
    std::string names;
    for (const Target& each : kTargets)
      names += (names.empty() ? "" : ", ") + std::string(each.name);
    throw Error("no exporter is called '" + target + "'", "use one of " + names);
  }
  if (!is_uniform(plan)) {
    throw Error(
        "the plan's stages have parallel forms of their own, which " + target + " cannot be told",
        is_homogeneous(plan.system) ? "plan with --planner braid, whose stages share one form"
                                    : "plan for devices of one kind, whose stages share one form");
  }
  if (has_searched_shardings(plan)) {
    throw Error("the plan divides layers in ways that were searched for, which " + target +
                    " cannot be told",
                "plan without --sharding auto");
  }
  return known->write(plan);
}

Import import_run(const std::string& text, const std::string& file) {
  if (is_megatron(text)) return import_megatron(text, file);
  throw Error(Where{file, 0, ""}, "this is nothing that a trainer is started with",
              "give Megatron-LM's command line or launch script");
}

}  // namespace braid
