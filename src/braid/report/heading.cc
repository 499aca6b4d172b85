#include "braid/report/heading.h"

#include <fmt/format.h>

#include "braid/base/quantity.h"
#include "braid/report/devices_text.h"

namespace braid {

std::string notes_text(std::span<const std::string> trainer_notes) {
  std::string text;
  for (const std::string& note : trainer_notes) text += note + "\n";
  return text + "\n";
}

std::string planner_words(const Plan& plan) {
  return plan.planner == kStatedPlanner ? "as given to braid evaluate" : "planner " + plan.planner;
}

std::string time_heading(const Plan& plan, const Metrics& metrics) {
  constexpr const char* text = "Where the time goes";
  if (plan.stages.size() < 2) return text;
  return fmt::format("{} in the busiest stage, {} of {}", text, metrics.busiest_stage + 1,
                     plan.stages.size());
}

std::string heading_text(const Plan& plan, std::span<const std::string> trainer_notes) {
  return fmt::format("{}{} on {}: {}{}\n{}", plan.model,
                     plan.model_parameters > 0
                         ? fmt::format(" ({} parameters)", format_count(plan.model_parameters))
                         : "",
                     plan.system.name, devices_text(plan.system),
                     plan.trainer.name.empty() ? "" : ", run by " + plan.trainer.name,
                     notes_text(trainer_notes));
}

}  // namespace braid
