#include "braid/report/alternatives.h"

#include <utility>

#include "braid/report/confidence_text.h"
#include "braid/report/plan_text.h"
#include "braid/report/plans_table.h"
#include "braid/report/recommendation_text.h"

namespace braid {

Alternatives alternatives_of(const Outcome& outcome) {
  if (outcome.candidates.empty()) return {};
  std::string why = recommendation_text(outcome) + not_told_apart_text(outcome.candidates);
  std::string proof = proof_text(outcome);
  if (outcome.candidates.size() < 2) {
    return {{}, {}, "", std::move(why), std::move(proof), outcome.trainer_notes};
  }
  const std::vector<PlanRow> plans = rows_of(outcome);
  std::vector<std::vector<std::string>> rows = plan_cells(plans);
  std::vector<std::string> titles = std::move(rows.front());
  rows.erase(rows.begin());
  return {std::move(titles), std::move(rows),  marks_legend(plans),
          std::move(why),    std::move(proof), outcome.trainer_notes};
}

}  // namespace braid
