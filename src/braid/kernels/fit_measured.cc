#include <algorithm>
#include <functional>

#include "braid/base/parallel.h"
#include "braid/kernels/kernel_fit.h"
#include "braid/kernels/measured_kernels.h"

namespace braid {
namespace {

template <class Form>
KernelEntries<Form> fit_groups(const KernelGroups<Form>& groups) {
  std::vector<const KernelGroup*> pointers;
  for (const auto& group : groups) pointers.push_back(group.get());
  const std::vector<FittedKernel> fits = fit_kernels(pointers);
  KernelEntries<Form> entries;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const FormGroup<Form>& group = *groups[i];
    KernelEntry<Form> entry;
    entry.backend = group.backend;
    entry.format = group.format;
    entry.held_out =
        static_cast<std::size_t>(std::count(group.held_out.begin(), group.held_out.end(), true));
    entry.fitted = group.held_out.size() - entry.held_out;
    entry.figures = FormGroup<Form>::unpacked(fits[i].figures, fits[i].choice);
    entry.fitted_error = kernel_error(group, entry.figures, false);
    entry.held_out_error = kernel_error(group, entry.figures, true);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::vector<ChipKernels> fit_measured_kernels(const std::vector<MeasuredKernels>& measured,
                                              const std::string& source) {
  std::vector<ChipKernels> result(measured.size());
  std::vector<std::function<void()>> fits;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    result[i].chip = measured[i].chip.name;
    result[i].source = source;
    for_each_operation(
        [&]<class Form>(const char* /*name*/, const KernelGroups<Form>& groups,
                        KernelEntries<Form>& entries) {
          if (groups.empty()) return;
          fits.emplace_back([&groups, &entries] { entries = fit_groups<Form>(groups); });
        },
        measured[i].operations, result[i].operations);
  }
  parallel_for(fits.size(), [&](std::size_t i) { fits[i](); });
  return result;
}

}  // namespace braid
