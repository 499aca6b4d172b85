#include <algorithm>

#include <fmt/format.h>

#include "braid/plan/names.h"
#include "braid/report/export.h"

namespace braid {
namespace {

/// Arguments one a line behind the torchrun line, so that people can comment and edit.
class Arguments {
 public:
  void flag(const std::string& name) { text_ += " \\\n    " + name; }
  template <typename T>
  void value(const std::string& name, const T& value) {
    text_ += fmt::format(" \\\n    {} {}", name, value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_pipeline(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  const BlockCounts blocks = count_blocks(plan);
  arguments.value("--pipeline-model-parallel-size", p.pp);
  if (p.pp == 1) return;
  if (p.schedule == ScheduleKind::gpipe) {
    warnings.emplace_back("Megatron-LM has no GPipe schedule: it runs 1F1B");
  }
  if (blocks.even) {
    if (p.vp > 1)
      arguments.value("--num-layers-per-virtual-pipeline-stage", blocks.per_chunk.front());
    return;
  }
  if (p.vp > 1) arguments.value("--num-virtual-stages-per-pipeline-rank", p.vp);
  const auto& counts = blocks.per_chunk;
  const bool inner_even =
      counts.size() > 2 && std::adjacent_find(counts.begin() + 1, counts.end() - 1,
                                              std::not_equal_to<>()) == counts.end() - 1;
  if (p.vp == 1 && (inner_even || counts.size() == 2)) {
    arguments.value("--decoder-first-pipeline-num-layers", counts.front());
    arguments.value("--decoder-last-pipeline-num-layers", counts.back());
    return;
  }
  std::string layout;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i > 0) layout += '|';
    if (i == 0) layout += 'E';
    layout += std::string(static_cast<std::size_t>(counts[i]), 't');
    if (i + 1 == counts.size()) layout += 'L';
  }
  arguments.value("--pipeline-model-parallel-layout", "\"" + layout + "\"");
  warnings.emplace_back(
      "uneven stages need --pipeline-model-parallel-layout (Megatron-LM core 0.13 or later)");
}

void add_recompute(const Plan& plan, Arguments& arguments) {
  if (plan.parallel.recompute == Recompute::selective) {
    arguments.value("--recompute-granularity", "selective");
  } else if (plan.parallel.recompute == Recompute::full) {
    arguments.value("--recompute-granularity", "full");
    arguments.value("--recompute-method", "uniform");
    arguments.value("--recompute-num-layers", 1);
  }
}

void add_data_parallel(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  switch (p.zero) {
    case Zero::none:
      break;
    case Zero::optimizer:
      arguments.flag("--use-distributed-optimizer");
      arguments.flag("--overlap-param-gather");
      break;
    case Zero::gradients:
      arguments.flag("--use-megatron-fsdp");
      arguments.value("--data-parallel-sharding-strategy", "optim_grads");
      warnings.emplace_back("ZeRO-2 needs Megatron-FSDP, which excludes some other arguments");
      break;
    case Zero::parameters:
      arguments.flag("--use-megatron-fsdp");
      arguments.value("--data-parallel-sharding-strategy", "optim_grads_params");
      warnings.emplace_back("ZeRO-3 needs Megatron-FSDP, which excludes some other arguments");
      break;
  }
  if (p.dp * p.cp > 1) arguments.flag("--overlap-grad-reduce");
}

void add_precision(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  switch (plan.precision.matmul) {
    case Dtype::bf16:
      arguments.flag("--bf16");
      break;
    case Dtype::f16:
      arguments.flag("--fp16");
      break;
    case Dtype::f8:
      arguments.flag("--bf16");
      arguments.value("--fp8-format", "hybrid");
      break;
    case Dtype::f32:
    case Dtype::tf32:
      break;
    default:
      warnings.push_back("precision " + name_of(plan.precision) + " has no Megatron-LM argument");
  }
}

void add_offload(const Plan& plan, Arguments& arguments, std::vector<std::string>& warnings) {
  const Parallelism& p = plan.parallel;
  if (p.offload_optimizer) {
    arguments.flag("--optimizer-cpu-offload");
    if (p.zero == Zero::none) arguments.flag("--use-distributed-optimizer");
    arguments.flag("--use-precision-aware-optimizer");
    if (p.zero == Zero::none) {
      warnings.emplace_back(
          "offloading the optimizer state needs the distributed optimizer (ZeRO-1)");
    }
  }
  if (p.offload_weights) warnings.emplace_back("offloading weights cannot be expressed");
  if (p.offload_activations) warnings.emplace_back("offloading activations cannot be expressed");
}

void add_order(const Parallelism& p, Arguments& arguments, std::vector<std::string>& warnings) {
  const std::vector<Axis> usual = {Axis::tp, Axis::cp, Axis::dp, Axis::pp};
  if (p.order == usual) return;
  if (p.order == std::vector<Axis>{Axis::tp, Axis::cp, Axis::pp, Axis::dp}) {
    arguments.flag("--use-tp-pp-dp-mapping");
    return;
  }
  std::string order;
  for (const Axis axis : p.order) order += (order.empty() ? "" : "-") + std::string(name_of(axis));
  warnings.push_back("the order of ranks " + order +
                     " cannot be expressed: tp-cp-ep-dp-pp is used");
}

}  // namespace

Export export_megatron(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  Export out;
  out.suggested_file = "megatron.sh";
  Arguments arguments;
  arguments.value("--num-layers", count_blocks(plan).total);
  if (plan.seq_len > 0) {
    arguments.value("--seq-length", plan.seq_len);
    arguments.value("--max-position-embeddings", plan.seq_len);
  }
  arguments.value("--micro-batch-size", p.micro_batch);
  arguments.value("--global-batch-size", plan.global_batch);
  arguments.value("--tensor-model-parallel-size", p.tp);
  if (p.sequence_parallel) arguments.flag("--sequence-parallel");
  add_pipeline(plan, arguments, out.warnings);
  if (p.cp > 1) arguments.value("--context-parallel-size", p.cp);
  if (p.ep > 1) {
    arguments.value("--expert-model-parallel-size", p.ep);
    arguments.value("--expert-tensor-parallel-size", p.tp);
  }
  add_recompute(plan, arguments);
  add_data_parallel(plan, arguments, out.warnings);
  add_offload(plan, arguments, out.warnings);
  add_precision(plan, arguments, out.warnings);
  add_order(p, arguments, out.warnings);
  out.warnings.emplace_back(
      "the model's own shape (hidden size, heads, vocabulary) is not part of a plan: add "
      "$MODEL_ARGS");

  const std::int64_t per_node = std::min(plan.system.groups.front().devices_per_node, p.devices());
  out.text = "#!/usr/bin/env bash\n";
  out.text += "# " + title_of(plan) + "\n";
  for (const std::string& warning : out.warnings) out.text += "# note: " + warning + "\n";
  out.text += fmt::format(
      "torchrun --nproc-per-node {} --nnodes {} --node-rank \"${{NODE_RANK:-0}}\" \\\n"
      "    --master-addr \"${{MASTER_ADDR:-localhost}}\" --master-port \"${{MASTER_PORT:-29500}}\" "
      "\\\n"
      "    pretrain_gpt.py $MODEL_ARGS $DATA_ARGS",
      per_node, (p.devices() + per_node - 1) / per_node);
  out.text += arguments.text() + "\n";
  return out;
}

}  // namespace braid
