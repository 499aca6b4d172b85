#pragma once

#include <string>
#include <vector>

#include "braid/chip/cores/core_problem.h"
#include "braid/chip/cores/schedule_cores.h"
#include "braid/report/core_rows.h"

namespace braid {

/// What a schedule's picture is about. `names` are those of the problem's operators.
struct CoreDrawing {
  std::string title;
  const CoreProblem& problem;
  const CoreOutcome& outcome;
  const std::vector<CoreName>& names;
};

/// A Gantt chart (SVG) of the cores: a row for each core, cores that nothing is on by itself in
/// one. An operator on all cores of its kind is as high as all of their rows. Names stand where
/// they fit, and all of them show when pointed at. Light or dark as the viewer is.
std::string core_gantt_svg(const CoreDrawing& drawing);

/// The same as a section of a page, whose chart can be zoomed and says what is pointed at.
std::string core_section(const CoreDrawing& drawing);

/// A page of that section alone.
std::string core_page(const CoreDrawing& drawing);

/// "2.766 ms on 2 tensor cores and 512 vector cores, proven to be the least", or how far from it.
std::string core_summary(const CoreDrawing& drawing);

}  // namespace braid
