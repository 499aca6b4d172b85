#pragma once

#include <string>
#include <vector>

#include "braid/serve/launch/launch_lines.h"
#include "braid/serve/serving_plan.h"

namespace braid {

/// What a reader has to know of a planned service's numbers before its figures, a line each:
///
///   Precision: fp8 was chosen of fp8, int4 and bf16, as it serves most. The model is published in
///   bf16: other weights and caches change its answers. Judge their quality, or plan with …
///   Weights of attention and dense networks are kept in 4 bits and multiplied in bf16.
///
/// The first where the precision was not `asked` for and is another than that of `names`; it says
/// of precisions that nothing serves why. The second where weights are narrower than what they are
/// multiplied in. `outcome` must have a plan.
std::vector<std::string> service_notes(const ServingOutcome& outcome, const ServingJob& job,
                                       const LaunchNames& names, bool asked);

/// Why the precisions that no worker has are not there: "fp4: no kernels of GEMMs in nvfp4 are
/// known of h100-sxm; bf16: weights and one request lack 61.52 GiB of a GPU". Empty: all are there.
std::string unserved_text(const std::vector<UnservedFormat>& unserved);

}  // namespace braid
