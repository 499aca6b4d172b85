#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "braid/planners/job/chain_job.h"
#include "braid/planners/job/configuration.h"
#include "braid/planners/job/layout.h"

namespace braid {

struct LayerTable;
class LayerTables;

// Under 1F1B every assignment of consecutive layers is looked at. Under GPipe and interleaving, of
// which no search over all of them is known, these are tried:

/// How layers are dealt out to the chunks of a pipeline.
enum class Dealing : std::uint8_t {
  by_time,      ///< So that the chunk that takes longest takes least.
  by_number,    ///< As many to each chunk, one more to the first ones.
  as_trainers,  ///< layers_of_chunks (plan/dealt_layers.h).
  by_stage,     ///< By time, then so that the fullest stages have less to do (even_stages.h).
};

/// What layers are dealt to. Only Dealing::by_stage tells pipelines of as many chunks apart.
struct DealtPipeline {
  int pp = 1, vp = 1;
  std::int64_t num_micro_batches = 1;
};

/// Ends of the chunks, at most as many as layers. Cost: linear; of by_stage that of even_stages().
void deal(const ChainJob& chain, const LayerTable& table, const DealtPipeline& pipeline,
          Dealing how, Ends& ends);

/// Layers dealt to so many chunks, and the shapes of pipelines made of these.
struct DealtLayers {
  Ends ends;
  bool even = false;  ///< All chunks have as many layers, but the ends perhaps one more.
  std::vector<std::pair<int, std::unique_ptr<const LayoutShape>>> shapes;  ///< By pp.
};

/// Assignments that are tried, each kept once: most layer tables share them, as few of them depend
/// on what layers cost. References stay valid.
class KnownDealings {
 public:
  /// Cost: that of deal() the first time for a table (by_stage: each time), then constant.
  DealtLayers& dealt(const ChainJob& chain, LayerTable& table, const DealtPipeline& pipeline,
                     Dealing how);
  /// Cost: linear in the layers the first time.
  static const LayoutShape& shape(const ChainJob& chain, DealtLayers& dealt, int pp);

 private:
  struct OfChunks {
    std::vector<std::unique_ptr<DealtLayers>> different;
    /// By Dealing; none by time or by stage, which depend on the table.
    std::array<DealtLayers*, 4> found{};
  };
  std::vector<OfChunks> of_chunks_;  ///< By number of chunks.
  Ends ends_;                        ///< Scratch.
};

/// An assignment that is tried, as far as it does not depend on sharding and on where stages lie.
struct TriedLayout {
  const LayoutShape* shape = nullptr;
  /// Of the stage that has most to do: its passes of a micro-batch, and those of the first chunks
  /// of the stages before it (0 where the model branches), both a little less.
  double busiest_s = 0, before_s = 0;

  /// No time with this assignment is less.
  double least_s(std::int64_t num_micro_batches) const {
    return before_s + static_cast<double>(num_micro_batches) * busiest_s;
  }
};

/// What the stages' last chunks have at most in any assignment that is tried for a pp and a vp, or
/// the same pp and a larger vp.
struct LastChunks {
  double kept_bytes = 0;    ///< Stash on the device, of all stages' last chunks together.
  std::int32_t layers = 0;  ///< Of one of them.
};

/// Pipelines that a table keeps KnownTrials of.
struct TrialKey {
  int pp = 1, vp = 1;
  std::int64_t num_micro_batches = 0;  ///< As far as these count; 0: not.
  bool evenly = false;                 ///< ChainJob::dealt_evenly.

  friend bool operator==(const TrialKey&, const TrialKey&) = default;
  struct Hash {
    std::size_t operator()(const TrialKey& key) const;
  };
};

/// What a table keeps for one of them.
struct KnownTrials {
  std::array<TriedLayout, 4> layouts;  ///< Different ones, in the order of Dealing.
  std::optional<std::size_t> count;    ///< Of them; empty: not looked for yet.
  std::optional<LastChunks> last;
};

/// For a configuration, whose table keeps them. Cost: linear in the chunks the first time.
std::span<const TriedLayout> tried_layouts(const ChainJob& chain, LayerTables& tables,
                                           const Configuration& configuration);

/// What it costs, with the stash peaks of its stages, `kinds` being its table's; the rest of
/// `layout` is scratch. Cost: linear in the kinds of chunks and stages and their runs.
void fill_tried_costs(const TriedLayout& tried, std::span<const LayerCost> kinds,
                      const Configuration& configuration, Layout& layout);

/// Kept as tried_layouts() are.
const LastChunks& last_chunks(const ChainJob& chain, LayerTables& tables,
                              const Configuration& configuration);

}  // namespace braid
