#pragma once

#include "cases/case_file.h"

namespace braid::test {

/// Runs a case in a folder of its own and checks what it expects, with GoogleTest's EXPECT.
void run_case(const Case& tested);

}  // namespace braid::test
