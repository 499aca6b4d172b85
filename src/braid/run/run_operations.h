#pragma once

#include <span>
#include <string_view>

#include "braid/program/program.h"

namespace braid {

/// Operations that can be trained, sorted: ONNX's and "Experts" (kBraidDomain).
std::span<const std::string_view> run_operations();

/// Throws Error, naming the node, for the first that is none of these.
void check_operations(const Program& program);

}  // namespace braid
