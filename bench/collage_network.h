#pragma once

#include <string>

#include "braid/program/program.h"

namespace braid {

/// A network of the published Collage workloads (a JSON file of Relay operators) as a program with
/// random weights.
Program collage_network(const std::string& path);

}  // namespace braid
