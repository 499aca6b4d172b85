#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/cli/verb.h"

namespace braid {

/// Adds `--dim NAME=N`, which may be repeated.
VerbOption add_dims(Verb& verb, std::vector<std::string>& dims);

/// Sizes by name. Throws Error for what is not NAME=N, and for names given twice.
std::map<std::string, std::int64_t> parse_dims(const std::vector<std::string>& dims);

}  // namespace braid
