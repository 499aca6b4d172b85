#include <algorithm>
#include <utility>

#include "braid/backend/halide/module/halide_network.h"
#include "braid/base/index.h"

// Products of matrices.

namespace braid {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

/// A stack of products [rows × inner] · [inner × columns] with elements of both factors.
struct Product {
  Shape stack;
  std::int64_t rows = 1, columns = 1, inner = 1;
  HalideTensor a, b;
  bool transposes_a = false, transposes_b = false;
  float alpha = 1, beta = 1;
};

/// Coordinates in a factor whose stack may be shorter, or of single matrices, than the result's.
HalideExprs factor_coordinates(const HalideTensor& factor, const HalideExprs& stack, Expr row,
                               Expr column) {
  HalideExprs coordinates;
  const std::size_t own = factor.shape.size() - 2;
  for (std::size_t d = 0; d < own; ++d) {
    coordinates.push_back(factor.shape[d] == 1 ? Expr(0) : stack[stack.size() - own + d]);
  }
  coordinates.push_back(std::move(row));
  coordinates.push_back(std::move(column));
  return coordinates;
}

Product product_of(const HalideNode& node) {
  Product product;
  product.a = node.operands[0];
  product.b = node.operands[1];
  if (product.a.shape.size() < 2 || product.b.shape.size() < 2) {
    node.call->fail("is done for matrices alone");
  }
  if (node.call->operation() == "Gemm") {
    product.transposes_a = node.call->flag("transA", false);
    product.transposes_b = node.call->flag("transB", false);
    product.alpha = static_cast<float>(node.call->real("alpha", 1));
    product.beta = static_cast<float>(node.call->real("beta", 1));
  }
  product.stack.assign(node.shape.begin(), node.shape.end() - 2);
  product.rows = node.shape[node.rank() - 2];
  product.columns = node.shape.back();
  const Shape& a = product.a.shape;
  product.inner = product.transposes_a ? a[a.size() - 2] : a.back();
  return product;
}

/// A constant second factor as panels of `width` columns, one behind the other.
HalideTensor packed_panels(const Product& product, std::int64_t width, HalideConstants& constants) {
  const std::span<const float> from = product.b.constant->as<float>();
  Halide::Buffer<float> panels(static_cast<int>(width), static_cast<int>(product.inner),
                               static_cast<int>(product.columns / width));
  float* to = panels.data();
  for (std::int64_t panel = 0; panel < product.columns / width; ++panel) {
    for (std::int64_t k = 0; k < product.inner; ++k) {
      for (std::int64_t c = 0; c < width; ++c) {
        const std::int64_t column = panel * width + c;
        *to++ = from[at(product.transposes_b ? column * product.inner + k
                                             : k * product.columns + column)];
      }
    }
  }
  HalideTensor packed;
  packed.is_direct = true;
  packed.element = [parameter = constants.add(panels), w = static_cast<int>(width)](
                       const HalideExprs& c) { return parameter(c[1] % w, c[0], c[1] / w); };
  return packed;
}

/// A second factor that is not read row by row from memory, with its rows stored in order for each
/// of the stack.
Func stored_factor(const Product& product) {
  Func stored("factor");
  const std::vector<Var> v = halide_variables(product.stack.size() + 2);
  const HalideExprs stack(v.rbegin(), v.rend() - 2);
  const Expr column = v[0], row = v[1];
  stored(v) =
      product.b.element(product.transposes_b ? factor_coordinates(product.b, stack, column, row)
                                             : factor_coordinates(product.b, stack, row, column));
  return stored;
}

struct ProductLoops {
  Func sums;
  std::optional<Func> factor;
  Product product;
  HalideMachine machine;
  int width = 1, rows = 1;

  void schedule(Func& stage) {
    const std::vector<Var> v = stage.args();
    const Var column_tile("column_tile"), row_tile("row_tile"), in_column("in_column"),
        in_row("in_row"), vector("vector");
    stage.split(v[0], column_tile, in_column, width, Halide::TailStrategy::ShiftInwards);
    stage.split(v[1], row_tile, in_row, rows, Halide::TailStrategy::ShiftInwards);
    // A panel of columns stays in the cache while all rows pass.
    stage.reorder(in_column, in_row, row_tile, column_tile);
    stage.vectorize(in_column, machine.vector).unroll(in_column).unroll(in_row);
    const std::vector<Var> s = sums.args();
    sums.compute_at(stage, row_tile).vectorize(s[0], machine.vector).unroll(s[0]).unroll(s[1]);
    sums.update().reorder({s[0], s[1], sums.rvars(0).front()});
    sums.update().vectorize(s[0], machine.vector).unroll(s[0]).unroll(s[1]);
    if (factor) schedule_factor(stage);
    if (machine.threads > 1) stage.parallel(v.size() > 2 ? v.back() : column_tile);
  }

 private:
  void schedule_factor(Func& stage) {
    const std::vector<Var> f = factor->args();
    if (f.size() > 2) {
      factor->compute_at(stage, stage.args()[2]);
    } else {
      factor->compute_root();
    }
    factor->vectorize(f[0], std::min<int>(machine.vector, static_cast<int>(product.columns)));
  }
};

}  // namespace

std::optional<HalideStage> product_stage(const HalideNode& node, const HalideMachine& machine,
                                         const HalideTile& tile) {
  const std::string& operation = node.call->operation();
  if (operation != "MatMul" && operation != "Gemm") return std::nullopt;
  ProductLoops loops{{}, {}, product_of(node), machine, 1, 1};
  Product& product = loops.product;
  loops.width = machine.vector * tile.vectors;
  if (product.columns < loops.width) node.call->fail("has fewer columns than the tile");
  loops.rows = static_cast<int>(std::min<std::int64_t>(tile.rows, product.rows));
  const bool packs = product.b.constant != nullptr && product.b.shape.size() == 2;
  HalideTensor b = product.b;
  if (packs && product.columns % loops.width == 0) {
    b = packed_panels(product, loops.width, *node.constants);
  } else if (product.transposes_b || !product.b.is_direct) {
    loops.factor = stored_factor(product);
  }
  const HalideTensor a = product.a.is_direct ? product.a : stored_before(product.a, machine);
  const std::vector<Var> v = halide_variables(node.rank());
  const HalideExprs stack(v.rbegin(), v.rend() - 2);
  const RDom k(0, static_cast<int>(product.inner));
  const Expr column = v[0], row = v[1];
  const Expr first = a.element(product.transposes_a ? factor_coordinates(a, stack, k.x, row)
                                                    : factor_coordinates(a, stack, row, k.x));
  Expr second;
  if (loops.factor) {
    HalideExprs coordinates(v.begin(), v.end());
    coordinates[1] = k.x;
    second = (*loops.factor)(coordinates);
  } else if (packs && product.columns % loops.width == 0) {
    second = b.element({k.x, column});
  } else {
    second = b.element(factor_coordinates(b, stack, k.x, column));
  }
  loops.sums(v) = 0.0F;
  loops.sums(v) += first * second;
  HalideElement element = element_of(loops.sums);
  if (product.alpha != 1) {
    element = [element, alpha = product.alpha](const HalideExprs& c) { return element(c) * alpha; };
  }
  if (node.operands.size() > 2) {
    element = [element, c = node.operands[2], beta = product.beta](const HalideExprs& place) {
      return element(place) + beta * spread_element(c, place);
    };
  }
  return HalideStage{element, [loops](Func& stage) mutable { loops.schedule(stage); }};
}

}  // namespace braid
