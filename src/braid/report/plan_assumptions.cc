#include "braid/report/plan_assumptions.h"

#include <algorithm>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/base/index.h"
#include "braid/base/quantity.h"
#include "braid/base/rounding.h"
#include "braid/base/text.h"
#include "braid/profile/layer_profile.h"
#include "braid/profile/mapped_layer.h"

namespace braid {
namespace {

/// What a plan that uses host memory depends on; empty for others.
std::string host_assumption(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  std::vector<std::string> kept;
  if (p.offload_optimizer) kept.emplace_back("optimizer state");
  if (p.offload_activations) kept.emplace_back("activations");
  if (p.offload_weights) kept.emplace_back("weights");
  const auto& host = plan.system.groups.front().chip.host;
  if (kept.empty() || !host) return "";
  return fmt::format(
      "offload: the plan keeps {} in host memory, of which a device has {} behind a link of {}; "
      "--no-offload plans without",
      fmt::join(kept, " and "), format_bytes(host->bytes), format_bytes_per_s(host->bytes_per_s));
}

/// How far the layers of a plan may be from the best mappings onto the chips; empty for chips onto
/// which none are mapped.
std::string mapping_assumption(const Graph& graph, const Plan& plan) {
  const bool mapped = std::any_of(plan.system.groups.begin(), plan.system.groups.end(),
                                  [](const DeviceGroup& group) { return maps_layers(group.chip); });
  if (!mapped) return "";
  const std::vector<std::vector<TensorId>> leaving = leaving_tensors(graph);
  std::vector<bool> seen(plan.profile.kinds.size(), false);
  std::string chips;
  bool on_cores = false;
  double gap = 0;
  for (std::size_t l = 0; l < plan.profile.layers.size(); ++l) {
    const std::size_t kind = at(plan.profile.layers[l].kind);
    if (seen[kind]) continue;
    seen[kind] = true;
    const auto layer = static_cast<LayerId>(l);
    const std::vector<OperatorWork> works = layer_work(graph, layer);
    for (const Option& option : plan.profile.kinds[kind]) {
      const Chip& chip = plan.system.groups[at(std::max(0, option.device_group))].chip;
      if (!maps_layers(chip) || !option.sharded.empty()) continue;
      const MappedTimes times =
          mapped_times(graph, layer, works, option.how, leaving[l], {plan.precision, chip});
      if (times.least_s > 0) {
        gap = std::max(gap, 1 - times.least_s / (times.forward_s + times.backward_s));
      }
      on_cores = on_cores || chip.execution == ChipExecution::cores;
      if (!contains(chips, chip.name)) chips += (chips.empty() ? "" : ", ") + chip.name;
    }
  }
  if (chips.empty()) return "";
  return fmt::format("{}: layers run by the best {}, {}", chips,
                     on_cores ? "schedule of their operators on the chip's cores"
                              : "mapping of their kernels onto the chip",
                     gap < kNoGap ? "proven" : fmt::format("within {:.1f} %", 100 * gap));
}

/// Chips some of whose latencies are another mapper's.
std::string latency_assumption(const Plan& plan) {
  for (const DeviceGroup& group : plan.system.groups) {
    const Chip& chip = group.chip;
    if (!chip.accelerator || chip.accelerator->latencies.empty()) continue;
    const std::size_t shapes = chip.accelerator->latencies.size();
    return fmt::format("{}: GEMMs of {} {} take what another mapper says (latencies)", chip.name,
                       shapes, shapes == 1 ? "shape" : "shapes");
  }
  return "";
}

/// Of models with attention whose trainer keeps its scores; empty for others.
std::string attention_assumption(const Graph& graph, const Plan& plan) {
  const bool keeps =
      !plan.trainer.does.flash_attention &&
      std::any_of(graph.operators.begin(), graph.operators.end(),
                  [](const Operator& op) { return std::holds_alternative<Attention>(op.kind); });
  return keeps ? fmt::format(
                     "attention: its scores lie in memory, as {0} is taken to have no flash "
                     "attention (braid show {0})",
                     plan.trainer.name)
               : "";
}

/// What is taken of tables of which a sample reads a few rows; empty for models without.
std::string table_assumption(const Graph& graph) {
  const bool tables =
      graph.seq_len == 0 &&
      std::any_of(graph.operators.begin(), graph.operators.end(),
                  [](const Operator& op) { return std::holds_alternative<Embedding>(op.kind); });
  return tables ? "embedding tables: Adam updates all rows in every iteration; optimizers of the "
                  "rows that were read need less time and memory"
                : "";
}

}  // namespace

std::vector<std::string> plan_assumptions(const Graph* graph, const Plan& plan) {
  std::vector<std::string> lines;
  for (std::string& line : std::vector<std::string>{
           host_assumption(plan), graph != nullptr ? mapping_assumption(*graph, plan) : "",
           graph != nullptr ? attention_assumption(*graph, plan) : "",
           graph != nullptr ? table_assumption(*graph) : "", latency_assumption(plan)}) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace braid
