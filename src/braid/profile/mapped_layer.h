#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "braid/chip/systolic/nest_memo.h"
#include "braid/chip/tile_curve.h"
#include "braid/graph/graph.h"
#include "braid/profile/layer_work.h"
#include "braid/profile/precision.h"
#include "braid/profile/profile.h"
#include "braid/system/chip.h"

namespace braid {

/// Times of one layer's passes over a micro-batch on a chip onto which layers are mapped: on a
/// dataflow chip, which runs partitions of kernels (chip/kernel_mapper.h), or on the cores of an
/// accelerator (chip/cores/schedule_cores.h). In seconds, communication between devices not
/// counted.
struct MappedTimes {
  double forward_s = 0;         ///< What the backward pass reads is written to memory.
  double forward_unkept_s = 0;  ///< Nothing of it is, as when all is computed again.
  double recomputed_s = 0;      ///< What selective recomputation repeats, or all where faster.
  double backward_s = 0;        ///< Both gradients.
  double least_s = 0;           ///< No mapping of both passes takes less.
  friend bool operator==(const MappedTimes&, const MappedTimes&) = default;
};

/// Sets of kernels that the mapping of one layer may look at; what is left is MappedTimes::least_s.
constexpr std::int64_t kLayerMappingBudget = 200'000;

/// And where no order of its kernels that is tried fits DRAM: plans with such a layer do not fit
/// either, whatever its times.
constexpr std::int64_t kUnfitMappingBudget = 20'000;

/// Starts of operators that the schedule of a pass on an accelerator's cores may try.
constexpr std::int64_t kLayerScheduleWork = 20'000;

/// Times of the best mapping by pass, and a bound on both.
struct PassTimes {
  double forward_s = 0, backward_s = 0, least_s = 0;
};

/// Mapped before, for one chip and precision: layers run in different ways often leave a device the
/// same work, or some of the same kernels.
struct MappedWorks {
  /// By all numbers of the kernels and tensors, or of the operators of a pass on cores.
  std::map<std::vector<double>, PassTimes> times;
  /// By whether it is a matrix multiplication, its rows, depth and columns.
  std::map<std::tuple<bool, std::int64_t, std::int64_t, std::int64_t>, TileCurve> curves;
  std::shared_ptr<NestMemo> nests = std::make_shared<NestMemo>();  ///< Of any chips.
};

/// What layers are mapped onto, in which formats; `known` may be null.
struct MappingTarget {
  const Precision& precision;
  const Chip& chip;
  MappedWorks* known = nullptr;
};

/// The best mapping of one device's share (rank_graph.h) of a layer onto the chip. On a dataflow
/// chip: kernels of both passes as training runs them (graph_kernels.h), the forward ones in
/// partitions before those of the backward pass; the chip's `efficiency` says what of the peaks of
/// GEMMs and memory is sustained. On cores: each pass scheduled by itself (core_layer.h). `works`
/// is the layer's layer_work(), `leaving` as in rank_layer(). Throws Error when the chip lists no
/// peak for the precision or no on-chip memory. Cost: map_kernels() within the budget, for what
/// `target.known` has not.
MappedTimes mapped_times(const Graph& graph, LayerId layer, std::span<const OperatorWork> works,
                         const Execution& how, std::span<const TensorId> leaving,
                         const MappingTarget& target);

/// The same, the same work mapped once. Of graphs that differ in their splits alone.
class MappedLayers {
 public:
  /// `nests`: mappings that are known already; may be null.
  MappedLayers(const Graph& graph, const Precision& precision, const Chip& chip,
               std::shared_ptr<NestMemo> nests = nullptr);

  /// Different works that were mapped.
  std::size_t mapped() const { return works_.times.size(); }

  const MappedTimes& times(const Graph& graph, LayerId layer, std::span<const OperatorWork> works,
                           const Execution& how);

 private:
  using Key = std::tuple<LayerId, int, int, bool, int, int, bool, std::vector<Split>>;

  Precision precision_;
  const Chip& chip_;
  std::vector<std::vector<TensorId>> leaving_;
  std::map<Key, MappedTimes> times_;
  MappedWorks works_;
};

}  // namespace braid
