#include "braid/planners/mixed/one_form_rounds.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "braid/base/infinity.h"
#include "braid/planners/job/space_rules.h"
#include "braid/planners/mixed/bounds.h"

namespace braid {

bool operator<(const OneFormRound& a, const OneFormRound& b) {
  return std::tie(a.bound_s, a.form) < std::tie(b.bound_s, b.form);
}

std::unique_ptr<MixedFamily> one_form_family(const Configuration& form, MixedJob& job,
                                             const SpaceOptions& space, MixedFamily::Known& known) {
  using Stages = MixedFamily::Stages;
  const bool any = job.chain().shared.empty();
  const Stages stages = any ? Stages::any : form.pp == 1 ? Stages::one : Stages::several;
  const std::int64_t samples = std::int64_t{form.dp} * form.micro_batch;
  return std::make_unique<MixedFamily>(job, space, samples,
                                       MixedFamily::Depth{stages, form.pp, form.pp}, known, form);
}

namespace {

/// Of one form.
void add_rounds(Configuration form, MixedJob& job, const SpaceOptions& space,
                MixedFamily::Known& known, std::vector<OneFormRound>& rounds) {
  const auto layers = static_cast<std::int64_t>(job.chain().kind_of_layer.size());
  const std::int64_t size = std::int64_t{form.tp} * form.cp * form.dp;
  const std::int64_t most = std::min(layers, job.system().device_count / size);
  // Beside being one or several, how many stages there are is nothing to the bound.
  std::array<std::optional<double>, 2> bounds_s;
  for (std::int64_t stages = 1; stages <= most; ++stages) {
    if (!space.pp.allows(stages)) continue;
    form.pp = static_cast<std::int32_t>(stages);
    if (!can_divide(space.can, to_execution(form))) continue;
    if (!refusal(space.can, to_parallelism(form)).empty()) continue;
    std::optional<double>& bound_s = bounds_s[stages == 1 ? 0 : 1];
    if (!bound_s) {
      const auto family = one_form_family(form, job, space, known);
      bound_s = family->empty() ? kInfinity : quick_bound_s(family->problem());
    }
    if (*bound_s < kInfinity) rounds.push_back({*bound_s, form});
  }
}

}  // namespace

void add_one_form_rounds(MixedJob& job, const SpaceOptions& space, std::int64_t samples,
                         MixedFamily::Known& known, std::vector<OneFormRound>& rounds) {
  const MixedFamily all(job, space, samples, {MixedFamily::Stages::any, 1, 1}, known);
  for (Configuration form : all.forms()) {
    if (form.sharding != ShardingKind::manual) continue;
    if (!space.sequence_parallel && !space.can.allows_sequence_parallel(true, form.tp)) {
      form.sequence_parallel = false;
    }
    add_rounds(form, job, space, known, rounds);
  }
}

}  // namespace braid
