#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "braid/backend/measure/cost_store.h"
#include "braid/backend/place/candidates.h"
#include "braid/backend/place/place_program.h"
#include "braid/backend/place/region_answers.h"

namespace braid {

/// What the candidates of a program cost, measured when it is first asked for: kernels together
/// with all that begin at the same node, regions with those of the same nodes. Equal jobs are
/// measured once; what the store knows is not measured again. Counts in `result`, whose list of
/// wrong kernels it fills.
class CandidateCosts {
 public:
  /// All that is given must outlive this.
  CandidateCosts(const FixedProgram& fixed, const ProgramOpGraph& graph,
                 const std::vector<KernelCandidate>& candidates, CostStore* store,
                 const PlaceOptions& options, ProgramPlacement& result);

  /// Infinite where the kernel cannot be made or is wrong.
  double cost_s(std::size_t candidate);

  /// Whether that would measure nothing.
  bool is_free(std::size_t candidate);

  /// To turn a tensor from one layout to another; infinite where it cannot lie in both.
  double turning_s(const TensorForm& form, ImageLayout from, ImageLayout to);

  /// Different kernels: those of the candidates, as many as there would be to measure without
  /// search, and the turns that were asked for.
  std::int64_t kernels() const;

 private:
  using Key = std::pair<const BackendPattern*, std::string>;  ///< With job_text().
  struct Unknown {
    Key key;
    CostKey store_key;
    KernelJob job;
    const KernelCandidate* candidate = nullptr;  ///< nullptr: of turns.
    std::optional<KnownAnswer> known;            ///< Of regions.
  };

  /// Those that are measured together with it.
  std::vector<std::size_t> rivals_of(std::size_t candidate) const;
  void find_costs(const std::vector<std::size_t>& rivals);
  /// Whether what comes of a job is known, if only now from the store. `candidate`: nullptr of
  /// turns.
  bool is_known(const Backend& backend, const Key& key, const KernelCandidate* candidate);
  void take(const Key& key, const std::string& backend, const KernelCandidate* candidate,
            const KernelFinding& finding);
  CostKey store_key(const Backend& backend, const Key& key) const;
  /// Runs the reference kernels when it is first asked for.
  KnownAnswer answer_of(const KernelCandidate& region);
  void measure_all(const std::vector<Unknown>& unknown);

  const FixedProgram& fixed_;
  const ProgramOpGraph& graph_;
  const std::vector<KernelCandidate>& candidates_;
  CostStore* store_;
  const PlaceOptions& options_;
  ProgramPlacement& result_;
  std::vector<Key> keys_;        ///< By candidate; of no pattern for reference kernels.
  std::vector<double> costs_s_;  ///< By candidate; NaN where not asked for.
  std::map<Key, double> known_s_;
  std::vector<std::vector<std::size_t>> by_first_;  ///< Candidates by their first node.
  std::string machine_;
  std::optional<RegionAnswers> answers_;
};

}  // namespace braid
