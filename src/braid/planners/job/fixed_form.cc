#include "braid/planners/job/fixed_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "braid/plan/names.h"

namespace braid {
namespace {

/// Whether plans interleave, whatever else they do: on several stages then.
bool is_interleaved(const SpaceOptions& space) {
  const bool asked = space.vp.least() > 1 || space.schedule == ScheduleKind::interleaved;
  return asked && space.pp.at_least(2).has_value();
}

/// The form that has what is fixed, and nothing else.
Parallelism fixed_form(const SpaceOptions& space) {
  Parallelism form;
  form.tp = space.tp.least();
  form.pp = space.pp.least();
  form.dp = space.dp.least();
  form.cp = space.cp.least();
  form.ep = space.ep.least();
  form.whole_experts = space.whole_experts.value_or(false) && form.tp > 1 && form.ep > 1;
  form.vp = space.vp.least();
  if (form.vp > 1) form.schedule = ScheduleKind::interleaved;
  if (is_interleaved(space)) {
    form.schedule = ScheduleKind::interleaved;
    form.pp = *space.pp.at_least(2);
  }
  return form;
}

/// Which traits of fixed_form() are fixed.
FormTraits fixed_traits(const SpaceOptions& space) {
  FormTraits known = 0;
  const auto decide = [&](const Degrees& degrees, FormTrait trait) {
    const bool fixed = !degrees.allows(1) || !degrees.at_least(2);
    if (fixed) known |= bit_of(trait);
    return fixed;
  };
  const bool tp = decide(space.tp, FormTrait::tensor_parallel);
  decide(space.cp, FormTrait::context_parallel);
  const bool ep = decide(space.ep, FormTrait::expert_parallel);
  // Only both together leave a choice.
  const bool one = (tp && space.tp.least() == 1) || (ep && space.ep.least() == 1);
  if (one || (tp && ep && space.whole_experts)) known |= bit_of(FormTrait::whole_experts);
  decide(space.dp, FormTrait::data_parallel);
  bool pp = decide(space.pp, FormTrait::pipelines);
  if (is_interleaved(space)) {
    pp = true;
    known |= traits(FormTrait::pipelines, FormTrait::gpipe, FormTrait::one_f_one_b,
                    FormTrait::interleaved);
  }
  if (tp && space.sequence_parallel) known |= bit_of(FormTrait::sequence_parallel);
  if (pp && space.schedule) {
    known |= traits(FormTrait::gpipe, FormTrait::one_f_one_b, FormTrait::interleaved);
  }
  if (space.zero) {
    known |= traits(FormTrait::zero_0, FormTrait::zero_1, FormTrait::zero_2, FormTrait::zero_3);
  }
  return known;
}

/// As refusal_of_fixed(), without what has it fixed.
std::string refusal_of_form(const TrainerLimits& can, const SpaceOptions& space, FormTraits known) {
  Parallelism form = fixed_form(space);
  // A schedule counts where there may be several stages.
  if (space.schedule && !is_interleaved(space)) {
    form.schedule = *space.schedule;
    form.pp = space.pp.at_least(2).value_or(1);
    if (form.pp > can.most_stages) form.pp = 1;
  }
  form.recompute = space.recompute.value_or(can.recompute.front());
  form.sequence_parallel = space.sequence_parallel.value_or(can.sequence_parallel.front());
  // A stage of ZeRO that pipelines lack leaves plans of one stage.
  const bool in_one_stage = space.zero && form.pp > 1 && space.pp.allows(1) &&
                            !can.allows(*space.zero, form.pp) && can.allows(*space.zero, 1);
  if (space.zero && !in_one_stage) {
    form.zero = *space.zero;
  } else {
    form.zero =
        form.pp > 1 && !can.pipelined_zero.empty() ? can.pipelined_zero.front() : can.zero.front();
  }
  const FormTraits traits = traits_of(form, /*data_outermost=*/false);
  if (const ExcludedForms* excluded = can.excluding(traits, known | fixed_traits(space))) {
    return refusal_text(*excluded);
  }
  // Which order the axes have is not fixed, nor, mostly, how many devices are used.
  TrainerLimits any_order = can;
  any_order.pipeline_outermost = any_order.data_outermost = true;
  any_order.never.clear();
  any_order.alike_nodes = 0;
  if (!space.tp.single()) any_order.divided_heads = 0;
  if (!space.tp.single() || !space.cp.single()) any_order.divided_tokens = 0;
  return refusal(any_order, form);
}

}  // namespace

std::string refusal_of_fixed(const TrainerLimits& can, const SpaceOptions& space,
                             FormTraits known) {
  std::string reason = refusal_of_form(can, space, known);
  if (reason.empty() || !is_interleaved(space)) return reason;
  // Pipelines and interleaving may be refused where the user has named neither.
  SpaceOptions others = space;
  others.vp = Degrees();
  others.schedule.reset();
  if (!refusal_of_form(can, others, known).empty()) return reason;
  if (space.vp.least() > 1) {
    return reason + fmt::format(", which --vp {} takes", fmt::join(space.vp.list(), ","));
  }
  const bool is_named = reason.find(name_of(ScheduleKind::interleaved)) != std::string::npos;
  return is_named ? reason : reason + ", which --schedule interleaved takes";
}

}  // namespace braid
