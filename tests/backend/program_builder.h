#pragma once

#include "braid/program/program_builder.h"
#include "braid/program/random_tensor.h"

namespace braid {

/// A builder whose programs end with one output and have random weights.
class TestProgramBuilder : public ProgramBuilder {
 public:
  explicit TestProgramBuilder(std::int64_t opset = 15) : ProgramBuilder("test", opset) {}
  Program with_output(ValueId output) {
    Program program = finish({output});
    fill_missing_weights(program, 3);
    return program;
  }
};

}  // namespace braid
