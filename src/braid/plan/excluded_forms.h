#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "braid/plan/parallelism.h"

namespace braid {

// Combinations that a trainer refuses, such as unsharded replicas beside pipelines.

/// A property of a form, as data/trainers names them.
enum class FormTrait : std::uint8_t {
  tensor_parallel,
  sequence_parallel,
  context_parallel,
  expert_parallel,
  whole_experts,
  different_expert_groups,  ///< Experts are sharded over more or fewer ranks than tp·cp.
  data_parallel,
  pipelines,
  gpipe,  ///< This and the next two: with several stages.
  one_f_one_b,
  interleaved,
  few_micro_batches,  ///< Fewer micro-batches than stages.
  several_micro_batches,
  data_outermost,  ///< With several stages and data-parallel ranks.
  zero_0,
  zero_1,
  zero_2,
  zero_3,
  selective_recomputation,
  offloaded_optimizer,
  offloaded_weights,
  offloaded_activations,
};

/// How a trait is called in files, and in sentences.
struct FormTraitName {
  std::string_view key, text;
};
inline constexpr std::array<FormTraitName, 22> kFormTraits = {
    {{"tensor_parallel", "tensor parallelism"},
     {"sequence_parallel", "sequence parallelism"},
     {"context_parallel", "context parallelism"},
     {"expert_parallel", "expert parallelism"},
     {"whole_experts", "whole experts"},
     {"different_expert_groups", "experts over more or fewer ranks than tp·cp"},
     {"data_parallel", "data parallelism"},
     {"pipelines", "pipelines"},
     {"gpipe", "GPipe"},
     {"1f1b", "1F1B"},
     {"interleaved", "interleaving"},
     {"few_micro_batches", "fewer micro-batches than stages"},
     {"several_micro_batches", "several micro-batches"},
     {"data_outermost", "data-parallel ranks outermost"},
     {"zero_0", "ZeRO-0"},
     {"zero_1", "ZeRO-1"},
     {"zero_2", "ZeRO-2"},
     {"zero_3", "ZeRO-3"},
     {"selective_recomputation", "selective recomputation"},
     {"offloaded_optimizer", "optimizer state in host memory"},
     {"offloaded_weights", "weights in host memory"},
     {"offloaded_activations", "activations in host memory"}}};

/// A set of traits, a bit each.
using FormTraits = std::uint32_t;
inline constexpr FormTraits kAllFormTraits = (FormTraits{1} << kFormTraits.size()) - 1;

constexpr FormTraits bit_of(FormTrait trait) {
  return FormTraits{1} << static_cast<unsigned>(trait);
}
template <typename... Traits>
constexpr FormTraits traits(Traits... each) {
  return (FormTraits{0} | ... | bit_of(each));
}

/// Those of a form whose stages are alike: Parallelism, or what has the same fields.
template <typename Form>
FormTraits traits_of(const Form& form, bool data_outermost) {
  const auto if_so = [](bool holds, FormTrait trait) { return holds ? bit_of(trait) : 0; };
  const bool staged = form.pp > 1;
  FormTraits found =
      if_so(form.tp > 1, FormTrait::tensor_parallel) |
      if_so(form.tp > 1 && form.sequence_parallel, FormTrait::sequence_parallel) |
      if_so(form.cp > 1, FormTrait::context_parallel) |
      if_so(form.ep > 1, FormTrait::expert_parallel) |
      if_so(form.dp > 1, FormTrait::data_parallel) | if_so(staged, FormTrait::pipelines) |
      if_so(staged && form.schedule == ScheduleKind::gpipe, FormTrait::gpipe) |
      if_so(staged && form.schedule == ScheduleKind::one_f_one_b, FormTrait::one_f_one_b) |
      if_so(staged && form.schedule == ScheduleKind::interleaved, FormTrait::interleaved) |
      if_so(form.num_micro_batches < form.pp, FormTrait::few_micro_batches) |
      if_so(form.num_micro_batches > 1, FormTrait::several_micro_batches) |
      if_so(staged && form.dp > 1 && data_outermost, FormTrait::data_outermost) |
      bit_of(FormTrait::zero_0) << static_cast<unsigned>(form.zero) |
      if_so(form.recompute == Recompute::selective, FormTrait::selective_recomputation) |
      if_so(form.offload_optimizer, FormTrait::offloaded_optimizer) |
      if_so(form.offload_weights, FormTrait::offloaded_weights) |
      if_so(form.offload_activations, FormTrait::offloaded_activations);
  bool whole = false;
  if constexpr (requires { form.whole_experts; }) whole = form.whole_experts;
  const std::int64_t expert_ranks = std::int64_t{form.ep} * (whole ? 1 : form.tp);
  const std::int64_t other_ranks = std::int64_t{form.tp} * form.cp;
  return found | if_so(whole, FormTrait::whole_experts) |
         if_so(expert_ranks != other_ranks, FormTrait::different_expert_groups);
}

/// Forms that have all of some traits and none of others.
struct ExcludedForms {
  FormTraits with = 0, without = 0;
  std::string models;  ///< Which models it is about, as " for models of type qwen3"; empty: all.

  /// Of a form of which the traits in `known` are decided, and no others.
  bool has(FormTraits form, FormTraits known = kAllFormTraits) const {
    return ((with | without) & ~known) == 0 && (form & with) == with && (form & without) == 0;
  }
  friend bool operator==(const ExcludedForms&, const ExcludedForms&) = default;
};

/// "has no pipelines", "does not combine ZeRO-0 and tensor parallelism without …".
std::string refusal_text(const ExcludedForms& excluded);

}  // namespace braid
