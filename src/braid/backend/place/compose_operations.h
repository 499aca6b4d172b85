#pragma once

#include "braid/backend/place/fixed_program.h"

namespace braid {

/// Puts one operation in place of those that older exporters write it as, so that libraries'
/// kernels for it match: layer normalisation over the last dimension (means, differences, a square
/// and a root), and Gelu by the error function. Constants must be what the operation has: an
/// exponent of 2, √2, 1, 1/2; a scale and a shift for each element of a row. What others read stays
/// as it is. The same but for rounding. A composed node has the name of the last one, and as
/// reference_s what its parts took.
void compose_operations(FixedProgram& fixed);

}  // namespace braid
