#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "braid/planners/partition.h"

namespace braid {

/// What data parallelism costs a stage with `dense` and `expert` parameters on each device, at the
/// least: bandwidth alone, in seconds for each of them.
struct MixedRates {
  struct PerParameter {
    double dense = 0, expert = 0;
    double of(double dense_parameters, double expert_parameters) const {
      return dense_parameters * dense + expert_parameters * expert;
    }
  };
  PerParameter reduce;  ///< Once, behind the last backward pass and hidden behind its first part.
  PerParameter optimizer;          ///< After that.
  double optimizer_s = 0;          ///< Whatever the parameters.
  PerParameter forward, backward;  ///< In every pass, hidden behind its layers (ZeRO-2 and 3).
  double overlap_loss = 0;         ///< Share of what hides behind layers that is lost all the same.
};

/// One way to run the layers of a stage; ways of a form differ in what memory they need.
struct MixedWay {
  std::vector<ChainLayer> layers;
  MemoryForm memory;
  /// Trades time for memory: not to be taken where a way that does not fits.
  bool saves_memory = false;
};

/// A stage on devices of certain kinds, whichever layers it takes.
struct MixedForm {
  std::vector<std::int32_t> takes;  ///< Devices of each kind.
  std::vector<MixedWay> ways;
};

/// A pipeline of stages in any number, of any of the forms, on devices of several kinds. From the
/// last stage to the first each takes the next devices of the kinds that it is on; `used` below is
/// what the stages behind it have taken of each kind.
struct MixedProblem {
  std::int64_t micro_batches = 1;
  std::vector<std::int32_t> capacity;  ///< Devices of each kind.
  std::vector<MixedForm> forms;
  std::int32_t least_stages = 1;
  std::int32_t most_stages = std::numeric_limits<std::int32_t>::max();

  /// Cuts that hand over the same bytes are of one class; [layer behind the cut].
  std::vector<std::int32_t> cut_class;
  std::int32_t cut_classes = 1;

  /// Whether a stage of this form may lie there.
  std::function<bool(std::span<const std::int32_t> used, std::int32_t form)> allows;
  /// One direction, from a stage of form `above` to the one behind it, of form `below`, which lies
  /// at `used`.
  std::function<double(std::span<const std::int32_t> used, std::int32_t below, std::int32_t above,
                       std::int32_t cut_class)>
      handover_s;
  std::function<MixedRates(std::span<const std::int32_t> used, std::int32_t form, std::int32_t way)>
      rates;
};

struct MixedStage {
  std::int32_t form = 0, way = 0;
  std::int32_t begin = 0, end = 0;  ///< Layers.
  std::vector<std::int32_t> used;   ///< By the stages behind it.
  friend bool operator==(const MixedStage&, const MixedStage&) = default;
};

/// Stages in pipeline order and what bounds their time.
struct MixedPipeline {
  std::vector<MixedStage> stages;
  double base_s = 0;    ///< All stages' times, handovers both ways, the first stage's tail.
  double excess_s = 0;  ///< The longest detour of any stage, see stage_excess_s.
  double end_s = 0;     ///< Of the stage that ends last at the least, its tail included.
  double bound_s() const { return std::max(base_s + excess_s, end_s); }
};

/// What one pass over a problem finds.
struct MixedPass {
  /// By rising base_s: the best, and the best of others in number of stages, devices used or form
  /// of the first stage. Empty: there is none.
  std::vector<MixedPipeline> pipelines;
  /// The least excess above the limit that kept a stage from taking more.
  double next_excess_s = std::numeric_limits<double>::infinity();
  bool memory_bound = false;  ///< Memory kept some stage from taking more.
  std::int64_t steps = 0;     ///< Stages tried.
};

/// The passes over one problem; what they share is kept.
class MixedPasses {
 public:
  explicit MixedPasses(const MixedProblem& problem);

  /// The pipeline of least base_s whose stages all have an excess of at most `excess_s`, among
  /// those that may take no more than `cutoff_s`, by bound_s(); a shorter one may have more excess.
  /// A dynamic program over (stages, devices used, layers left, form of the first stage), in which
  /// a rest of the pipeline that is shorter and begins with a shorter stage is always better; of
  /// several that are not both the least of either is taken when there are more than a few. Cost:
  /// its states times forms times layers of a stage. Gives up, with nothing, after `most_steps`.
  MixedPass run(double excess_s, double cutoff_s, std::int64_t most_steps);

  /// No pipeline has a smaller base_s: every layer in its fastest form.
  double least_base_s() const { return least_time_before_s_.back(); }

 private:
  /// Sums over the layers before each, of one way.
  struct Sums {
    std::vector<double> forward_s, backward_s, dense, expert;
  };
  /// What depends on the devices that are used already, kept from pass to pass.
  struct Facts {
    std::vector<std::int8_t> allowed;  ///< [form]; -1: not asked yet.
    std::vector<MixedRates> rates;     ///< [form · ways + way], where allowed.
    std::vector<double> handover_s;    ///< [(below · forms + above) · classes + class]; -1.
  };
  /// The rest of a pipeline from a stage on. Of those that begin with the same form and layer some
  /// are shorter, others begin with a shorter stage; none of a list is worse in both.
  struct Entry {
    double below_s = std::numeric_limits<double>::infinity();
    double first_s = 0;  ///< Of its first stage alone.
    std::int32_t right = 0;
    std::int32_t below_entry = -1;  ///< The rest behind that stage, in its state's entries.
    std::int32_t next = -1;         ///< In the list.
    std::int16_t below = -1;        ///< Form of the stage behind.
    std::int16_t way = 0;
  };
  struct State {
    std::vector<std::int32_t> used;
    std::vector<std::int32_t> heads;  ///< [form · (layers + 1) + left end]; -1: none.
    std::vector<Entry> entries;       ///< Lists.
  };
  /// What a stage is put in front of.
  struct Start {
    double below_s = 0;
    double next_s = 0;  ///< Of the stage behind, with handing over to it and back.
    std::int16_t below = -1;
    std::int32_t below_entry = -1;
  };
  using Level = std::map<std::int64_t, State>;  ///< By number of the devices used.
  struct Pass;

  std::int64_t number_of(std::span<const std::int32_t> used) const;
  Facts& facts_of(std::span<const std::int32_t> used);
  bool allows(Facts& facts, std::span<const std::int32_t> used, std::size_t form);
  double handover_s(Facts& facts, std::span<const std::int32_t> used, std::size_t below,
                    std::size_t above, std::int32_t cut);
  const std::vector<std::int32_t>& first_fitting(std::size_t form, std::size_t way,
                                                 std::int64_t in_flight);
  void extend(const State& from, Level& next, Pass& pass);
  void grow(const State& from, std::size_t form, State& to, Pass& pass);
  /// Times of a stage.
  struct StageTime {
    double forward_s = 0, backward_s = 0, tail_s = 0;
    double plain_forward_s = 0, plain_backward_s = 0;  ///< Without data parallelism.
  };
  StageTime time_of(std::size_t form, std::size_t way, std::int32_t left, std::int32_t right,
                    const MixedRates& rates) const;
  std::int32_t take(std::size_t form, std::size_t way, std::int32_t right, std::int32_t first_left,
                    const Start& start, const MixedRates& rates, State& to, Pass& pass);
  void take_any_way(std::size_t form, std::int32_t right, std::span<const Start> starts,
                    const Facts& facts, State& to, Pass& pass);
  static void insert(State& to, std::size_t cell, Entry entry);
  MixedPipeline rebuild(const Pass& pass, std::size_t number) const;

  const MixedProblem& problem_;
  std::size_t layers_ = 0, ways_ = 1;
  std::vector<std::vector<Sums>> sums_;  ///< [form][way]
  std::vector<double> least_forward_before_s_, least_time_before_s_;
  std::map<std::int64_t, Facts> facts_;
  /// [(form · ways + way)][in flight], by right end; empty: not asked yet.
  std::vector<std::vector<std::vector<std::int32_t>>> fitting_;
};

/// By how much a stage of flushed 1F1B, `depth` stages from the end (itself included), lengthens
/// the iteration beyond one way down and up the pipeline; `below_s` is the way behind it, `next_s`
/// the stage behind it with the handovers to it and back. Besides the paths of one_f_one_b_path_s
/// there is one between the two stages: the stage's n-th backward pass comes before its forward
/// pass n + depth, which comes before that of the stage behind, there before backward pass n + 2,
/// and that before the stage's own, so that every two micro-batches take both stages' times and two
/// handovers.
double stage_excess_s(double forward_s, double backward_s, double below_s, double next_s,
                      std::int64_t depth, std::int64_t micro_batches);

struct MixedSolution {
  std::vector<MixedPipeline> pipelines;  ///< Met on the way, each once.
  double bound_s = 0;                    ///< No pipeline takes less; at most the cutoff.
  bool memory_bound = false;
  std::int64_t steps = 0;
};

/// Pipelines of least bound_s() and what none can beat, unless that is the cutoff or more. Ranges
/// of excesses are halved until they cannot hold a better one. `visit` is shown each pipeline and
/// returns the cutoff from then on. `most_steps` limits the work; what is left then shows in the
/// bound.
MixedSolution solve_mixed(const MixedProblem& problem, double cutoff_s, std::int64_t most_steps,
                          const std::function<double(const MixedPipeline&)>& visit);

/// A time that no pipeline of the problem can beat; quick.
double quick_bound_s(const MixedProblem& problem);

}  // namespace braid
