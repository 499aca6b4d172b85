#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "braid/base/infinity.h"
#include "braid/planners/job/chain_job.h"
#include "braid/planners/job/configuration.h"
#include "braid/planners/job/layout.h"
#include "braid/schedule/path_bound.h"
#include "braid/schedule/pipeline_time.h"

namespace braid {

/// Memory and time of configurations whose layers are dealt out, each as measure() would find them
/// for the plan. What configurations share (the communicators of a parallel form, collective times)
/// is kept from call to call; once everything has grown, nothing is allocated.
class Evaluator {
 public:
  explicit Evaluator(const ChainJob& chain) : chain_(chain) {}

  /// Device bytes of the fullest stage, and host bytes of that which offloads most.
  struct Memory {
    int tightest_stage = -1;
    double needed_bytes = 0;
    double needed_without_optimizer_bytes = 0;  ///< Were the optimizer's state offloaded.
    int host_stage = -1;
    double host_needed_bytes = 0, host_available_bytes = kInfinity;  ///< A device's share.

    bool host_fits() const { return host_needed_bytes <= host_available_bytes; }
  };
  Memory memory(const Configuration& configuration, Layout& layout);
  /// Of stages whose stash peaks are filled in.
  Memory memory(const Configuration& configuration, std::span<const Layout::StageKind> stages);

  /// Iteration time by simulation.
  double time_s(const Configuration& configuration, const Layout& layout);
  /// The same; infinite where a bound shows that it is not below `cutoff_s`. `handover_s`: from
  /// each stage to the next, or less.
  double time_s(const Configuration& configuration, const Layout& layout,
                std::span<const double> handover_s, double cutoff_s);

  /// Communicators of the configuration's data-parallel groups.
  const DataParallelContext& context(const Configuration& configuration);
  /// The same groups of copies, were they sharded so.
  const DataParallelContext& context(const Configuration& configuration, Zero zero);

  /// Least time that the first stage spends on summing gradients of parameters that other stages
  /// hold too, whatever layers it has.
  double least_shared_gradient_sync_s(const Configuration& configuration);

  /// Time to hand `bytes` from each stage to the next, one direction.
  void fill_handovers(const Configuration& configuration, double bytes,
                      std::vector<double>& handover_s);

 private:
  /// What configurations of the same degrees and placement share.
  struct Form {
    Parallelism parallel;
    int senders = 0;  ///< stages_sending() of `parallel`; 0: not known yet.
    DataParallelContext context;
    std::vector<double> placeholder_bytes;  ///< Of each shape of weights.
    SyncMemo memo;
    /// Of the handover from stage s to the next (the last one's: to the first): which of the
    /// `handovers` times it as.
    std::vector<std::uint8_t> handover_kind;
    struct Handover {
      int source = 0;     ///< A stage that hands over so.
      double bytes = -1;  ///< What was timed last; cuts are mostly alike.
      double time_s = 0;
    };
    std::vector<Handover> handovers;
  };
  using FormKey = std::tuple<int, int, int, bool, int, int, AxisOrder, int>;

  /// Copies of sharded state that the trainer makes, Parallelism::replicate.
  int replicas_of(const Configuration& configuration) const;
  Form& form_of(const Configuration& configuration);
  double handover_s(Form& form, std::size_t kind, double bytes) const;
  /// Times of the chunks and stages that are alike.
  void fill_kinds(const Configuration& configuration, const Layout& layout, const Form& form);
  /// [stage]: time to sum the gradients of parameters that other stages hold too.
  void fill_shared(const Configuration& configuration, const Layout& layout, Form& form,
                   std::vector<double>& stage_s);
  double shared_s(const SharedParameter& parameter, const Form& form) const;
  /// What passes between chunks.
  void fill_transfers(const Layout& layout, const Parallelism& parallel);
  /// Whatever the kinds, which are filled in, wait for: the longest, over all stages, of the first
  /// chunks before a stage up to it, its work, and the way back down to the first stage's end or
  /// its own.
  double busy_path_s(const Configuration& configuration, const Layout& layout,
                     std::span<const double> handover_s) const;
  /// Whether stages form another graph than a chain.
  bool is_graph(const Configuration& configuration) const {
    return configuration.pp > 1 && chain_.hop_bytes.empty();
  }
  double filled_time_s(const Configuration& configuration, const Layout& layout, Form& form,
                       double cutoff_s);
  double time_graph_s(const Configuration& configuration, const Layout& layout, Form& form,
                      double cutoff_s);

  const ChainJob& chain_;
  std::map<FormKey, Form> forms_;
  FormKey last_key_{};
  Form* last_ = nullptr;
  ChainWorkspace workspace_;
  struct Pass {
    double forward_s = 0, backward_s = 0;
    friend bool operator==(const Pass&, const Pass&) = default;
  };
  /// A chain and what its passes follow from: searches come back to the last few.
  struct FilledChain {
    const Form* form = nullptr;
    int micro_batch = 0;
    bool sequence_parallel = false;
    Ends ends;
    std::vector<Pass> passes;  ///< Of the chunks that are alike.
    ChainTimes times;
    /// [Zero][stage]: time to sum shared parameters' gradients; empty: not known yet.
    std::array<std::vector<double>, 4> shared_s;
  };
  /// The chain of a layout whose kinds are filled in.
  const ChainTimes& chain_of(const Configuration& configuration, const Layout& layout, Form& form);
  void fill_chain(const Configuration& configuration, const Layout& layout, Form& form,
                  FilledChain& filled);
  std::array<FilledChain, 8> filled_;  ///< A ring.
  std::size_t newest_ = 0;
  std::uint64_t fills_ = 0;
  std::vector<Pass> passes_;
  std::vector<StageSync> syncs_;
  std::vector<ChunkGradients> gradients_;  ///< Of one stage.
  /// Bytes for each micro-batch from one chunk to another, in model order.
  struct Cut {
    std::int32_t from = 0, to = 0;
    double bytes = 0;
  };
  std::vector<Cut> cuts_;
  std::vector<std::int32_t> chunk_of_layer_, newest_cut_;
  std::vector<std::int32_t> holders_;  ///< Stages that hold a shared parameter.
  std::vector<double> shared_s_;       ///< [stage]
  PipelineWorkspace pipeline_;
  PathBoundWorkspace path_bound_;
};

}  // namespace braid
