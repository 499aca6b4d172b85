#pragma once

#include <span>

#include "braid/chip/accelerator/energy.h"
#include "braid/chip/systolic/nest_memo.h"
#include "braid/graph/graph.h"
#include "braid/profile/layer_work.h"
#include "braid/profile/precision.h"
#include "braid/profile/profile.h"
#include "braid/system/chip.h"

namespace braid {

/// What one device does in the passes of a layer over a micro-batch. No seconds: a device's time is
/// not the sum of its layers'.
struct LayerActivity {
  ChipActivity forward, recompute, backward;
};

/// How a layer is run, and on what.
struct ActivityOf {
  const Execution& how;
  const Precision& precision;
  const Chip& chip;
};

/// The activity of a layer on the cores of a chip that is an accelerator, its operators mapped and
/// scheduled as MappedTimes are of: each operator on one core or on all, whichever its schedule
/// has. Every word that crosses a level of memory counts at both ends; registers by
/// register_bytes_per_mac(); links what layer_sent() says. Collectives are taken to read and write
/// no memory. `works` and `leaving` as for mapped_times(). Cost: that of mapped_times().
LayerActivity layer_activity(const Graph& graph, LayerId layer, std::span<const OperatorWork> works,
                             std::span<const TensorId> leaving, const ActivityOf& of,
                             NestMemo& memo);

/// Forward and backward activity that no sharding, micro-batch, mapping or schedule of a layer over
/// so many samples stays below, all devices together, on any accelerator of the same word: what its
/// multiplications and vector operations are, and every operand once through each level. L2 of
/// tensor cores is left to least_l2_bytes().
ChipActivity least_layer_activity(const Graph& graph, LayerId layer,
                                  std::span<const TensorId> leaving, std::int64_t samples,
                                  const Accelerator& chip);

/// Accesses of tensor cores' L2 that so many multiply-accumulates need, whatever stays in the
/// array: what streams passes once for each group of folds that units hold together (nest_cost()).
double least_l2_bytes(double macs, const Accelerator& chip);

}  // namespace braid
