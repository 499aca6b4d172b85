#include "braid/report/form_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "braid/plan/names.h"

namespace braid {
namespace {

template <typename Value>
std::string range(const std::vector<Parallelism>& forms, Value Parallelism::*field) {
  const auto [least, most] = std::minmax_element(
      forms.begin(), forms.end(),
      [field](const Parallelism& a, const Parallelism& b) { return a.*field < b.*field; });
  return (*least).*field == (*most).*field ? fmt::format("{}", (*least).*field)
                                           : fmt::format("{}-{}", (*least).*field, (*most).*field);
}

bool any(const std::vector<Parallelism>& forms, bool Parallelism::*flag) {
  return std::any_of(forms.begin(), forms.end(),
                     [flag](const Parallelism& form) { return form.*flag; });
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "/") + name;
  return text;
}

/// What the layers of stages with forms of their own do.
struct LayerForms {
  std::array<bool, 3> recompute{};  ///< By Recompute.
  bool offload_activations = false;
};

LayerForms layer_forms(const Plan& plan) {
  LayerForms found;
  for (const Stage& stage : plan.stages) {
    if (!stage.own) {
      found.recompute[static_cast<std::size_t>(plan.parallel.recompute)] = true;
      found.offload_activations |= plan.parallel.offload_activations;
      continue;
    }
    for (const Chunk& chunk : stage.chunks) {
      for (std::size_t i = 0; i < chunk.layers.size(); ++i) {
        const Execution& how =
            options_of(plan.profile, chunk.layers[i])[static_cast<std::size_t>(chunk.options[i])]
                .how;
        found.recompute[static_cast<std::size_t>(how.recompute)] = true;
        found.offload_activations |= how.offload_activations;
      }
    }
  }
  return found;
}

}  // namespace

FormText form_text(const Plan& plan) {
  std::vector<Parallelism> forms;
  forms.reserve(plan.stages.size());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) forms.push_back(form_of(plan, s));
  if (forms.empty()) forms.push_back(plan.parallel);
  const LayerForms layers = layer_forms(plan);
  FormText text;
  text.tp = range(forms, &Parallelism::tp);
  if (any(forms, &Parallelism::sequence_parallel)) text.tp += "sp";
  text.cp = range(forms, &Parallelism::cp);
  text.dp = range(forms, &Parallelism::dp);
  text.ep = range(forms, &Parallelism::ep);
  if (plan.parallel.whole_experts) text.ep += " whole";
  text.micro_batch = range(forms, &Parallelism::micro_batch);
  text.num_micro_batches = range(forms, &Parallelism::num_micro_batches);
  for (const Recompute kind : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (!layers.recompute[static_cast<std::size_t>(kind)]) continue;
    text.recompute += (text.recompute.empty() ? "" : "/") + std::string(name_of(kind));
  }
  if (text.recompute.empty()) text.recompute = name_of(plan.parallel.recompute);
  std::set<std::string> zeros;
  for (const Parallelism& form : forms) zeros.emplace(name_of(form.zero));
  text.zero = joined(zeros);
  if (any(forms, &Parallelism::offload_optimizer)) text.offload += "+opt";
  if (layers.offload_activations) text.offload += "+act";
  if (any(forms, &Parallelism::offload_weights)) text.offload += "+w";
  return text;
}

}  // namespace braid
