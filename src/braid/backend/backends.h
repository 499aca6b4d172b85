#pragma once

#include <vector>

#include "braid/backend/kernel/backend.h"

namespace braid {

/// All backends in alphabetical order: those that can be had, and for the others what is missing.
/// Loads their libraries, which sets how many threads these use for the whole process.
std::vector<FoundBackend> find_backends(const BackendOptions& options);

}  // namespace braid
