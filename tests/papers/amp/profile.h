#pragma once

#include <cstdint>

#include "braid/plan/plan.h"
#include "braid/profile/profile.h"

#include "papers/amp/model.h"
#include "papers/amp/strategies.h"

namespace braid {

/// AMP's layer times, measured with one sample at several tensor-parallel degrees t, as a Profile
/// for micro-batches of `micro_batch` samples on `tp` ranks: an option for each of the system's
/// groups, whose numbers are the model's device types. What the times do not say comes from the
/// system.
///
/// Of a time, issuing the operators (AmpLayer::operators times the host's time for one,
/// Efficiency::host_operator_s) does not grow with the micro-batch; the rest at t = 1 is work,
/// which is sharded by t; what is left at t > 1 is communication, which grows as its messages take
/// longer on the node's network (NetworkLevel::half_bytes). The backward pass has twice the work,
/// but communicates as much and is issued in the same time: twice the operators without the
/// interpreter (Paszke et al. 2019, section 5.1). Times at t = 1 are needed to tell work from
/// communication; without them all is work. Throws Error where there are no times for `tp` or for a
/// group. Cost: linear in layers and groups.
Profile amp_profile(const AmpModel& model, const System& system, std::int32_t tp,
                    std::int32_t micro_batch);

/// Formats of AMP's runs, DeepSpeed's pipelines in fp16: activations and weights in half precision,
/// gradients summed in single precision ("fp32_allreduce"), those of a table that two stages share
/// in the weights' format; 20 bytes of state a parameter in all.
Precision amp_precision();

/// A strategy in rank order (rank_order) as a plan: 1F1B with AMP's degrees, stages with layers up
/// to `ends`, gradients synchronised when the passes are done. It is timed, verified and traced as
/// any other plan. Throws Error as amp_profile, and where the system has too few devices.
///
///     Plan plan = amp_plan(model, load_system("g4dn.12xlarge:4nodes"), strategy, 32, ends);
///     double time_s = measure(plan).iteration_time_s;
Plan amp_plan(const AmpModel& model, const System& system, const AmpStrategy& strategy,
              std::int64_t global_batch, const Ends& ends);

}  // namespace braid
