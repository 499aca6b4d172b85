#pragma once

#include <cstdint>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// One micro-batch's work on a part (one chunk of one stage), summed layer by layer.
struct PartWork {
  double forward_s = 0, backward_s = 0;  ///< With what data parallelism adds to the passes.
  double stash_bytes = 0;                ///< Kept on the device.
  double offloaded_bytes = 0;
  double reduce_s = 0;  ///< Of its gradients, once an iteration, in so many equal pieces.
  int buckets = 1;
};

/// What a stage does once an iteration.
struct StageWork {
  std::vector<PartWork> parts;  ///< [chunk]
  double gather_s = 0;          ///< Of updated parameters, from the iteration's start.
  double reduce_s = 0;          ///< Of gradients, of all parts.
  int buckets = 1;              ///< Equal pieces of the gathering.
  double optimizer_s = 0;
  double shared_s = 0;  ///< Of gradients of parameters that other stages hold too, after reduce_s.
};

/// Work of stage `s`, by the rules of docs/cost-model.md and nothing of plan's code: layers' costs
/// are facts of the plan, times of collectives those of the system.
StageWork work_of_stage(const Plan& plan, std::size_t s);

/// [stage]: time to sum the gradients of parameters that several stages hold, step by step around a
/// ring of these stages, by the rules of docs/cost-model.md.
std::vector<double> shared_sums_s(const Plan& plan);

/// By how much `pieces` equal transfers of `transfer_s` in all outlast work of `work_s`, when the
/// i-th can start once (i + 1)/pieces of the work is done, one after another; replayed piece by
/// piece.
double outlasting_s(double transfer_s, double work_s, int pieces);

/// By how much the gradients of a stage's parts outlast its last backward pass: each part's follow
/// its own last one, bucket by bucket, parts in reverse; of each part so many backward passes come
/// in a row at the iteration's end.
double late_gradients_s(const StageWork& stage, std::int64_t passes_in_a_row);

/// End of work of `work_s` in `pieces` equal parts that begins at `start_s`, when part i also waits
/// for the i-th of as many equal transfers, which take `transfer_s` in all from time 0.
double end_of_waiting_work_s(double start_s, double work_s, double transfer_s, int pieces);

/// What one flow carries of an edge of so many bytes a sample for a micro-batch of stages run as
/// `from`: there are as many flows as the larger stage has devices, and each receiver takes its
/// samples' part from one of them.
double bytes_of_flow(double edge_bytes, const Parallelism& from, const Parallelism& to);

/// Time to hand `bytes` over in each flow from one stage to another, when so many stages send out
/// of a node at once.
double handover_s(const Plan& plan, std::size_t from, std::size_t to, double bytes,
                  std::int64_t stages_at_once = 1);

/// How many stages send out of one node while passes run, found node by node (docs/timeline.md).
std::int64_t stages_sending_at_once(const Plan& plan);

/// Time to hand over what a pass sends.
double pass_handover_s(const Plan& plan, std::size_t from, std::size_t to, double bytes);

}  // namespace braid
