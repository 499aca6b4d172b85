#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/schedule/stage_graph.h"
#include "braid/schedule/work_order.h"

namespace braid {

// Schedules of stage graphs. Each function takes a graph that check_stage_graph accepts and returns
// an order that check_work_order accepts; at the end every stage reduces its gradients and runs its
// optimizer. Each throws Error naming a stage where the graph is none that the schedule is defined
// for. p: devices, m: micro-batches, d: a stage's depth (depths_of), D: the largest. Cost: linear
// in passes.

/// All forward passes, then all backward passes (Huang et al. 2019). Any graph; several stages of a
/// device run one after the other.
WorkOrder gpipe_order(const StageGraph& graph);

/// 1F1B with a flush (Narayanan et al. 2021, §2.2.1): kFkB with k = 1 and the warm-up of Table 3.2
/// in Jeon 2024; where all micro-batches have one size, d forward passes. One stage per device,
/// any graph and sizes.
WorkOrder one_f_one_b_order(const StageGraph& graph);

/// Interleaved 1F1B (Narayanan et al. 2021, §2.2.2). A chain whose stages go round the devices, one
/// micro-batch size, p | m.
WorkOrder interleaved_order(const StageGraph& graph);

/// ZB-H1 (Qi et al. 2024, §2.1): 1F1B whose weight gradients lag D - d micro-batches behind the
/// input gradients, so that every stage keeps at most D stashes. In a chain of equal stages with
/// weight gradients no longer than the other passes the bubble is (p-1)(F + B - W). One stage per
/// device, one micro-batch size, any graph.
WorkOrder zero_bubble_h1_order(const StageGraph& graph);

/// ZB-H2 (Qi et al. 2024, §2.2): 2d - 1 forward passes first, weight gradients 2(D - d) behind, at
/// most 2D - 1 stashes. In a chain of equal stages each device idles (p-1)(F + B - 2W) between its
/// first and its last pass. As zero_bubble_h1_order.
WorkOrder zero_bubble_h2_order(const StageGraph& graph);

/// ZB-V (Qi et al. 2024, arXiv:2401.10241): each device has a stage on the way out and its mirror
/// image on the way back. With equal stages and F = B = W no device idles after its first pass once
/// m ≥ 2p, at 2p stashes of half a device's work: as many as 1F1B. A chain of 2p stages, stage q on
/// device min(q, 2p-1-q), one micro-batch size.
WorkOrder zero_bubble_v_order(const StageGraph& graph);

/// kFkB (Jeon 2024, §3.6): `warm_up` forward passes, then in turn k backward and k forward passes,
/// then the remaining backward passes; [stage] each, 1 ≤ k, k ≤ warm_up or warm_up all of them.
/// One stage per device, one round, any graph and sizes. Throws when the order can never finish:
/// too few warm-up passes for what the successors ask for.
WorkOrder k_f_k_b_order(const StageGraph& graph, std::span<const std::int64_t> k,
                        std::span<const std::int64_t> warm_up);

/// PipeDream-2BW (Narayanan et al. 2021, ICML): 1F1B over all rounds with no flush between them,
/// the optimizer as soon as a round's gradients are there. Forward passes of round r use the
/// weights made by round r-2, so that two versions are kept. One stage per device, one micro-batch
/// size; m of a round ≥ D, else more versions would be needed.
WorkOrder two_buffered_order(const StageGraph& graph);

/// The passes of one kFkB stage, without reduction and optimizer.
std::vector<Work> k_f_k_b_passes(std::int32_t stage, std::int64_t micro_batches, std::int64_t k,
                                 std::int64_t warm_up);

}  // namespace braid
