#include "braid/profile/precision.h"

#include <algorithm>
#include <optional>

#include "braid/base/error.h"

namespace braid {
namespace {

constexpr const char* kPrecisions[] = {"bf16", "fp16", "fp8", "tf32", "fp32"};

}  // namespace

Precision parse_precision(const std::string& name) {
  Precision precision;
  if (name == "bf16") return precision;
  if (name == "fp16" || name == "f16") {
    precision.matmul = precision.activation = precision.weight = Dtype::f16;
    return precision;
  }
  if (name == "fp8" || name == "f8") {
    precision.matmul = Dtype::f8;
    return precision;
  }
  if (name == "fp32" || name == "f32" || name == "tf32") {
    precision.matmul = name == "tf32" ? Dtype::tf32 : Dtype::f32;
    precision.activation = precision.weight = Dtype::f32;
    precision.optimizer_bytes_per_parameter = 8;
    return precision;
  }
  throw Error(Where{"", 0, "--precision"}, "unknown precision '" + name + "'",
              "use bf16, fp16, fp8, tf32 or fp32");
}

std::string name_of(const Precision& precision) {
  switch (precision.matmul) {
    case Dtype::f16:
      return "fp16";
    case Dtype::f8:
      return "fp8";
    case Dtype::f32:
      return "fp32";
    default:
      return std::string(name_of(precision.matmul));
  }
}

Precision usual_precision(const System& system) {
  const Precision usual[] = {parse_precision("bf16"), parse_precision("fp16"),
                             parse_precision("fp32")};
  for (const Precision& precision : usual) {
    if (std::ranges::all_of(system.groups, [&](const DeviceGroup& group) {
          return matmul_peak(group.chip, precision.matmul).has_value();
        })) {
      return precision;
    }
  }
  for (const Precision& precision : usual) {
    if (std::ranges::any_of(system.groups, [&](const DeviceGroup& group) {
          return matmul_peak(group.chip, precision.matmul).has_value();
        })) {
      return precision;
    }
  }
  return {};
}

double matmul_peak_in(const Chip& chip, const Precision& precision) {
  if (const auto peak = matmul_peak(chip, precision.matmul)) return *peak;
  std::string listed;
  for (const char* name : kPrecisions) {
    if (!matmul_peak(chip, parse_precision(name).matmul)) continue;
    listed += (listed.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(
      "chip " + chip.name + " lists no " + name_of(precision) + " peak",
      listed.empty() ? "add one to its `peak`" : "choose a --precision that it has: " + listed);
}

}  // namespace braid
