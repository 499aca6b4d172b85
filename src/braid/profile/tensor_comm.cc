#include "braid/profile/tensor_comm.h"

#include <algorithm>
#include <variant>

#include "braid/profile/shard.h"
#include "braid/system/dispatch.h"

namespace braid {

TensorNeeds& TensorNeeds::operator|=(const TensorNeeds& other) {
  whole |= other.whole;
  divided |= other.divided;
  as_is |= other.as_is;
  return *this;
}

bool leaves_divided(const Operator& op) {
  if (op.split == Split::vocab) return std::holds_alternative<MatMul>(op.kind);
  // Its states are gathered step by step.
  if (std::holds_alternative<Recurrent>(op.kind)) return false;
  return !in_replicated_region(op.split);
}

TensorNeeds needs_of(const Operator& reader, TensorId tensor, bool divided,
                     bool sequence_parallel) {
  switch (reader.split) {
    case Split::column:
      return {true, false, false};
    case Split::vocab:
      if (std::holds_alternative<MatMul>(reader.kind)) return {true, false, false};
      if (std::holds_alternative<Loss>(reader.kind)) return {false, true, false};
      return {false, false, true};
    case Split::heads:
      // What all heads read, such as keys that they share, gets a gradient from each.
      return {!divided, divided, false};
    case Split::row:
    case Split::features:
      return {false, true, false};
    case Split::expert:
      // What else they read, a number for each expert of a token, is next to nothing.
      if (!sequence_parallel && tensor == reader.inputs.front()) return {true, false, false};
      return {false, false, true};
    case Split::replicated:
    case Split::sequence:
      return {false, false, true};
  }
  return {};
}

TensorComm tensor_comm(double bytes, bool divided, const TensorNeeds& needs, bool sequence_parallel,
                       const GroupSpan& ranks, const System& system) {
  const auto time_s = [&](Collective collective) {
    return collective_time(collective, bytes, ranks, system).time_s;
  };
  const auto at_most_all_reduce_s = [&](Collective collective) {
    return std::min(time_s(collective), time_s(Collective::all_reduce));
  };
  TensorComm comm;
  if (divided) {
    if (needs.whole || needs.as_is) comm.forward_s = at_most_all_reduce_s(Collective::all_gather);
    if (needs.whole) comm.backward_s = at_most_all_reduce_s(Collective::reduce_scatter);
    return comm;
  }
  if (needs.whole) {
    if (sequence_parallel) comm.forward_s = comm.gathered_again_s = time_s(Collective::all_gather);
    comm.backward_s =
        time_s(sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce);
  } else if (needs.divided && !sequence_parallel) {
    comm.backward_s = at_most_all_reduce_s(Collective::all_gather);
  }
  return comm;
}

TensorComm operator_comm(const Operator& op, double output_bytes, double rows, const Execution& how,
                         const GroupSpan& ranks, const System& system) {
  TensorComm comm;
  if (how.tp == 1 || (op.split == Split::expert && how.whole_experts)) return comm;
  const auto time_s = [&](Collective collective, double bytes) {
    return collective_time(collective, bytes, ranks, system).time_s;
  };
  if (op.split == Split::expert && how.sequence_parallel) {
    // A token is gathered and its outputs are summed once for each expert-parallel rank that has
    // one of its experts.
    const auto* experts = std::get_if<MoeExperts>(&op.kind);
    double visited = 1;
    if (experts != nullptr) {
      visited = experts->padded
                    ? static_cast<double>(experts->top_k)
                    : units_reached(how.ep, static_cast<double>(experts->experts), experts->top_k);
    }
    comm.forward_s = comm.backward_s = time_s(Collective::all_gather, visited * output_bytes) +
                                       time_s(Collective::reduce_scatter, visited * output_bytes);
  } else if (op.split == Split::row || op.split == Split::expert ||
             (op.split == Split::vocab && std::holds_alternative<Embedding>(op.kind))) {
    if (how.sequence_parallel) {
      comm.forward_s = time_s(Collective::reduce_scatter, output_bytes);
      comm.backward_s = time_s(Collective::all_gather, output_bytes);
    } else {
      comm.forward_s = time_s(Collective::all_reduce, output_bytes);
    }
  }
  if (const auto* loss = std::get_if<Loss>(&op.kind); loss && op.split == Split::vocab) {
    // Maximum, sum and target of each row, one after another.
    comm.forward_s = 3 * time_s(Collective::all_reduce, 4 * static_cast<double>(loss->rows) * rows);
  }
  if (const auto* cell = std::get_if<Recurrent>(&op.kind); cell && op.split == Split::column) {
    // Every step needs the whole state of the last, and sums its gradient.
    const auto steps = static_cast<double>(cell->steps);
    comm.forward_s = steps * time_s(Collective::all_gather, output_bytes / steps);
    comm.backward_s = steps * time_s(Collective::reduce_scatter, output_bytes / steps);
  }
  return comm;
}

}  // namespace braid
