#pragma once

#include <string>
#include <vector>

#include "braid/base/document.h"
#include "braid/plan/outcome.h"

namespace braid {

/// Plans beside the one that a file holds, as plans_table() has them: `titles` of the columns, in
/// each row a cell for each, the file's own plan first, what marks in the cells stand for, why
/// the file's own is recommended where it is not the fastest (recommendation_text()), and what the
/// search has proven (proof_text()). `notes`: what a reader has to know of the trainer before the
/// figures (Outcome::trainer_notes).
struct Alternatives {
  std::vector<std::string> titles;
  std::vector<std::vector<std::string>> rows;
  std::string marks, why, proof;
  std::vector<std::string> notes;
};

/// All candidates, none when there is but one, why the first is that, what is proven of it, and the
/// notes.
Alternatives alternatives_of(const Outcome& outcome);

/// What a plan's file, read as `plan`, has under "alternatives": {"titles": […], "rows": [[…], …],
/// "marks": "…", "why": "…", "proof": "…", "notes": […]}; nothing where it has none. Throws Error
/// where it has them in another form.
Alternatives alternatives_from_json(const Value& plan);

}  // namespace braid
