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

/// tpu-v5e and tpu-v7 are no variants of one chip.
bool are_variants(std::string_view a, std::string_view b) {
  return before_hyphen(a) == before_hyphen(b) && !a.starts_with("tpu");
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
  if (a.chip != b.chip) distance += are_variants(a.chip, b.chip) ? kChipVariant : kOtherChip;
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
