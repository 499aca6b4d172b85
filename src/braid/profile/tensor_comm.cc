#include "braid/profile/tensor_comm.h"

#include <algorithm>
#include <variant>

#include "braid/profile/shard.h"
#include "braid/system/dispatch.h"

namespace braid {
namespace {

/// cost(collective, bytes): what it comes to among the ranks.
template <typename Cost>
TensorComm tensor_comm_by(const Cost& cost, double bytes, bool sharded, const TensorNeeds& needs,
                          bool sequence_parallel) {
  const auto at_most_all_reduce = [&](Collective collective) {
    return std::min(cost(collective, bytes), cost(Collective::all_reduce, bytes));
  };
  TensorComm comm;
  if (sharded) {
    if (needs.whole || needs.as_is) comm.forward = at_most_all_reduce(Collective::all_gather);
    if (needs.whole) comm.backward = at_most_all_reduce(Collective::reduce_scatter);
    return comm;
  }
  if (needs.whole) {
    if (sequence_parallel) {
      comm.forward = comm.gathered_again = cost(Collective::all_gather, bytes);
    }
    comm.backward =
        cost(sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce, bytes);
  } else if (needs.sharded && !sequence_parallel) {
    comm.backward = at_most_all_reduce(Collective::all_gather);
  }
  return comm;
}

template <typename Cost>
TensorComm operator_comm_by(const Cost& cost, const Operator& op, double output_bytes, double rows,
                            const Execution& how) {
  TensorComm comm;
  if (how.tp == 1 || (op.split == Split::expert && how.whole_experts)) return comm;
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
    comm.forward = comm.backward = cost(Collective::all_gather, visited * output_bytes) +
                                   cost(Collective::reduce_scatter, visited * output_bytes);
  } else if (op.split == Split::row || op.split == Split::expert ||
             (op.split == Split::vocab && std::holds_alternative<Embedding>(op.kind))) {
    if (how.sequence_parallel) {
      comm.forward = cost(Collective::reduce_scatter, output_bytes);
      comm.backward = cost(Collective::all_gather, output_bytes);
    } else {
      comm.forward = cost(Collective::all_reduce, output_bytes);
    }
  }
  if (const auto* loss = std::get_if<Loss>(&op.kind); loss && op.split == Split::vocab) {
    // Maximum, sum and target of each row, one after another.
    comm.forward = 3 * cost(Collective::all_reduce, 4 * static_cast<double>(loss->rows) * rows);
  }
  if (const auto* cell = std::get_if<Recurrent>(&op.kind); cell && op.split == Split::column) {
    // Every step needs the whole state of the last, and sums its gradient.
    const auto steps = static_cast<double>(cell->steps);
    comm.forward = steps * cost(Collective::all_gather, output_bytes / steps);
    comm.backward = steps * cost(Collective::reduce_scatter, output_bytes / steps);
  }
  return comm;
}

}  // namespace

TensorNeeds& TensorNeeds::operator|=(const TensorNeeds& other) {
  whole |= other.whole;
  sharded |= other.sharded;
  as_is |= other.as_is;
  return *this;
}

bool leaves_sharded(const Operator& op) {
  if (op.split == Split::vocab) return std::holds_alternative<MatMul>(op.kind);
  // Its states are gathered step by step.
  if (std::holds_alternative<Recurrent>(op.kind)) return false;
  return !in_replicated_region(op.split);
}

TensorNeeds needs_of(const Operator& reader, TensorId tensor, bool sharded,
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
      return {!sharded, sharded, false};
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

TensorComm tensor_comm(double bytes, bool sharded, const TensorNeeds& needs, bool sequence_parallel,
                       const GroupSpan& ranks, const System& system) {
  const auto time_s = [&](Collective collective, double of) {
    return collective_time(collective, of, ranks, system).time_s;
  };
  return tensor_comm_by(time_s, bytes, sharded, needs, sequence_parallel);
}

TensorComm tensor_sent(double bytes, bool sharded, const TensorNeeds& needs, bool sequence_parallel,
                       int ranks) {
  const auto sent = [&](Collective collective, double of) {
    return sent_bytes(collective, of, ranks);
  };
  return tensor_comm_by(sent, bytes, sharded, needs, sequence_parallel);
}

TensorComm operator_comm(const Operator& op, double output_bytes, double rows, const Execution& how,
                         const GroupSpan& ranks, const System& system) {
  const auto time_s = [&](Collective collective, double bytes) {
    return collective_time(collective, bytes, ranks, system).time_s;
  };
  return operator_comm_by(time_s, op, output_bytes, rows, how);
}

TensorComm operator_sent(const Operator& op, double output_bytes, double rows,
                         const Execution& how) {
  const auto sent = [&](Collective collective, double bytes) {
    return sent_bytes(collective, bytes, how.tp);
  };
  return operator_comm_by(sent, op, output_bytes, rows, how);
}

}  // namespace braid
