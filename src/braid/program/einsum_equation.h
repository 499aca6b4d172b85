#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "braid/program/shape.h"

namespace braid {

/// The equation of an Einsum, over operands of given shapes: a sign for each dimension. Signs are
/// letters, and for the dimensions that an ellipsis stands for char(1) to char(26), counted from
/// the last.
struct EinsumEquation {
  std::vector<std::string> operands;
  std::string output;

  /// All signs of operands, ascending.
  std::string signs() const;
  /// Of a sign that an operand has.
  std::int64_t size(char sign) const { return sizes[static_cast<std::size_t>(sign)]; }

  Shape sizes;  ///< By sign.
};

/// Reads `text`, "...ij,jk->...ik" or without "->…", where the output has the ellipsis and the
/// letters that occur once. Calls `fail`, which throws, with what is wrong. Cost: linear.
///
///     einsum_equation("ij,jk", {{{2, 3}, {3, 4}}}, fail).output;  // "ik"
EinsumEquation einsum_equation(std::string text, std::span<const Shape> shapes,
                               const std::function<void(const std::string& message)>& fail);

}  // namespace braid
