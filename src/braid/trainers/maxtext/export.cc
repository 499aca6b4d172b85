#include "braid/trainers/maxtext/export.h"

#include <string_view>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/maxtext/model_names.h"

namespace braid {
namespace {

/// Empty: it has none.
std::string_view precision_text(const Precision& precision) {
  switch (precision.matmul) {
    case Dtype::bf16:
      return "dtype: bfloat16\n";
    case Dtype::f32:
      return "dtype: float32\n";
    case Dtype::f8:
      return "dtype: bfloat16\nquantization: fp8\n";
    default:
      return "";
  }
}

/// Replicas on the slices (nodes) of a pod, and what is left for the devices of each.
struct Slices {
  std::int64_t slices = 1;
  std::int64_t data = 1;  ///< dp on one slice.
};

/// Of plans whose slices are alike, as the catalogue has it of MaxText (alike_nodes).
Slices slices_of(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const std::int64_t per_slice = plan.system.groups.front().devices_per_node;
  const std::int64_t devices = p.devices();
  if (devices <= per_slice) return {1, p.dp};
  return {devices / per_slice, p.dp / (devices / per_slice)};
}

std::string mesh_text(const Plan& plan) {
  const Parallelism& p = plan.parallel;
  const Slices slices = slices_of(plan);
  const bool sharded = p.zero == Zero::parameters;
  const std::int64_t data = slices.data / p.ep;
  const bool replicated = sharded && slices.slices > 1 && p.replicate == slices.slices;
  if (sharded && p.replicate > 1 && !replicated) {
    throw Error("the plan replicates sharded state on other devices than on those of slices",
                "plan for several slices, or without replicas");
  }
  return fmt::format(
      "ici_data_parallelism: {}\nici_fsdp_parallelism: {}\nici_tensor_parallelism: {}\n"
      "ici_expert_parallelism: {}\ndcn_data_parallelism: {}\ndcn_fsdp_parallelism: {}\n",
      sharded ? 1 : data, sharded ? data : 1, p.tp, p.ep,
      sharded && !replicated ? 1 : slices.slices, sharded && !replicated ? slices.slices : 1);
}

/// Throws Error for what no remat_policy of base.yml does.
void check_memory(const Parallelism& p) {
  if (!p.offload_activations || p.recompute == Recompute::selective) return;
  throw Error(
      fmt::format("MaxText moves activations to host memory with minimal_offloaded alone, which "
                  "recomputes what is cheap to compute again, and the plan has {} recomputation",
                  p.recompute == Recompute::full ? "full" : "no"),
      "plan with --recompute selective, or with --no-offload");
}

std::string memory_text(const Parallelism& p) {
  std::string text = "remat_policy: ";
  if (p.offload_activations) {
    text += "minimal_offloaded\n";
  } else {
    text += p.recompute == Recompute::full        ? "full\n"
            : p.recompute == Recompute::selective ? "minimal\n"
                                                  : "minimal_with_context\n";
  }
  if (p.offload_optimizer) text += "optimizer_memory_host_offload: true\n";
  if (p.offload_weights) text += "parameter_memory_host_offload: true\n";
  return text;
}

}  // namespace

JobRefusal maxtext_refusal(const TrainedJob& job) {
  if (their_name(kMaxtextModels, *job.source).empty()) {
    return {"has no model that is known to be " + in_quotes(on_one_line(*job.source)),
            "name one of the catalogue that it has, such as llama-3-8b"};
  }
  if (!precision_text(job.precision).empty()) return {};
  return {"has no precision " + name_of(job.precision), "plan with --precision bf16, fp32 or fp8"};
}

Export export_maxtext(const Plan& plan, const std::string& file) {
  throw_refusal("MaxText", maxtext_refusal(trained_job(plan)));
  const Parallelism& p = plan.parallel;
  check_memory(p);
  Export out;
  out.suggested_file = file.empty() ? "maxtext.yml" : file;
  const bool tpu = plan.system.groups.front().chip.name.rfind("tpu-", 0) == 0;
  if (p.recompute == Recompute::none) {
    out.warnings.emplace_back(
        "MaxText always recomputes what is element by element: minimal_with_context is the least");
  }
  if (p.ep > 1 && p.whole_experts) {
    out.warnings.emplace_back(
        "experts are sharded over the tensor axis too, which the plan's are not");
  }
  if (p.order != std::vector<Axis>{Axis::tp, Axis::cp, Axis::dp, Axis::pp}) {
    out.warnings.emplace_back("the order of ranks cannot be expressed: that of mesh_axes is used");
  }
  std::string& text = out.text;
  text += "# " + title_of(plan) + "\n";
  text += "# python3 -m maxtext.trainers.pre_train.train " + out.suggested_file + "\n";
  text +=
      "# To compile it without the devices: python3 -m maxtext.trainers.pre_train.train_compile " +
      out.suggested_file + "\n#   compile_topology=... compile_topology_num_slices=" +
      std::to_string(slices_of(plan).slices) + "\n";
  for (const std::string& warning : out.warnings) text += "# note: " + warning + "\n";
  text += fmt::format("base_config: base.yml\nrun_name: braid\nmodel_name: {}\nhardware: {}\n",
                      their_name(kMaxtextModels, plan.model_source), tpu ? "tpu" : "gpu");
  text += "# What a plan does not say; as it stands, ten steps on made-up data.\n";
  text += "dataset_type: synthetic\nsteps: 10\nenable_checkpointing: false\n\n";
  text += precision_text(plan.precision);
  // Samples of a micro-batch on all devices, for each of them: a fraction where tensor-parallel
  // ranks share samples.
  text += fmt::format("per_device_batch_size: {}\ngradient_accumulation_steps: {}\n",
                      static_cast<double>(p.micro_batch) * p.dp / static_cast<double>(p.devices()),
                      p.num_micro_batches);
  text += fmt::format("max_target_length: {}\n", plan.seq_len);
  text += mesh_text(plan);
  text += memory_text(p);
  return out;
}

}  // namespace braid
