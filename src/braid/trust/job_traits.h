#pragma once

#include <array>
#include <string>

#include "braid/plan/outcome.h"
#include "braid/plan/plan.h"

namespace braid {

/// What of a plan decides how well its time is known: jobs are alike where these are. Nothing here
/// says who measured a job, or what came out.
struct JobTraits {
  std::string chip;     ///< chip_names_of().
  std::string trainer;  ///< Name of its file; empty: none in particular.
  std::string format;   ///< Of GEMMs, as name_of(Precision) has it.
  bool experts = false;
  double devices = 1;
  double parameters = 1;          ///< Of the model.
  double tokens = 1;              ///< Of an iteration, or samples where these have no tokens.
  double micro_batch_tokens = 1;  ///< That a device works on at once.
  double tp = 1, pp = 1, dp = 1, cp = 1, ep = 1;
  double mfu = 0.3;  ///< As predicted: what waits for hosts and networks is known less well.
  friend bool operator==(const JobTraits&, const JobTraits&) = default;
};

/// In what plans of one job may differ.
inline constexpr std::array<double JobTraits::*, 6> kSplitTraits = {
    &JobTraits::tp, &JobTraits::pp, &JobTraits::cp,
    &JobTraits::ep, &JobTraits::dp, &JobTraits::micro_batch_tokens};

/// Linear in the options of the plan's layers.
JobTraits traits_of(const Plan& plan, const Metrics& metrics);

}  // namespace braid
