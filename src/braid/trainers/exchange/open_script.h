#pragma once

#include <string>
#include <vector>

namespace braid {

/// Notes of what a script leaves open: what it uses and is not set in it, and what it sets under
/// conditions that are not known.
void note_what_is_open(const std::vector<std::string>& undefined,
                       const std::vector<std::string>& uncertain, std::vector<std::string>& notes);

}  // namespace braid
