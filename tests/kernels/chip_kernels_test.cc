#include "braid/kernels/chip_kernels.h"

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/system/system.h"

namespace braid {
namespace {

constexpr const char* kText =
    "chip: h100-sxm\n"
    "source: \"Somebody's tables: all of them\"\n"
    "gemm:\n"
    "  chip: {memory: 0.8, l2_gain: 1.5, cache: 0.6}\n"
    "  groups:\n"
    "    - {backend: trtllm, format: bf16, fitted: 10, held_out: 3, fitted_error: 0.0500, "
    "held_out_error: 0.0600,\n"
    "       figures: {splits_k: 1, rows_by_m: 0, floor_of_host: 0, peak: 0.9, feed: 2e+11, step: "
    "1e-09, epilogue: 2e-06, whole_waves: 0.5, clock_loss: 0.2, overlap: 3, reduce: 2e-06, floor: "
    "2e-06, strip_columns: 4096}}\n";

ChipKernels read(std::string text) {
  const Document document = Document::parse(text, Document::Syntax::yaml, "kernels.yaml");
  return read_kernels(document.root(), load_chip("h100-sxm"));
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = kText;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ChipKernels, TextIsReadAndWrittenAlike) {
  const ChipKernels kernels = read(kText);
  EXPECT_EQ(kernels.source, "Somebody's tables: all of them");
  const auto* entry = kernel_entry(kernels.operations.gemm, "trtllm", "bf16");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->fitted, 10U);
  EXPECT_EQ(entry->figures.memory, 0.8);
  EXPECT_EQ(entry->figures.splits_k, 1);
  EXPECT_EQ(kernel_entry(kernels.operations.gemm, "trtllm", "fp8"), nullptr);
  EXPECT_TRUE(kernels.operations.experts.empty());
  EXPECT_EQ(kernels_text(kernels, load_chip("h100-sxm")), kText);
}

TEST(ChipKernels, WrongFilesAreRefused) {
  const auto error_of = [](const std::string& text) -> std::string {
    try {
      read(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  const auto refused = [&](const std::string& from, const std::string& to,
                           const std::string& said) {
    EXPECT_NE(error_of(replaced(from, to)).find(said), std::string::npos)
        << error_of(replaced(from, to));
  };
  refused("chip: h100-sxm", "chip: h200-sxm", "not the kernels of h100-sxm");
  refused("peak: 0.9", "peak: 1.9", "peak");
  refused(", peak: 0.9", "", "peak");
  refused("memory: 0.8, ", "", "memory");
  refused("splits_k: 1", "splits_k: 2", "splits_k");
  refused("format: bf16", "format: fp7", "does not compute");
  refused("format: bf16", "format: fp8", "quantise");
  refused("gemm:", "gemn:", "gemn");
  refused("peak: 0.9", "peak: 0.9, speed: 3", "speed");
}

TEST(ChipKernels, TheCatalogueHasThemOfMeasuredChipsAlone) {
  int chips = 0;
  for (const std::string& name : chip_names()) {
    const Chip chip = load_chip(name);
    const std::optional<ChipKernels> kernels = load_kernels(chip);
    if (!kernels) continue;
    ++chips;
    EXPECT_FALSE(kernels->source.empty()) << name;
    EXPECT_FALSE(kernels->operations.gemm.empty()) << name;
  }
  EXPECT_GE(chips, 10);
  EXPECT_FALSE(load_kernels(load_chip("v100-sxm-32gb")));
}

/// What no kernel may be: faster than the chip's specification, but for clocks above it.
TEST(ChipKernels, LargeGemmsStayWithinTheChipsPeak) {
  for (const std::string& name : chip_names()) {
    const Chip chip = load_chip(name);
    const std::optional<ChipKernels> kernels = load_kernels(chip);
    if (!kernels) continue;
    for (const auto& entry : kernels->operations.gemm) {
      const auto setting = GemmForm::setting(chip, entry.format);
      const double time_s = GemmForm::time(entry.figures, *setting, {16384, 16384, 16384}).time_s;
      const double flops_per_s = 2 * 16384.0 * 16384 * 16384 / time_s;
      EXPECT_LT(flops_per_s, 1.1 * setting->machine.flops_per_s) << name << entry.format;
      EXPECT_GT(flops_per_s, 0.1 * setting->machine.flops_per_s) << name << entry.format;
    }
  }
}

}  // namespace
}  // namespace braid
