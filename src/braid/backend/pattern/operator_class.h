#pragma once

#include <cstdint>
#include <string_view>

namespace braid {

/// How the elements of an operator's result depend on those of its operands, from the simplest on:
/// what can be fused with what follows from it (Chen 2018, section 3; TVM's classes).
enum class OperatorClass : std::uint8_t {
  elementwise,  ///< Each on the one at its own place.
  broadcast,    ///< The same, where an operand may be spread.
  injective,    ///< Each on one at another place: movements.
  reduction,    ///< Each on a row of them.
  fusable,      ///< Each on many, but what works element by element can follow in the same loops.
  opaque,
};

/// That of an operation of ONNX; what is not known is opaque. Softmax and LayerNormalization are
/// fusable, as in Collage's published rules.
OperatorClass operator_class(std::string_view operation);

}  // namespace braid
