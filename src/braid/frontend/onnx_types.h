#pragma once

#include <cstddef>
#include <optional>

#include "braid/base/dtype.h"
#include "braid/frontend/onnx_model.h"
#include "braid/program/element_type.h"

namespace braid {

/// Bits of one element; 0 for strings and unknown types.
int bits_of(OnnxType type);
bool is_integer(OnnxType type);  ///< Integers and booleans.
bool is_real(OnnxType type);

/// nullopt for strings, complex numbers and integers of four bits, which braid does not have.
std::optional<Dtype> dtype_of(OnnxType type);

/// nullopt for strings, complex numbers, and numbers of fewer bits than 8 or real ones of 8.
std::optional<ElementType> element_type_of(OnnxType type);
OnnxType onnx_type_of(ElementType type);

/// Whether numbers of this type and rank, stored in the file, are weights.
bool is_weight(OnnxType type, std::size_t rank);

}  // namespace braid
