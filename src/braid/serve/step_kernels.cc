#include "braid/serve/step_kernels.h"

#include <algorithm>
#include <string_view>

#include "braid/base/error.h"
#include "braid/serve/cache_split.h"

namespace braid {
namespace {

template <class Form>
KernelCall<Form> resolved(const KernelEntry<Form>& entry, const Chip& chip) {
  return {&entry.figures, *Form::setting(chip, entry.format)};
}

[[noreturn]] void lacks(const Chip& chip, const std::string& what, const std::string& format) {
  throw Error("no kernels of " + what + " in " + format + " are known of " + chip.name,
              "choose another precision or chip: braid show " + chip.name);
}

/// The entry of the first library that has the format; nullptr: none has.
template <class Form>
const KernelEntry<Form>* first_of(const KernelEntries<Form>& entries,
                                  const std::vector<std::string>& libraries,
                                  const std::string& format) {
  for (const std::string& library : libraries) {
    if (const auto* entry = kernel_entry<Form>(entries, library, format)) return entry;
  }
  return nullptr;
}

/// Whether kernels of a format take weights that are kept in another: MXFP4 is multiplied with
/// activations of 16 or of 8 bits.
bool computes(std::string_view kernel, std::string_view weights) {
  return kernel == weights || (weights == "w4a16_mxfp4" && kernel == "w4a8_mxfp4_mxfp8");
}

/// GEMMs in fp8 whose scales are known beforehand: activations are quantised by the kernel before.
GemmFigures without_quantising(GemmFigures figures, const GemmFigures* plain) {
  figures.quantise = 1e15;
  figures.quantise_row = 1e-12;
  if (plain != nullptr) figures.floor = std::min(figures.floor, plain->floor);
  return figures;
}

}  // namespace

StepKernels::StepKernels(const Worker& of) : worker(of) {
  chip = &worker.system->groups.front().chip;
  memory_bytes_per_s = chip->memory.bytes_per_s;
  peak = matmul_peak(*chip, Dtype::bf16).value_or(1e12);
  cache_bytes = worker.format.cache == "fp8" ? 1 : 2;
  check_layout();
  GemmFigures unused;
  plain_gemm = gemm_in("bf16", unused);
  attention_gemm = gemm_in(worker.format.attention, attention_figures);
  dense_gemm = gemm_in(worker.format.dense, dense_figures);
  resolve_attention();
  resolve_experts();
  resolve_collectives();
}

void StepKernels::check_layout() const {
  const ServingLayout& l = worker.layout;
  if (l.moe_tp * l.moe_ep != l.stage_devices()) {
    throw Error("experts on " + std::to_string(l.moe_tp * l.moe_ep) + " devices, attention on " +
                std::to_string(l.stage_devices()));
  }
  const std::vector<std::int64_t> splits = cache_splits(*worker.model, *worker.engine, l.tp);
  if (std::find(splits.begin(), splits.end(), l.cp) == splits.end()) {
    throw Error(worker.engine->name + " does not divide caches of " + worker.model->name +
                " among " + std::to_string(l.cp) + " of " + std::to_string(l.tp) + " ranks");
  }
  for (const ServedLayer& layer : worker.model->layers) {
    if (layer.heads > 0 && layer.heads < static_cast<double>(l.tp)) {
      throw Error("tensor parallelism of " + std::to_string(l.tp) + " divides " +
                  std::to_string(static_cast<std::int64_t>(layer.heads)) + " heads");
    }
    if (layer.experts > 0 && layer.experts < static_cast<double>(l.moe_ep)) {
      throw Error("expert parallelism of " + std::to_string(l.moe_ep) + " divides " +
                  std::to_string(static_cast<std::int64_t>(layer.experts)) + " experts");
    }
  }
}

KernelCall<GemmForm> StepKernels::gemm_in(const std::string& format, GemmFigures& own) const {
  const auto& entries = worker.kernels->operations.gemm;
  const std::vector<std::string>& libraries = worker.engine->kernels.gemm;
  const auto* entry = first_of<GemmForm>(entries, libraries, format);
  if (entry == nullptr) lacks(*chip, "GEMMs", format);
  KernelCall<GemmForm> result = resolved(*entry, *chip);
  if (format == "fp8" && worker.engine->static_scales) {
    const auto* plain = kernel_entry<GemmForm>(entries, entry->backend, "bf16");
    own = without_quantising(entry->figures, plain == nullptr ? nullptr : &plain->figures);
    result.figures = &own;
  }
  return result;
}

void StepKernels::resolve_attention() {
  const auto& of = worker.kernels->operations;
  const EngineKernels& libraries = worker.engine->kernels;
  const std::string format = "bf16/" + worker.format.cache;
  for (const ServedLayer& layer : worker.model->layers) {
    if (layer.mixing == TokenMixing::attention) {
      const auto* before = first_of<PrefillForm>(of.attention_prefill, libraries.attention, format);
      const auto* after = first_of<DecodeForm>(of.attention_decode, libraries.attention, format);
      if (before == nullptr || after == nullptr) lacks(*chip, "attention", format);
      prefill = resolved(*before, *chip);
      decode = resolved(*after, *chip);
    } else if (layer.mixing == TokenMixing::latent) {
      const auto* before = first_of<PrefillForm>(of.mla_prefill, libraries.latent, format);
      const auto* after = first_of<DecodeForm>(of.mla_decode, libraries.latent, format);
      if (before == nullptr || after == nullptr) lacks(*chip, "latent attention", format);
      latent_prefill = resolved(*before, *chip);
      latent_decode = resolved(*after, *chip);
    }
  }
}

void StepKernels::resolve_experts() {
  const bool any = std::any_of(worker.model->layers.begin(), worker.model->layers.end(),
                               [](const ServedLayer& layer) { return layer.experts > 0; });
  if (!any) return;
  const std::vector<std::string>& libraries = worker.engine->kernels.experts;
  for (const auto& entry : worker.kernels->operations.experts) {
    const std::string_view format = entry.format;
    const bool listed =
        std::find(libraries.begin(), libraries.end(), entry.backend) != libraries.end();
    if (listed && !format.ends_with("nongated") &&
        computes(format.substr(0, format.find('/')), worker.format.experts)) {
      experts.push_back(resolved(entry, *chip));
    }
  }
  if (!experts.empty()) return;
  lacks(*chip, "experts", worker.format.experts);
}

void StepKernels::resolve_collectives() {
  const auto& entries = worker.kernels->operations.collectives;
  for (const std::string& library : worker.engine->kernels.all_reduce) {
    for (const auto& entry : entries) {
      const std::string_view format = entry.format;
      if (entry.backend == library && format.starts_with("all_reduce/") &&
          !format.ends_with("eager") && !format.ends_with("int8")) {
        all_reduces.push_back(resolved(entry, *chip));
      }
    }
  }
  const auto nccl = [&](const std::string& format) {
    const auto* entry = kernel_entry<CollectiveForm>(entries, "nccl", format);
    if (entry == nullptr) lacks(*chip, "collectives", format);
    return resolved(*entry, *chip);
  };
  if (worker.layout.stage_devices() == 1) return;
  if (all_reduces.empty()) lacks(*chip, "collectives", "all_reduce");
  all_gather = nccl("all_gather/fp16");
  reduce_scatter = nccl("reduce_scatter/fp16");
  all_to_all = nccl("alltoall/fp16");
}

}  // namespace braid
