#include "braid/profile/split_limits.h"

#include <algorithm>
#include <numeric>
#include <variant>

namespace braid {

SplitLimits split_limits(const Graph& graph) {
  SplitLimits limits;
  limits.seq_len = graph.seq_len;
  for (const Operator& op : graph.operators) {
    limits.recurrent = limits.recurrent || std::holds_alternative<Recurrent>(op.kind);
    if (const auto* o = std::get_if<Attention>(&op.kind); o && op.split == Split::heads) {
      limits.heads = std::gcd(limits.heads, o->heads);
      limits.kv_heads = std::gcd(limits.kv_heads, o->kv_heads);
    }
    if (const auto* o = std::get_if<MatMul>(&op.kind)) {
      if (op.split == Split::column) limits.heads = std::gcd(limits.heads, o->n);
      if (op.split == Split::row) limits.heads = std::gcd(limits.heads, o->k);
    }
    if (const auto* o = std::get_if<MoeExperts>(&op.kind)) {
      limits.experts = std::gcd(limits.experts, o->experts);
      limits.heads = std::gcd(limits.heads, o->inner);
    }
  }
  return limits;
}

bool divides_manually(const SplitLimits& limits, int tp) {
  if (limits.listed != nullptr) return limits.listed->has_manual(tp);
  return tp == 1 || (limits.heads > 0 && limits.heads % tp == 0);
}

namespace {

std::string refusal(const ListedExecutions& listed, const Execution& how) {
  if (listed.has_degrees(how)) return "";
  std::string asked = "tp " + std::to_string(how.tp);
  if (how.sequence_parallel) asked += " with sequence parallelism";
  if (how.cp > 1) asked += ", cp " + std::to_string(how.cp);
  if (how.ep > 1) asked += ", ep " + std::to_string(how.ep);
  return "the profile has no option of " + asked + " for every layer";
}

}  // namespace

std::string refusal(const SplitLimits& limits, const Execution& how) {
  if (limits.listed != nullptr) return refusal(*limits.listed, how);
  if (how.tp > 1) {
    const bool automatic =
        std::binary_search(limits.automatic.begin(), limits.automatic.end(), how.tp);
    if (!divides_manually(limits, how.tp) && (!automatic || how.sequence_parallel)) {
      const std::string tp = "tp " + std::to_string(how.tp);
      if (automatic) return "sequence parallelism goes with manual shardings, and none is of " + tp;
      if (!limits.automatic.empty()) return tp + " divides some layer of the model in no way";
      if (limits.heads == 0) return "the model cannot be split by tensor parallelism";
      return tp + " does not divide " + std::to_string(limits.heads) +
             ", which all heads and widths of the model are multiples of";
    }
    if (how.sequence_parallel && limits.seq_len == 0) {
      return "sequence parallelism needs a sequence, and the model has none";
    }
    if (how.sequence_parallel && limits.seq_len % how.tp != 0) {
      return "tp " + std::to_string(how.tp) + " does not divide the sequence of " +
             std::to_string(limits.seq_len) + " tokens";
    }
  }
  if (how.tp > 1 && how.whole_experts && !how.sequence_parallel) {
    return "experts that tp does not divide need sequence parallelism";
  }
  if (how.cp > 1 && limits.recurrent) {
    return "context parallelism cannot split the steps of a recurrent layer";
  }
  if (how.cp > 1 && (limits.seq_len == 0 || limits.seq_len % (2 * std::int64_t{how.cp}) != 0)) {
    return "2·cp = " + std::to_string(2 * std::int64_t{how.cp}) +
           " does not divide the sequence of " + std::to_string(limits.seq_len) + " tokens";
  }
  if (how.ep > 1 && (limits.experts == 0 || limits.experts % how.ep != 0)) {
    return limits.experts == 0 ? "the model has no experts to split with ep"
                               : "ep " + std::to_string(how.ep) + " does not divide " +
                                     std::to_string(limits.experts) + " experts";
  }
  return "";
}

}  // namespace braid
