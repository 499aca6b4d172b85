#pragma once

#include <string>

#include "braid/plan/plan.h"

namespace braid {

/// The part of a page that draws when each stage does what, and what lies in its memory meanwhile:
/// passes above transfers and synchronisation for each stage, then memory against the usable
/// amount. Long iterations are cut after some thousands of boxes, many stages to the first and last
/// ones; the page says so. Empty when there are more passes than simulate() shows.
std::string timeline_section(const Plan& plan);

}  // namespace braid
