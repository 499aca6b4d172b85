#include "braid/serve/launch/launch_lines.h"

#include <cmath>

#include <fmt/format.h>

#include "braid/serve/launch/engine_arguments.h"

namespace braid {
namespace {

/// "# 6 workers of prompts in fp8, 1 GPUs each"
std::string headline(const WorkerPlan& of, WorkerRole role) {
  const char* what = role == WorkerRole::prompts    ? " of prompts"
                     : role == WorkerRole::decoding ? " of decoding"
                                                    : "";
  return fmt::format("# {} workers{} in {}, {} GPUs each\n", of.workers, what, of.format.name,
                     of.layout.devices());
}

}  // namespace

double group_sequences(const WorkerPlan& of) {
  return std::ceil(of.limits.sequences / static_cast<double>(of.layout.dp));
}

std::string launch_line(const WorkerPlan& of, const LaunchNames& names, WorkerRole role) {
  return command_of_engine(of.engine->name).line(of, names, role);
}

std::string launch_lines(const ServingPlan& plan, const LaunchNames& names) {
  const auto lines_of = [&](const WorkerPlan& of, WorkerRole role) {
    return headline(of, role) + launch_line(of, names, role) + "\n";
  };
  if (!plan.disaggregated) return lines_of(plan.decode, WorkerRole::all);
  return lines_of(plan.prefill, WorkerRole::prompts) + lines_of(plan.decode, WorkerRole::decoding);
}

}  // namespace braid
