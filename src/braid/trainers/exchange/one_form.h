#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// A uniform plan, and in what it runs otherwise than the plan that it was made of.
struct SharedConfig {
  Plan plan;
  std::vector<std::string> notes;
};

/// `plan` as trainers take it: one parallel form for all stages, rank by rank. A uniform plan stays
/// as it is. Of another plan, such as one for a mixed cluster or of graphpipe, the stages must
///  - have the same degrees, micro-batch, ZeRO stage, recomputation and offload,
///  - be a chain of consecutive layers,
///  - fill the computers that they use.
/// Its devices are numbered in the order of ranks then, and so are the system's groups. Warm-ups
/// are those of 1F1B. Throws Error naming what cannot be, `target` being the trainer; also where
/// the warm-ups of 1F1B take more memory than a stage has.
///
///     SharedConfig one = in_one_form(plan, "megatron");
///     one.plan.parallel.tp;  // of all stages
SharedConfig in_one_form(const Plan& plan, const std::string& target);

}  // namespace braid
