#pragma once

#include <vector>

#include "braid/backend/kernel/backend.h"

namespace braid {

/// The backends that tests run, with one thread each: those found on this machine, or of these the
/// ones that BRAID_TEST_BACKENDS names (separated by commas; empty for none). Prints what is
/// skipped, and why. Some libraries compute wrongly on some processors; that is no fault of
/// braid's.
const std::vector<FoundBackend>& backends_under_test();

}  // namespace braid
