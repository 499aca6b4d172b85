#include <utility>

#include "braid/backend/halide/module/halide_network.h"
#include "braid/base/index.h"

// Rows along the last dimension: softmax, layer normalisation, sums, means and greatest elements.

namespace braid {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::RVar;
using Halide::Var;

/// A row of `size` numbers is summed, or its greatest found, in so many lanes side by side.
struct RowLoops {
  std::int64_t size = 1;
  int lanes = 1;
};

RowLoops row_loops(std::int64_t size, const HalideMachine& machine) {
  for (int lanes = machine.vector; lanes > 1; lanes /= 2) {
    if (size % lanes == 0 && size > lanes) return {size, lanes};
  }
  return {size, 1};
}

/// What a row comes to: computed where `schedule` puts it.
struct RowResult {
  Func result, partial;
  bool has_lanes = false;

  void compute_at(const Func& stage, const Var& where, int lanes) {
    result.compute_at(stage, where);
    if (!has_lanes) return;
    const Var lane = partial.args().front();
    partial.compute_at(stage, where).vectorize(lane, lanes);
    partial.update().vectorize(lane, lanes);
  }
};

enum class Fold : std::uint8_t { sum, greatest };

/// The sum or greatest of `element(x)` along a row, for the rows that `rows` are variables of.
RowResult folded_row(const std::function<Expr(const Expr& x)>& element,
                     const std::vector<Var>& rows, const RowLoops& loops, Fold fold) {
  const auto with = [&](const Expr& a, const Expr& b) {
    return fold == Fold::sum ? a + b : Halide::max(a, b);
  };
  const Expr start = fold == Fold::sum ? Expr(0.0F) : Halide::Float(32).min();
  RowResult row;
  if (loops.lanes == 1) {
    const RDom k(0, static_cast<int>(loops.size));
    row.result(rows) = start;
    row.result(rows) = with(row.result(rows), element(k.x));
    return row;
  }
  row.has_lanes = true;
  const Var lane("lane");
  std::vector<Var> partial_variables{lane};
  partial_variables.insert(partial_variables.end(), rows.begin(), rows.end());
  const RDom k(0, static_cast<int>(loops.size) / loops.lanes), l(0, loops.lanes);
  row.partial(partial_variables) = start;
  row.partial(partial_variables) =
      with(row.partial(partial_variables), element(k.x * loops.lanes + lane));
  std::vector<Expr> lanes{Expr(l.x)};
  lanes.insert(lanes.end(), rows.begin(), rows.end());
  row.result(rows) = start;
  row.result(rows) = with(row.result(rows), row.partial(lanes));
  return row;
}

/// The row that a node works on, with variables for its place among others.
struct RowSource {
  std::vector<Var> rows;  ///< Of all dimensions but the last, the innermost first.
  std::function<Expr(const Expr& x)> element;
  RowLoops loops;
};

RowSource row_source(const HalideTensor& x, const HalideMachine& machine) {
  RowSource source;
  const std::vector<Var> all = halide_variables(x.shape.size());
  source.rows.assign(all.begin() + 1, all.end());
  source.element = [x, rows = source.rows](const Expr& place) {
    HalideExprs coordinates(rows.rbegin(), rows.rend());
    coordinates.push_back(place);
    return x.element(coordinates);
  };
  source.loops = row_loops(x.shape.back(), machine);
  return source;
}

void need_last_axis(const HalideNode& node, std::int64_t axis) {
  const std::size_t rank = node.operands[0].shape.size();
  if (rank < 2 || node.call->axis(axis, rank) != rank - 1) {
    node.call->fail("is done along the last dimension of several alone");
  }
}

/// A stage over whole rows, vector by vector.
void schedule_row(Func& stage, const RowLoops& loops, int threads) {
  const std::vector<Var> all = stage.args();
  if (loops.lanes > 1) {
    stage.vectorize(all.front(), loops.lanes);
  } else if (loops.size <= 16) {
    stage.vectorize(all.front(), static_cast<int>(loops.size));
  }
  if (threads > 1) stage.parallel(all.back());
}

/// A function of a row's elements, with variables for all of its coordinates.
Func row_function(const RowSource& source, const std::function<Expr(const Expr& x)>& element,
                  const Var& x) {
  Func function;
  std::vector<Var> variables{x};
  variables.insert(variables.end(), source.rows.begin(), source.rows.end());
  function(variables) = element(x);
  return function;
}

std::function<Expr(const Expr&)> row_element(const Func& function, const std::vector<Var>& rows) {
  return [function, rows](const Expr& x) {
    HalideExprs coordinates{x};
    coordinates.insert(coordinates.end(), rows.begin(), rows.end());
    return function(coordinates);
  };
}

HalideStage softmax_stage(const HalideNode& node, const HalideMachine& machine) {
  if (node.call->opset() < 13 && node.rank() != 2) {
    const std::size_t axis = node.call->axis(node.call->integer("axis", 1), node.rank());
    if (axis != node.rank() - 1) node.call->fail("is done along the last dimension alone");
  } else {
    need_last_axis(node, node.call->integer("axis", node.call->opset() < 13 ? 1 : -1));
  }
  const RowSource source = row_source(node.operands[0], machine);
  const Var x("x");
  Func values = row_function(source, source.element, x);
  const auto value = row_element(values, source.rows);
  RowResult most = folded_row(value, source.rows, source.loops, Fold::greatest);
  const Expr row_most = most.result(source.rows);
  Func powers = row_function(
      source, [&](const Expr& at_x) { return Halide::exp(value(at_x) - row_most); }, x);
  const auto power = row_element(powers, source.rows);
  RowResult sum = folded_row(power, source.rows, source.loops, Fold::sum);
  Func inverse;
  inverse(source.rows) = 1.0F / sum.result(source.rows);
  Func result = row_function(
      source, [&](const Expr& at_x) { return power(at_x) * inverse(source.rows); }, x);
  const auto schedule = [=](Func& stage) mutable {
    const Var where = stage.args()[1];
    schedule_row(stage, source.loops, machine.threads);
    for (Func* each : {&values, &powers}) {
      each->compute_at(stage, where);
      if (source.loops.lanes > 1) each->vectorize(x, source.loops.lanes);
    }
    most.compute_at(stage, where, source.loops.lanes);
    sum.compute_at(stage, where, source.loops.lanes);
    inverse.compute_at(stage, where);
  };
  return {element_of(result), schedule};
}

HalideStage layer_norm_stage(const HalideNode& node, const HalideMachine& machine) {
  need_last_axis(node, node.call->integer("axis", -1));
  const RowSource source = row_source(node.operands[0], machine);
  const Var x("x");
  Func values = row_function(source, source.element, x);
  const auto value = row_element(values, source.rows);
  const float share = 1.0F / static_cast<float>(source.loops.size);
  RowResult sum = folded_row(value, source.rows, source.loops, Fold::sum);
  Func mean;
  mean(source.rows) = sum.result(source.rows) * share;
  const auto off = [&](const Expr& at_x) { return value(at_x) - mean(source.rows); };
  RowResult squares = folded_row([&](const Expr& at_x) { return off(at_x) * off(at_x); },
                                 source.rows, source.loops, Fold::sum);
  Func scale;
  const auto epsilon = static_cast<float>(node.call->real("epsilon", 1e-5));
  scale(source.rows) = 1.0F / Halide::sqrt(squares.result(source.rows) * share + epsilon);
  Func result = row_function(
      source,
      [&](const Expr& at_x) {
        Expr out = off(at_x) * scale(source.rows) * node.operands[1].element({at_x});
        if (node.operands.size() > 2) out = out + node.operands[2].element({at_x});
        return out;
      },
      x);
  const auto schedule = [=](Func& stage) mutable {
    const Var where = stage.args()[1];
    schedule_row(stage, source.loops, machine.threads);
    values.compute_at(stage, where);
    if (source.loops.lanes > 1) values.vectorize(x, source.loops.lanes);
    sum.compute_at(stage, where, source.loops.lanes);
    mean.compute_at(stage, where);
    squares.compute_at(stage, where, source.loops.lanes);
    scale.compute_at(stage, where);
  };
  return {element_of(result), schedule};
}

/// Sums, means and greatest elements of rows, whose dimension stays with size 1.
HalideStage reduction_stage(const HalideNode& node, const HalideMachine& machine) {
  const auto axes = node.call->integers_of(1, "axes");
  if (!axes || axes->size() != 1 || !node.call->flag("keepdims", true)) {
    node.call->fail("is done along one dimension that stays alone");
  }
  need_last_axis(node, axes->front());
  const RowSource source = row_source(node.operands[0], machine);
  const std::string& operation = node.call->operation();
  RowResult row = folded_row(source.element, source.rows, source.loops,
                             operation == "ReduceMax" ? Fold::greatest : Fold::sum);
  const float share =
      operation == "ReduceMean" ? 1.0F / static_cast<float>(source.loops.size) : 1.0F;
  const HalideElement element = [rows = row.result, share](const HalideExprs& at_result) {
    const HalideExprs coordinates(at_result.rbegin() + 1, at_result.rend());
    return rows(coordinates) * share;
  };
  const auto schedule = [=](Func& stage) mutable {
    row.compute_at(stage, stage.args()[1], source.loops.lanes);
    if (machine.threads > 1) stage.parallel(stage.args().back());
  };
  return {element, schedule};
}

}  // namespace

std::optional<HalideStage> rows_stage(const HalideNode& node, const HalideMachine& machine) {
  const std::string& operation = node.call->operation();
  if (operation == "Softmax") return softmax_stage(node, machine);
  if (operation == "LayerNormalization") return layer_norm_stage(node, machine);
  if (operation == "ReduceSum" || operation == "ReduceMean" || operation == "ReduceMax") {
    return reduction_stage(node, machine);
  }
  return std::nullopt;
}

}  // namespace braid
