#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Elements that indices choose, and elements put where indices say.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

/// An index counted from the end when negative; fails outside of [0, size).
std::int64_t checked_index(const NodeCall& call, std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size) {
    call.fail(fmt::format("index {} does not lie in {} elements", index, size));
  }
  return index < 0 ? index + size : index;
}

Tensors gather(const NodeCall& call) {
  call.need_inputs(2, 2);
  const Shape& in = call.shape(0);
  const std::size_t axis = call.axis(call.integer("axis", 0), in.size());
  const auto split_at = in.begin() + static_cast<std::ptrdiff_t>(axis);
  const std::int64_t outer = element_count({in.begin(), split_at});
  const std::int64_t inner = element_count({split_at + 1, in.end()});
  std::vector<std::int64_t> chosen = call.integers(1);
  for (std::int64_t& each : chosen) each = checked_index(call, each, in[axis]);
  std::vector<std::int64_t> places;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::int64_t index : chosen) {
      for (std::int64_t i = 0; i < inner; ++i) places.push_back((o * in[axis] + index) * inner + i);
    }
  }
  Shape out(in.begin(), split_at);
  out.insert(out.end(), call.shape(1).begin(), call.shape(1).end());
  out.insert(out.end(), split_at + 1, in.end());
  return {taken(call.input(0), out, places)};
}

/// For each element of operand 1 the place in operand 0 of the same indices, but for the one along
/// `axis`, which the element says.
std::vector<std::int64_t> element_places(const NodeCall& call, std::size_t axis) {
  call.need_rank(1, call.rank(0), call.rank(0));
  const Shape& in = call.shape(0);
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (d != axis && call.shape(1)[d] > in[d]) {
      call.fail(fmt::format("indices {} do not fit {}", shape_text(call.shape(1)), shape_text(in)));
    }
  }
  Shape strides = row_major_strides(in);
  const std::int64_t along = std::exchange(strides[axis], 0);
  auto places = strided_places(call.shape(1), strides);
  const std::vector<std::int64_t> chosen = call.integers(1);
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] += checked_index(call, chosen[i], in[axis]) * along;
  }
  return places;
}

Tensors gather_elements(const NodeCall& call) {
  call.need_inputs(2, 2);
  const std::size_t axis = call.axis(call.integer("axis", 0), call.rank(0));
  return {taken(call.input(0), call.shape(1), element_places(call, axis))};
}

/// First places of the slices that the last dimension of operand 1 names, and their size.
struct Slices {
  std::vector<std::int64_t> starts;
  std::int64_t size = 1;
  Shape out;  ///< The shape of all slices together.
};

Slices named_slices(const NodeCall& call, std::size_t batch) {
  const Shape& in = call.shape(0);
  call.need_rank(1, batch + 1, 64);
  const Shape& indices = call.shape(1);
  const std::int64_t depth = indices.back();
  const auto rank = static_cast<std::int64_t>(in.size());
  if (depth < 1 || depth > rank - static_cast<std::int64_t>(batch)) {
    call.fail(fmt::format("indices {} do not fit {}", shape_text(indices), shape_text(in)));
  }
  for (std::size_t d = 0; d < batch; ++d) {
    if (indices[d] != in[d]) call.fail("its batch dimensions differ");
  }
  const auto behind = in.begin() + static_cast<std::ptrdiff_t>(batch) + depth;
  Slices slices;
  slices.size = element_count({behind, in.end()});
  slices.out.assign(indices.begin(), indices.end() - 1);
  slices.out.insert(slices.out.end(), behind, in.end());
  const Shape strides = row_major_strides(in);
  const std::span<const std::int64_t> sizes(in);
  const std::int64_t samples = element_count(sizes.first(batch));
  const std::int64_t per_sample = element_count(sizes.subspan(batch));
  const std::vector<std::int64_t> numbers = call.integers(1);
  const std::int64_t count = static_cast<std::int64_t>(numbers.size()) / depth;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = i / std::max<std::int64_t>(1, count / samples) * per_sample;
    for (std::int64_t d = 0; d < depth; ++d) {
      const std::size_t dimension = batch + at(d);
      place += checked_index(call, numbers[at(i * depth + d)], in[dimension]) * strides[dimension];
    }
    slices.starts.push_back(place);
  }
  return slices;
}

std::vector<std::int64_t> slice_places(const Slices& slices) {
  std::vector<std::int64_t> places;
  for (const std::int64_t start : slices.starts) {
    for (std::int64_t i = 0; i < slices.size; ++i) places.push_back(start + i);
  }
  return places;
}

Tensors gather_nd(const NodeCall& call) {
  call.need_inputs(2, 2);
  const std::int64_t batch = call.integer("batch_dims", 0);
  if (batch < 0 || batch >= static_cast<std::int64_t>(call.rank(0))) {
    call.fail(fmt::format("its batch_dims are {}", batch));
  }
  const Slices slices = named_slices(call, at(batch));
  return {taken(call.input(0), slices.out, slice_places(slices))};
}

/// Operand 0 with the elements of operand 2 at `places`, put there or combined with what is there.
DenseTensor scattered(const NodeCall& call, const std::vector<std::int64_t>& places) {
  if (call.type(2) != call.type(0) ||
      call.input(2).count() != static_cast<std::int64_t>(places.size())) {
    call.fail("its updates do not fit its indices");
  }
  const std::string reduction = call.text("reduction", "none");
  DenseTensor result = call.input(0);
  if (reduction == "none") {
    put(result, call.input(2), places);
    return result;
  }
  const auto combine = [&]<typename Number>(Number) {
    std::vector<Number> numbers = numbers_of<Number>(result);
    const std::vector<Number> updates = numbers_of<Number>(call.input(2));
    for (std::size_t i = 0; i < places.size(); ++i) {
      Number& target = numbers[at(places[i])];
      if (reduction == "add") {
        target = target + updates[i];
      } else if (reduction == "mul") {
        target = target * updates[i];
      } else if (reduction == "max") {
        target = std::max(target, updates[i]);
      } else if (reduction == "min") {
        target = std::min(target, updates[i]);
      } else {
        call.fail(fmt::format("the reduction '{}' is not known", reduction));
      }
    }
    return tensor_of(call.type(0), call.shape(0), numbers);
  };
  // Sums and products wrap around as unsigned numbers; which of two is greater needs the sign.
  const bool orders = reduction == "max" || reduction == "min";
  if (is_real(call.type(0))) return combine(double{});
  if (is_unsigned(call.type(0)) || !orders) return combine(std::uint64_t{});
  return combine(std::int64_t{});
}

Tensors scatter_elements(const NodeCall& call) {
  call.need_inputs(3, 3);
  const std::size_t axis = call.axis(call.integer("axis", 0), call.rank(0));
  if (call.shape(1) != call.shape(2)) call.fail("its updates do not fit its indices");
  return {scattered(call, element_places(call, axis))};
}

Tensors scatter_nd(const NodeCall& call) {
  call.need_inputs(3, 3);
  const Slices slices = named_slices(call, 0);
  if (call.shape(2) != slices.out) call.fail("its updates do not fit its indices");
  return {scattered(call, slice_places(slices))};
}

/// Values are [off, on]; indices outside of the depth light nothing.
Tensors one_hot(const NodeCall& call) {
  call.need_inputs(3, 3);
  const auto depth = static_cast<std::int64_t>(call.scalar(1));
  if (depth < 1 || call.input(2).count() != 2) call.fail("its depth or values are not valid");
  const Shape& in = call.shape(0);
  const std::size_t axis = call.axis(call.integer("axis", -1), in.size() + 1);
  Shape out = in;
  out.insert(out.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  std::vector<std::int64_t> places(at(element_count(out)), 0);
  const std::vector<std::int64_t> chosen = call.integers(0);
  Shape strides = row_major_strides(out);
  const std::int64_t along = strides[axis];
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(axis));
  const auto starts = strided_places(in, strides);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t index = chosen[i] < 0 ? chosen[i] + depth : chosen[i];
    if (index >= 0 && index < depth) places[at(starts[i] + index * along)] = 1;
  }
  return {taken(call.input(2), out, places)};
}

constexpr std::array<ReferenceEntry, 7> gather_entries{{
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"OneHot", one_hot},
    {"Scatter", scatter_elements},
    {"ScatterElements", scatter_elements},
    {"ScatterND", scatter_nd},
}};

}  // namespace

std::span<const ReferenceEntry> gather_kernels() { return gather_entries; }

}  // namespace braid
