#include <filesystem>

#include <gtest/gtest.h>

#include "braid/kernels/measured_kernels.h"

#include "base/reference_files.h"

namespace braid {
namespace {

/// The errors that the catalogue states of its kernels are those of its figures.
TEST(RecordedErrors, AreThoseOfTheFigures) {
  const std::filesystem::path folder = reference_file("data/operators");
  if (!std::filesystem::exists(folder / "gemm.csv")) GTEST_SKIP() << "no measured tables here";
  int groups_checked = 0;
  for (const MeasuredKernels& measured : read_kernel_tables(folder)) {
    const std::optional<ChipKernels> kernels = load_kernels(measured.chip);
    ASSERT_TRUE(kernels) << measured.chip.name;
    for_each_operation(
        [&]<class Form>(const char* operation, const KernelGroups<Form>& groups,
                        const KernelEntries<Form>& entries) {
          EXPECT_EQ(groups.size(), entries.size()) << measured.chip.name << " " << operation;
          for (const auto& group : groups) {
            const auto* entry = kernel_entry<Form>(entries, group->backend, group->format);
            ASSERT_NE(entry, nullptr) << measured.chip.name << " " << operation;
            EXPECT_NEAR(kernel_error(*group, entry->figures, true), entry->held_out_error, 2e-4)
                << measured.chip.name << " " << operation << " " << entry->format;
            EXPECT_NEAR(kernel_error(*group, entry->figures, false), entry->fitted_error, 2e-4)
                << measured.chip.name << " " << operation << " " << entry->format;
            ++groups_checked;
          }
        },
        measured.operations, kernels->operations);
  }
  EXPECT_EQ(groups_checked, 435);
}

}  // namespace
}  // namespace braid
