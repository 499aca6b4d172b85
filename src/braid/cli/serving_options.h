#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "braid/cli/verb.h"
#include "braid/serve/serving_plan.h"

namespace braid {

/// What a service is asked for, on the command line.
struct ServingOptions {
  std::string ttft = "2s", tpot = "50ms", rate, draft, acceptance;
  std::int64_t input_len = 0, output_len = 0, draft_tokens = 0;
  std::int64_t cached = -1;  ///< Percent; below 0: not given.
};

/// Adds them under `heading`, if there is one; returns them all.
std::vector<VerbOption> add_serving_options(Verb& verb, ServingOptions& options,
                                            const std::string& heading = "");

/// Requests a second of --rate; 0 where it is not given. Throws Error.
double rate_of(const ServingOptions& options);

/// Lengths, targets and the cached share of `job`. Throws Error.
void take_options(const ServingOptions& options, ServingJob& job);

/// How often drafts of `model` are accepted, and how many tokens are drafted; nullptr: nothing is.
/// Throws Error where --acceptance is missing, is no share, or is there without a model.
DraftOffer offer_of(const ServingOptions& options, const ServedModel* model);

/// The kernels of a homogeneous system's chip. Throws Error naming --cluster.
ChipKernels served_kernels(const System& system);

}  // namespace braid
