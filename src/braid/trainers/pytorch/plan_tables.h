#pragma once

#include <string>
#include <vector>

#include "braid/run/staged_model.h"
#include "braid/schedule/plan_orders.h"
#include "braid/trainers/pytorch/stage_writer.h"

namespace braid {

/// What the written file says of the plan in tables, beside the stages' modules. All outlives it.
class PlanTables {
 public:
  PlanTables(const OrderedPlan& ordered, const StagedModel& staged, const ModelFacts& facts,
             const StageTexts& texts, const std::vector<WrittenStage>& stages)
      : ordered_(ordered), staged_(staged), facts_(facts), texts_(texts), stages_(stages) {}

  /// The command that starts all processes; where computers have different numbers of them, a line
  /// for each, and a warning.
  std::vector<std::string> launch(const std::string& file,
                                  std::vector<std::string>& warnings) const;
  /// The text at the top of the file: what it is, how it is started and what its stages are.
  std::string heading(const std::vector<std::string>& launch,
                      const std::vector<std::string>& warnings) const;
  /// BATCH, INPUTS, TARGETS, SHAPES, STAGES, TIED, SHARED and ORDER.
  std::string text() const;

 private:
  std::string data_text() const;
  std::string stage_text() const;
  std::string shared_text() const;
  std::string order_text() const;

  const OrderedPlan& ordered_;
  const StagedModel& staged_;
  const ModelFacts& facts_;
  const StageTexts& texts_;
  const std::vector<WrittenStage>& stages_;
};

}  // namespace braid
