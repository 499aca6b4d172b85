#include "braid/serve/launch/launch_lines.h"

#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "braid/base/counted.h"
#include "braid/serve/launch/engine_arguments.h"

namespace braid {
namespace {

/// Whether the engine itself rounds the weights to the plan's numbers: to eight bits with one scale
/// for a tensor.
bool is_quantised_at_start(const WorkerPlan& of, const LaunchNames& names) {
  const ServingFormat& format = of.format;
  return changes_weights(of, names) && !command_of_engine(of.engine->name).to_fp8.empty() &&
         names.published.name == "bf16" && format.attention == "fp8" && format.dense == "fp8" &&
         format.experts == "fp8";
}

/// "# 6 prefill workers in fp8, 1 GPU each"
std::string headline(const WorkerPlan& of, WorkerRole role) {
  const char* what = role == WorkerRole::prompts    ? "prefill worker"
                     : role == WorkerRole::decoding ? "decode worker"
                                                    : "worker";
  return fmt::format("# {} in {}, {} each\n", counted(of.workers, what), of.format.name,
                     counted(of.layout.devices(), "GPU"));
}

/// What the user has to put in place of the model's name, if anything.
std::string note_of_checkpoint(const WorkerPlan& of, const LaunchNames& names) {
  const std::string name = checkpoint_name(of, names);
  if (name == names.model) return "";
  return fmt::format("# {}: put the path of a checkpoint in {} here ({})\n", name, of.format.name,
                     of.format.source);
}

}  // namespace

double group_sequences(const WorkerPlan& of) {
  return std::ceil(of.limits.sequences / static_cast<double>(of.layout.dp));
}

bool changes_weights(const WorkerPlan& of, const LaunchNames& names) {
  const auto weights = [](const ServingFormat& format) {
    return std::tie(format.attention, format.dense, format.experts);
  };
  return !names.published.name.empty() && weights(of.format) != weights(names.published);
}

std::string checkpoint_name(const WorkerPlan& of, const LaunchNames& names) {
  if (!changes_weights(of, names) || is_quantised_at_start(of, names)) return names.model;
  return names.model + "-" + of.format.name;
}

std::string launch_line(const WorkerPlan& of, const LaunchNames& names, WorkerRole role) {
  const EngineCommand& command = command_of_engine(of.engine->name);
  LaunchNames named = names;
  named.model = checkpoint_name(of, names);
  std::string line = command.line(of, named, role);
  if (is_quantised_at_start(of, names)) line += " " + std::string(command.to_fp8);
  return line;
}

std::string launch_lines(const ServingPlan& plan, const LaunchNames& names) {
  const auto lines_of = [&](const WorkerPlan& of, WorkerRole role) {
    return headline(of, role) + note_of_checkpoint(of, names) + launch_line(of, names, role) + "\n";
  };
  if (!plan.disaggregated) return lines_of(plan.decode, WorkerRole::all);
  return lines_of(plan.prefill, WorkerRole::prompts) + lines_of(plan.decode, WorkerRole::decoding);
}

}  // namespace braid
