#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/backend/reference/rows.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Reductions along axes: sums, extremes, their places, running sums and the greatest elements.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

Shape without_axes(const Shape& shape, const std::vector<bool>& is_axis, bool keep) {
  Shape out;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!is_axis[d]) out.push_back(shape[d]);
    if (is_axis[d] && keep) out.push_back(1);
  }
  return out;
}

/// The shape of a reduction and the rows that it reduces; all axes are named where none is.
struct ReductionJob {
  Shape out;
  RowPlaces places;
  bool does_nothing = false;
};

ReductionJob reduction_job(const NodeCall& call) {
  call.need_inputs(1, 2);
  const std::size_t rank = call.rank(0);
  const auto named = call.integers_of(1, "axes");
  ReductionJob job;
  const bool none = !named || named->empty();
  job.does_nothing = none && call.flag("noop_with_empty_axes", false);
  const std::vector<bool> is_axis = none ? std::vector<bool>(rank, true) : call.axes(*named, rank);
  job.out = without_axes(call.shape(0), is_axis, call.flag("keepdims", true));
  job.places = row_places(call.shape(0), is_axis);
  return job;
}

/// `Reduce::of(row)` for reals; whole numbers are reduced as such where `whole` says so.
template <typename Reduce, bool whole>
Tensors reduce(const NodeCall& call) {
  const ReductionJob job = reduction_job(call);
  if (job.does_nothing) return {call.input(0)};
  if constexpr (whole) {
    if (!is_real(call.type(0)) && is_unsigned(call.type(0))) {
      return {tensor_of(call.type(0), job.out,
                        reduced_rows(numbers_of<std::uint64_t>(call.input(0)), job.places,
                                     Reduce::template of<std::uint64_t>))};
    }
    if (!is_real(call.type(0))) {
      return {
          tensor_of(call.type(0), job.out,
                    reduced_rows(call.integers(0), job.places, Reduce::template of<std::int64_t>))};
    }
  }
  return {tensor_of(call.type(0), job.out,
                    reduced_rows(call.reals(0), job.places, Reduce::template of<double>))};
}

/// Sums and products of whole numbers wrap around, so that they are taken without a sign.
template <typename Number>
using Wrapping = std::conditional_t<std::is_same_v<Number, double>, double, std::uint64_t>;

struct SumOf {
  template <typename Number>
  static Number of(const std::vector<Number>& row) {
    Wrapping<Number> sum = 0;
    for (const Number each : row) sum += static_cast<Wrapping<Number>>(each);
    return static_cast<Number>(sum);
  }
};
struct ProductOf {
  template <typename Number>
  static Number of(const std::vector<Number>& row) {
    Wrapping<Number> product = 1;
    for (const Number each : row) product *= static_cast<Wrapping<Number>>(each);
    return static_cast<Number>(product);
  }
};
struct SumOfSquares {
  template <typename Number>
  static Number of(const std::vector<Number>& row) {
    Wrapping<Number> sum = 0;
    for (const Number each : row) {
      sum += static_cast<Wrapping<Number>>(each) * static_cast<Wrapping<Number>>(each);
    }
    return static_cast<Number>(sum);
  }
};
template <typename Number>
bool is_nan(Number number) {
  if constexpr (std::is_floating_point_v<Number>) return std::isnan(number);
  return false;
}

/// Of no elements: what the least of the type would give way to.
struct GreatestOf {
  template <typename Number>
  static Number of(const std::vector<Number>& row) {
    using Limits = std::numeric_limits<Number>;
    Number most = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    for (const Number each : row) most = most < each || is_nan(each) ? each : most;
    return most;
  }
};
struct LeastOf {
  template <typename Number>
  static Number of(const std::vector<Number>& row) {
    using Limits = std::numeric_limits<Number>;
    Number least = Limits::has_infinity ? Limits::infinity() : Limits::max();
    for (const Number each : row) least = each < least || is_nan(each) ? each : least;
    return least;
  }
};
struct MeanOf {
  template <typename Number>
  static double of(const std::vector<Number>& row) {
    return SumOf::of(row) / static_cast<double>(row.size());
  }
};
struct SumOfMagnitudes {
  template <typename Number>
  static double of(const std::vector<Number>& row) {
    double sum = 0;
    for (const double each : row) sum += std::abs(each);
    return sum;
  }
};
struct EuclideanNorm {
  template <typename Number>
  static double of(const std::vector<Number>& row) {
    return std::sqrt(SumOfSquares::of(row));
  }
};
struct LogOfSum {
  template <typename Number>
  static double of(const std::vector<Number>& row) {
    return std::log(SumOf::of(row));
  }
};
struct LogOfSumOfExp {
  template <typename Number>
  static double of(const std::vector<Number>& row) {
    const double most = GreatestOf::of(row);
    if (std::isinf(most)) return most;
    double sum = 0;
    for (const double each : row) sum += std::exp(each - most);
    return most + std::log(sum);
  }
};

/// The first place of the extreme along an axis, or the last one.
Tensors arg_extreme(const NodeCall& call) {
  call.need_inputs(1, 1);
  const std::size_t rank = call.rank(0);
  std::vector<bool> is_axis(rank, false);
  is_axis[call.axis(call.integer("axis", 0), rank)] = true;
  const bool greatest = call.operation() == "ArgMax";
  const bool last = call.flag("select_last_index", false);
  const auto place_of = [&](const std::vector<double>& row) {
    std::int64_t best = 0;
    for (std::size_t i = 1; i < row.size(); ++i) {
      const double now = row[i];
      const double then = row[at(best)];
      const bool better = greatest ? now > then : now < then;
      if (better || (last && now == then)) best = static_cast<std::int64_t>(i);
    }
    return best;
  };
  const Shape out = without_axes(call.shape(0), is_axis, call.flag("keepdims", true));
  return {tensor_of(ElementType::i64, out,
                    reduced_rows(call.reals(0), row_places(call.shape(0), is_axis), place_of))};
}

template <typename Number>
DenseTensor running_sums(const NodeCall& call, const RowPlaces& places) {
  const bool exclusive = call.flag("exclusive", false);
  const bool reverse = call.flag("reverse", false);
  std::vector<Number> numbers = numbers_of<Number>(call.input(0));
  change_rows(numbers, places, [&](std::vector<Number>& row) {
    if (reverse) std::reverse(row.begin(), row.end());
    Wrapping<Number> sum = 0;
    for (Number& each : row) {
      const Wrapping<Number> before = sum;
      sum += static_cast<Wrapping<Number>>(each);
      each = static_cast<Number>(exclusive ? before : sum);
    }
    if (reverse) std::reverse(row.begin(), row.end());
  });
  return tensor_of(call.type(0), call.shape(0), numbers);
}

Tensors cumulative_sum(const NodeCall& call) {
  call.need_inputs(2, 2);
  std::vector<bool> is_axis(call.rank(0), false);
  is_axis[call.axis(static_cast<std::int64_t>(call.scalar(1)), call.rank(0))] = true;
  const RowPlaces places = row_places(call.shape(0), is_axis);
  if (is_real(call.type(0))) return {running_sums<double>(call, places)};
  return {running_sums<std::int64_t>(call, places)};
}

/// The k greatest (or least) elements along an axis, in order; of equal ones the first counts.
Tensors top_k(const NodeCall& call) {
  call.need_inputs(1, 2);
  const std::size_t rank = call.rank(0);
  const std::size_t axis = call.axis(call.integer("axis", -1), rank);
  const std::int64_t count =
      call.has(1) ? static_cast<std::int64_t>(call.scalar(1)) : call.need_integer("k");
  Shape out = call.shape(0);
  if (count < 0 || count > out[axis]) {
    call.fail(fmt::format("asks for {} of {} elements", count, out[axis]));
  }
  out[axis] = count;
  const bool largest = call.flag("largest", true);
  std::vector<bool> is_axis(rank, false);
  is_axis[axis] = true;
  const RowPlaces from = row_places(call.shape(0), is_axis);
  const RowPlaces to = row_places(out, is_axis);
  const std::vector<double> numbers = call.reals(0);
  std::vector<std::int64_t> places(at(element_count(out)));
  std::vector<std::int64_t> indices(places.size());
  std::vector<std::int64_t> order(from.offsets.size());
  for (std::size_t row = 0; row < from.starts.size(); ++row) {
    const auto place = [&](std::int64_t i) { return from.starts[row] + from.offsets[at(i)]; };
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const double x = numbers[at(place(a))];
      const double y = numbers[at(place(b))];
      return largest ? x > y : x < y;
    });
    for (std::size_t i = 0; i < to.offsets.size(); ++i) {
      places[at(to.starts[row] + to.offsets[i])] = place(order[i]);
      indices[at(to.starts[row] + to.offsets[i])] = order[i];
    }
  }
  return {taken(call.input(0), out, places), tensor_of(ElementType::i64, out, indices)};
}

constexpr std::array<ReferenceEntry, 14> reduction_entries{{
    {"ArgMax", arg_extreme},
    {"ArgMin", arg_extreme},
    {"CumSum", cumulative_sum},
    {"ReduceL1", reduce<SumOfMagnitudes, false>},
    {"ReduceL2", reduce<EuclideanNorm, false>},
    {"ReduceLogSum", reduce<LogOfSum, false>},
    {"ReduceLogSumExp", reduce<LogOfSumOfExp, false>},
    {"ReduceMax", reduce<GreatestOf, true>},
    {"ReduceMean", reduce<MeanOf, false>},
    {"ReduceMin", reduce<LeastOf, true>},
    {"ReduceProd", reduce<ProductOf, true>},
    {"ReduceSum", reduce<SumOf, true>},
    {"ReduceSumSquare", reduce<SumOfSquares, true>},
    {"TopK", top_k},
}};

}  // namespace

std::span<const ReferenceEntry> reduction_kernels() { return reduction_entries; }

}  // namespace braid
