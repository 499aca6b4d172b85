#pragma once

#include "braid/trust/job_traits.h"

namespace braid {

/// How far apart two jobs are in what decides how well a time is known; 0: alike. Steps of kind
/// (kind_distance) and of size: degrees, devices, parameters, tokens and utilisation, by their
/// ratios. The steps are round figures and not fitted.
double distance_of(const JobTraits& a, const JobTraits& b);

/// The part of it that is of kind: another chip or one of its variants, another trainer or another
/// version, experts or none, GEMMs in 16 bits or fewer.
double kind_distance(const JobTraits& a, const JobTraits& b);

/// Bits of the format that GEMMs run in, as name_of(Precision) has it.
int bits_of(const std::string& format);

}  // namespace braid
