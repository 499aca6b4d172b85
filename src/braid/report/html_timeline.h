#pragma once

#include <string>
#include <vector>

#include "braid/plan/plan.h"
#include "braid/schedule/plan_orders.h"
#include "braid/schedule/timeline.h"

namespace braid {

/// The part of a page that draws when each stage does what, and what lies in its memory meanwhile:
/// the graph of stages beside passes above transfers and collectives for each stage, with the
/// layers of the passes, then a stage's memory by kind against the usable amount. Both can be
/// zoomed. Of very many passes those at the start and at the end are drawn, of many stages the
/// first and last ones; the page says so. A sentence alone when there are more passes than
/// simulate() shows.
std::string timeline_section(const Plan& plan);

/// The same as a page of its own. `notes`, of this and the other pages: what a reader has to know
/// before the figures, such as what the trainer does otherwise (notes_part()).
std::string timeline_page(const Plan& plan, const std::vector<std::string>& notes);

/// Of a plan by the schedule of that name in place of its own.
std::string timeline_page(const DrawnOrder& drawn, const std::string& schedule,
                          const std::vector<std::string>& notes);

/// The predicted passes of a plan above those that a run measured (run_measurement.h), drawn alike
/// on one scale. Both timelines are of one iteration with all of the plan's stages.
std::string measured_page(const Plan& plan, Timeline predicted, Timeline measured,
                          const std::vector<std::string>& notes);

}  // namespace braid
