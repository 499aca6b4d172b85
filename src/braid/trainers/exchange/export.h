#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/plan/plan.h"

namespace braid {

/// A plan as a trainer takes it.
struct Export {
  std::string text;
  std::vector<std::string> warnings;  ///< One for each thing that the trainer cannot express.
  std::string suggested_file;         ///< That it is to be; the file that was named, if one was.
  std::string launch;  ///< The command that starts a run with the file; empty: the file itself.
};

/// `text` with spaces in place of control characters, fit for a comment.
std::string on_one_line(std::string text);

/// "MODEL on CLUSTER: written by braid", on one line.
std::string title_of(const Plan& plan);

/// Layers of the plan that are transformer blocks by its shape (without one: whose kind occurs more
/// than once, as embedding and head do not), and how many of them each virtual stage holds.
struct BlockCounts {
  std::int64_t total = 0;
  std::vector<std::int64_t> per_chunk;  ///< [chunk · pp + stage], in pipeline order.
  bool even = true;                     ///< All virtual stages hold as many.
};
BlockCounts count_blocks(const Plan& plan);

}  // namespace braid
