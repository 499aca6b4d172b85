#pragma once

#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "braid/kernels/chip_kernels.h"
#include "braid/kernels/kernel_group.h"

namespace braid {

template <class Form>
using KernelGroups = std::vector<std::unique_ptr<FormGroup<Form>>>;

/// Measured kernels of one chip.
struct MeasuredKernels {
  Chip chip;
  KernelOperations<KernelGroups> operations;
};

/// Reads the CSV tables of a folder (docs/file-formats.md, "Tables of kernels"): those that are
/// there, at least one. Chips, and groups by backend and format, in the order of their names. A
/// fifth of the shapes is held out. Throws Error for a chip that the catalogue does not have,
/// formats that it lacks, and what is no positive number.
std::vector<MeasuredKernels> read_kernel_tables(const std::string& folder);

/// Mean of |predicted / measured - 1| over the rows that are held out, or over the others; 0 where
/// there are none.
template <class Form>
double kernel_error(const FormGroup<Form>& group, const typename Form::Figures& figures,
                    bool held_out);

/// Fits all groups of all chips (kernel_fit.h). `source`: whose measurements, for the files.
std::vector<ChipKernels> fit_measured_kernels(const std::vector<MeasuredKernels>& measured,
                                              const std::string& source);

template <class Form>
double kernel_error(const FormGroup<Form>& group, const typename Form::Figures& figures,
                    bool held_out) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < group.measured_s.size(); ++i) {
    if (group.held_out[i] != held_out) continue;
    const double time_s = Form::time(figures, group.setting, group.shapes[i]).time_s;
    sum += std::abs(time_s / group.measured_s[i] - 1);
    ++count;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace braid
