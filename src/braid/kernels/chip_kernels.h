#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/document.h"
#include "braid/kernels/attention.h"
#include "braid/kernels/collectives.h"
#include "braid/kernels/experts.h"
#include "braid/kernels/gemm.h"

namespace braid {

/// What is known of the kernels of one operation that has form `Form`, by one backend in one
/// format.
template <class Form>
struct KernelEntry {
  std::string backend;                          ///< The library or serving engine: "trtllm".
  std::string format;                           ///< As Form::setting() takes it.
  std::size_t fitted = 0, held_out = 0;         ///< Rows of either kind.
  double fitted_error = 0, held_out_error = 0;  ///< Mean of |predicted / measured - 1|.
  typename Form::Figures figures;
};
template <class Form>
using KernelEntries = std::vector<KernelEntry<Form>>;

/// One `Of<Form>` for each operation.
template <template <class> class Of>
struct KernelOperations {
  Of<GemmForm> gemm;
  Of<PrefillForm> attention_prefill;
  Of<DecodeForm> attention_decode;
  Of<PrefillForm> mla_prefill;
  Of<DecodeForm> mla_decode;
  Of<ExpertForm> experts;
  Of<CollectiveForm> collectives;
};

/// Calls `visit("gemm", operations.gemm …)`, and so on for all operations.
template <class Visit, class... Operations>
void for_each_operation(const Visit& visit, Operations&... operations) {
  visit("gemm", operations.gemm...);
  visit("attention_prefill", operations.attention_prefill...);
  visit("attention_decode", operations.attention_decode...);
  visit("mla_prefill", operations.mla_prefill...);
  visit("mla_decode", operations.mla_decode...);
  visit("experts", operations.experts...);
  visit("collectives", operations.collectives...);
}

/// What kernels of one chip take. Where an operation has no entries, nothing was measured.
///
///     std::optional<ChipKernels> kernels = load_kernels(chip);
///     const auto* entry = kernel_entry(kernels->operations.gemm, "trtllm", "bf16");
///     double time_s = GemmForm::time(entry->figures, *GemmForm::setting(chip, "bf16"), {4096,
///     4096, 4096}).time_s;
struct ChipKernels {
  std::string chip;    ///< Catalogue name.
  std::string source;  ///< Whose measurements.
  KernelOperations<KernelEntries> operations;
};

/// nullptr when there is none.
template <class Form>
const KernelEntry<Form>* kernel_entry(const KernelEntries<Form>& entries, std::string_view backend,
                                      std::string_view format) {
  for (const KernelEntry<Form>& entry : entries) {
    if (entry.backend == backend && entry.format == format) return &entry;
  }
  return nullptr;
}

/// The catalogue's, for a chip of the catalogue; nullopt when its kernels were not measured. No
/// other chip's figures are ever used instead. Throws Error for files that are not as below.
std::optional<ChipKernels> load_kernels(const Chip& chip);

/// From the YAML form (docs/file-formats.md, "Kernels") of this chip's kernels. Throws Error for
/// figures that are missing or out of the form's bounds, formats that the chip lacks, entries that
/// stand twice.
ChipKernels read_kernels(const Value& root, const Chip& chip);

/// That form, figures with four digits.
std::string kernels_text(const ChipKernels& kernels, const Chip& chip);

}  // namespace braid
