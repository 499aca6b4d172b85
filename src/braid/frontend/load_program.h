#pragma once

#include <string>

#include "braid/frontend/model.h"
#include "braid/program/program.h"

namespace braid {

/// The program of a model: of an ONNX file (program_from_onnx), or of any other that load_model()
/// takes, by program_from_graph(). Weights without numbers are missing still. Throws Error.
Program load_program(const std::string& source, const ModelOptions& options);

/// Throws Error where the weights would not fit in the machine's memory.
void check_weights_fit(const Program& program, const std::string& source);

}  // namespace braid
