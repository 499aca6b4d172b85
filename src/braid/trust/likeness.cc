#include "braid/trust/likeness.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace braid {
namespace {

// A step of kind, and half of one or less for variants: a trainer's other version, a chip's other
// memory or socket.
constexpr double kOtherChip = 2, kChipVariant = 0.5;
constexpr double kOtherTrainer = 1.5, kTrainerVersion = 0.5;
constexpr double kOtherExperts = 2, kOtherFormat = 1;

struct Step {
  double JobTraits::*of;
  double each;  ///< For each factor of two.
};
constexpr Step kSteps[] = {{&JobTraits::devices, 0.25},
                           {&JobTraits::parameters, 0.25},
                           {&JobTraits::micro_batch_tokens, 0.2},
                           {&JobTraits::tp, 0.3},
                           {&JobTraits::pp, 0.3},
                           {&JobTraits::cp, 0.3},
                           {&JobTraits::ep, 0.3},
                           {&JobTraits::mfu, 0.7}};
constexpr double kTokensOfDevice = 0.15;

std::string_view before_hyphen(std::string_view name) { return name.substr(0, name.find('-')); }

/// The words of a chip's name up to the first with a digit: h100 of h100-sxm and h100-pcie, but
/// tpu-v5e and tpu-v7, which are no variants of one chip.
std::string_view model_of(std::string_view chip) {
  const std::size_t digit = chip.find_first_of("0123456789");
  return digit == std::string_view::npos ? chip : chip.substr(0, chip.find('-', digit));
}

double doublings(double a, double b) {
  constexpr double kLeast = 1e-6;
  return std::abs(std::log2(std::max(a, kLeast) / std::max(b, kLeast)));
}

}  // namespace

int bits_of(const std::string& format) {
  if (format == "f4") return 4;
  if (format == "fp8" || format == "f8") return 8;
  return format == "fp32" || format == "tf32" ? 32 : 16;
}

double kind_distance(const JobTraits& a, const JobTraits& b) {
  double distance = 0;
  if (a.chip != b.chip) {
    distance += model_of(a.chip) == model_of(b.chip) ? kChipVariant : kOtherChip;
  }
  if (a.trainer != b.trainer) {
    distance +=
        before_hyphen(a.trainer) == before_hyphen(b.trainer) ? kTrainerVersion : kOtherTrainer;
  }
  if (a.experts != b.experts) distance += kOtherExperts;
  if (bits_of(a.format) != bits_of(b.format)) distance += kOtherFormat;
  return distance;
}

double distance_of(const JobTraits& a, const JobTraits& b) {
  double distance = kind_distance(a, b);
  for (const Step& step : kSteps) distance += step.each * doublings(a.*step.of, b.*step.of);
  return distance + kTokensOfDevice * doublings(a.tokens / a.devices, b.tokens / b.devices);
}

}  // namespace braid
