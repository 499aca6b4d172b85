#include "braid/report/mapping_text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/report/table.h"

namespace braid {
namespace {

constexpr std::size_t kWidestKernels = 60;

std::string kernels_of(const DataflowPlan& plan, std::size_t partition) {
  std::string names;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < plan.work.kernels.size(); ++i) {
    if (static_cast<std::size_t>(plan.outcome.mapping.partition_of[i]) != partition) continue;
    const std::string& name = plan.work.kernels[i].name;
    if (!names.empty() && names.size() + name.size() > kWidestKernels) {
      ++left_out;
      continue;
    }
    names += (names.empty() ? "" : " ") + name;
  }
  if (left_out > 0) names += fmt::format(" and {} more", left_out);
  return names;
}

std::string job_line(const DataflowPlan& plan) {
  const JobTime& time = plan.time;
  switch (plan.setup.job.workload) {
    case DataflowWorkload::layers:
      if (plan.setup.fabric.dimensions.empty()) {
        return fmt::format("{:.1f} % of the chip's peak\n", 100 * time.utilisation);
      }
      return fmt::format(
          "A batch of {} samples through {}: {} ({:.1f} % of peak; pipeline idle {:.1f} %)\n",
          plan.setup.job.global_batch,
          plan.setup.job.whole_model ? "the whole model"
                                     : fmt::format("{} layers", plan.setup.job.layers),
          format_seconds(time.time_s), 100 * time.utilisation,
          100 * time.bubble / (1 + time.bubble));
    case DataflowWorkload::recommendation:
      return fmt::format("A batch of {} samples: {} ({:.1f} % of peak)\n",
                         plan.setup.job.global_batch, format_seconds(time.time_s),
                         100 * time.utilisation);
    case DataflowWorkload::linpack:
    case DataflowWorkload::fourier:
      break;
  }
  return fmt::format("The whole: {} ({:.1f} % of peak)\n", format_seconds(time.time_s),
                     100 * time.utilisation);
}

std::string in_ms(double time_s) { return fmt::format("{:.3f}", 1e3 * time_s); }

/// A row for each stage of a whole model: what it takes, and why.
std::string stages_text(const DataflowPlan& plan) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "time ms", "partitions", "their time ms", "messages on ms"}};
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const PlannedStage& stage = plan.stages[s];
    const std::size_t first = stage.first_partition + 1;
    rows.push_back({std::to_string(s + 1), in_ms(stage.time_s),
                    stage.partitions == 0 ? "none"
                    : stage.partitions == 1
                        ? std::to_string(first)
                        : fmt::format("{}-{}", first, first + stage.partitions - 1),
                    in_ms(stage.mapped_s), in_ms(stage.message_s)});
  }
  return "\n" + text_table(rows);
}

}  // namespace

std::string fabric_text(const Fabric& fabric) {
  std::string text;
  for (const FabricDimension& dimension : fabric.dimensions) {
    const char* shape = dimension.shape == FabricShape::ring              ? "ring"
                        : dimension.shape == FabricShape::fully_connected ? "full mesh"
                                                                          : "switch";
    const char* role = dimension.role == FabricRole::tensor     ? "tensor"
                       : dimension.role == FabricRole::pipeline ? "pipeline"
                       : dimension.role == FabricRole::data     ? "data"
                                                                : "";
    text += fmt::format("{}{} of {}{}{}", text.empty() ? "" : ", ", shape, dimension.size,
                        *role == '\0' ? "" : " ", role);
  }
  return text;
}

std::string mapping_text(const DataflowPlan& plan) {
  const MappingOutcome& outcome = plan.outcome;
  std::vector<std::vector<std::string>> rows = {{"#", "time ms", "bound by", "compute ms",
                                                 "memory ms", "network ms", "SRAM", "DRAM", "tiles",
                                                 "kernels"}};
  double most_sram_bytes = 0, most_dram_bytes = 0;
  for (const PartitionCost& cost : outcome.cost.partitions) {
    most_sram_bytes = std::max(most_sram_bytes, cost.sram_bytes);
    most_dram_bytes = std::max(most_dram_bytes, cost.dram_bytes);
  }
  for (std::size_t p = 0; p < outcome.cost.partitions.size(); ++p) {
    const PartitionCost& cost = outcome.cost.partitions[p];
    rows.push_back({std::to_string(p + 1), in_ms(cost.time_s), std::string(name_of(cost.bound)),
                    in_ms(cost.compute_s), in_ms(cost.memory_s), in_ms(cost.network_s),
                    format_bytes_as(cost.sram_bytes, most_sram_bytes),
                    format_bytes_as(cost.dram_bytes, most_dram_bytes), std::to_string(cost.tiles),
                    kernels_of(plan, p)});
  }
  std::string text = text_table(rows);
  if (!plan.stages.empty()) text += stages_text(plan);
  text += fmt::format(
      "\nA micro-batch through the {}: {}{} {} partition{}; SRAM {}, DRAM {}\n",
      plan.stages.empty() ? "graph" : fmt::format("slowest of {} stages", plan.stages.size()),
      format_seconds(outcome.cost.time_s), plan.stages.empty() ? " in" : ";",
      outcome.cost.partitions.size(), outcome.cost.partitions.size() == 1 ? "" : "s",
      format_bytes(plan.setup.chip.sram_bytes),
      format_bytes(plan.setup.chip.dram_bytes + plan.setup.chip.spill_bytes));
  text += job_line(plan);
  if (plan.setup.fabric.dimensions.empty()) return text;
  const MachineCost machine = machine_cost(plan.setup);
  text += fmt::format("{} chips: {}", plan.setup.chips, fabric_text(plan.setup.fabric));
  if (machine.usd > 0 || machine.watts > 0) {
    text += fmt::format("; {:.6g} USD, {:.6g} W", machine.usd, machine.watts);
  }
  return text + "\n";
}

}  // namespace braid
