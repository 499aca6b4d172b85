#pragma once

#include "braid/backend/place/fixed_program.h"

namespace braid {

/// Takes batch normalisations with constant statistics out of a program, as frameworks do before
/// inference: y = scale · (x - mean) / √(variance + epsilon) + shift goes into the weights and the
/// bias of the convolution before it, where nothing else reads that convolution's result, and
/// becomes a product and a sum with constants elsewhere. Exact but for rounding.
void fold_batch_normalizations(FixedProgram& fixed);

}  // namespace braid
