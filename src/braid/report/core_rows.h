#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "braid/chip/cores/core_problem.h"
#include "braid/chip/cores/core_schedule.h"
#include "braid/graph/graph.h"

namespace braid {

/// What part of training an operator of a schedule of cores does: its colour.
enum class CorePart : std::uint8_t { forward, input_gradient, weight_gradient, optimizer };

/// An operator as a picture of a schedule of cores has it.
struct CoreName {
  std::string name;
  CorePart part = CorePart::forward;
};
/// Of an operator of a training graph; without the name of its layer in front, if it begins with
/// that, and without the ending that says which part it is.
CoreName core_name(const Operator& op, const std::string& layer = {});

/// A row of a picture: a core that operators are on, or several: cores on which no operator is by
/// itself, or, of very many, those that are not shown by themselves.
struct CoreRow {
  CoreKind kind = CoreKind::tensor;
  std::int64_t cores = 1;
  std::string name;
  /// Of several that operators are on: how many of them are busy, from when on.
  std::vector<std::pair<double, std::int64_t>> busy;
};

/// An operator in the rows of one kind; one that is on all cores has all rows of its kind.
struct CoreBox {
  std::size_t op = 0;
  std::size_t first_row = 0, last_row = 0;
};

struct CoreRows {
  std::vector<CoreRow> rows;  ///< Tensor cores first.
  std::vector<CoreBox> boxes;
};

/// The rows of a schedule: at most a dozen or so, of however many cores. Kinds that no operator
/// needs have none.
CoreRows core_rows(const CoreProblem& problem, const CoreSchedule& schedule);

}  // namespace braid
