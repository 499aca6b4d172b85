#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

// Elements of one tensor in other places.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

Tensors transpose(const NodeCall& call) {
  call.need_inputs(1, 1);
  const Shape& in = call.shape(0);
  Shape order(in.size());
  for (std::size_t d = 0; d < in.size(); ++d) {
    order[d] = static_cast<std::int64_t>(in.size() - 1 - d);
  }
  if (const auto* given = call.integers("perm")) order = *given;
  static_cast<void>(call.axes(order, in.size()));
  if (order.size() != in.size()) {
    call.fail(fmt::format("perm {} does not fit the shape {}", shape_text(order), shape_text(in)));
  }
  const Shape strides = row_major_strides(in);
  Shape out, steps;
  for (const std::int64_t each : order) {
    out.push_back(in[call.axis(each, in.size())]);
    steps.push_back(strides[call.axis(each, in.size())]);
  }
  return {taken(call.input(0), out, strided_places(out, steps))};
}

Tensors concat(const NodeCall& call) {
  call.need_inputs(1, std::size_t{1} << 20U);
  Shape out = call.shape(0);
  const std::size_t axis = call.axis(call.integer("axis", call.opset() < 4 ? 1 : 0), out.size());
  for (std::size_t i = 1; i < call.input_count(); ++i) {
    Shape next = call.shape(i);
    const std::int64_t size = next.size() == out.size() ? std::exchange(next[axis], out[axis]) : 0;
    if (next != out || call.type(i) != call.type(0)) {
      call.fail(
          fmt::format("{} and {} do not fit", form_text(call.input(0)), form_text(call.input(i))));
    }
    out[axis] += size;
  }
  DenseTensor result(call.type(0), out);
  const Shape strides = row_major_strides(out);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    put(result, call.input(i), strided_places(call.shape(i), strides, first));
    first += call.shape(i)[axis] * strides[axis];
  }
  return {std::move(result)};
}

/// What a slice takes from one dimension.
struct SliceRange {
  std::int64_t start = 0, step = 1, count = 0;
};

SliceRange slice_range(std::int64_t size, std::int64_t start, std::int64_t end, std::int64_t step) {
  if (size == 0) return {};
  const auto from_end = [&](std::int64_t at) { return at < 0 ? at + size : at; };
  const std::int64_t low = step > 0 ? 0 : -1;
  start = std::clamp(from_end(start), std::int64_t{0}, step > 0 ? size : size - 1);
  end = std::clamp(from_end(end), low, size);
  const std::int64_t span = step > 0 ? end - start : start - end;
  if (span <= 0) return {};
  return {start, step, (span - 1) / std::abs(step) + 1};
}

Tensors slice(const NodeCall& call) {
  call.need_inputs(1, 5);
  const auto starts = call.integers_of(1, "starts");
  const auto ends = call.integers_of(2, "ends");
  if (!starts || !ends) call.fail("has no starts and ends");
  Shape axes(starts->size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  axes = call.integers_of(3, "axes").value_or(axes);
  const Shape steps = call.integers_of(4, "").value_or(Shape(starts->size(), 1));
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size()) {
    call.fail("starts, ends, axes and steps differ in length");
  }
  Shape out = call.shape(0);
  Shape strides = row_major_strides(out);
  static_cast<void>(call.axes(axes, out.size()));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0 || steps[i] == std::numeric_limits<std::int64_t>::min()) {
      call.fail(fmt::format("its step is {}", steps[i]));
    }
    const std::size_t axis = call.axis(axes[i], out.size());
    const SliceRange range = slice_range(out[axis], (*starts)[i], (*ends)[i], steps[i]);
    out[axis] = range.count;
    first += range.start * strides[axis];
    strides[axis] *= range.step;
  }
  return {taken(call.input(0), out, strided_places(out, strides, first))};
}

Tensors split(const NodeCall& call) {
  call.need_inputs(1, 2);
  const Shape& in = call.shape(0);
  const std::size_t axis = call.axis(call.integer("axis", 0), in.size());
  const auto parts = static_cast<std::int64_t>(call.output_count());
  // Equal parts, the last one smaller when they do not divide the dimension.
  const std::int64_t part = (in[axis] + parts - 1) / parts;
  Shape sizes(at(parts), part);
  sizes.back() = in[axis] - part * (parts - 1);
  sizes = call.integers_of(1, "split").value_or(sizes);
  std::int64_t sum = 0;
  for (const std::int64_t each : sizes) sum += each < 0 ? in[axis] + 1 : each;
  if (static_cast<std::int64_t>(sizes.size()) != parts || sum != in[axis]) {
    call.fail(fmt::format("parts of the sizes {} do not make up {}", shape_text(sizes), in[axis]));
  }
  const Shape strides = row_major_strides(in);
  Tensors results;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    Shape out = in;
    out[axis] = size;
    results.push_back(taken(call.input(0), out, strided_places(out, strides, first)));
    first += size * strides[axis];
  }
  return results;
}

Tensors expand(const NodeCall& call) {
  call.need_inputs(2, 2);
  const Shape out = call.broadcast(call.shape(0), call.integers(1));
  return {taken(call.input(0), out, broadcast_places(call.shape(0), out))};
}

/// For each dimension of the output the index of the input that it takes, -1 for the filler.
using IndexLists = std::vector<std::vector<std::int64_t>>;

DenseTensor taken_by_index(const DenseTensor& tensor, const IndexLists& lists,
                           const DenseTensor* filler) {
  Shape out;
  for (const auto& list : lists) out.push_back(static_cast<std::int64_t>(list.size()));
  const Shape strides = row_major_strides(tensor.shape);
  std::vector<std::int64_t> places(at(element_count(out)));
  Shape index(out.size(), 0);
  for (std::int64_t& place : places) {
    for (std::size_t d = 0; d < out.size() && place >= 0; ++d) {
      const std::int64_t from = lists[d][at(index[d])];
      place = from < 0 ? -1 : place + from * strides[d];
    }
    for (std::size_t d = out.size(); d-- > 0 && ++index[d] == out[d];) index[d] = 0;
  }
  return taken(tensor, out, places, filler);
}

Tensors tile(const NodeCall& call) {
  call.need_inputs(2, 2);
  const Shape& in = call.shape(0);
  const std::vector<std::int64_t> repeats = call.integers(1);
  if (repeats.size() != in.size()) {
    call.fail(fmt::format("repeats {} do not fit {}", shape_text(repeats), shape_text(in)));
  }
  IndexLists lists(in.size());
  for (std::size_t d = 0; d < in.size(); ++d) {
    for (std::int64_t i = 0; i < in[d] * repeats[d]; ++i) lists[d].push_back(i % in[d]);
  }
  return {taken_by_index(call.input(0), lists, nullptr)};
}

/// Which element stands at `index`, outside of [0, size) as `mode` says.
std::int64_t padded_index(const NodeCall& call, const std::string& mode, std::int64_t index,
                          std::int64_t size) {
  if (index >= 0 && index < size) return index;
  if (mode == "constant") return -1;
  if (size < 1) call.fail("pads nothing with its own elements");
  if (mode == "edge") return index < 0 ? 0 : size - 1;
  if (mode == "wrap") return (index % size + size) % size;
  if (mode != "reflect") call.fail(fmt::format("the mode '{}' is not known", mode));
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);
  const std::int64_t folded = (index % period + period) % period;
  return folded < size ? folded : period - folded;
}

Tensors pad(const NodeCall& call) {
  call.need_inputs(1, 4);
  const Shape& in = call.shape(0);
  auto pads = call.integers_of(1, "pads");
  if (!pads) pads = call.integers_of(1, "paddings");
  if (!pads) call.fail("has no pads");
  Shape axes(in.size());
  for (std::size_t d = 0; d < axes.size(); ++d) axes[d] = static_cast<std::int64_t>(d);
  axes = call.integers_of(3, "").value_or(axes);
  static_cast<void>(call.axes(axes, in.size()));
  if (pads->size() != 2 * axes.size()) {
    call.fail(fmt::format("pads {} do not fit the shape {}", shape_text(*pads), shape_text(in)));
  }
  Shape before(in.size(), 0), after(in.size(), 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    before[call.axis(axes[i], in.size())] = (*pads)[i];
    after[call.axis(axes[i], in.size())] = (*pads)[i + axes.size()];
  }
  const std::string mode = call.text("mode", "constant");
  IndexLists lists(in.size());
  for (std::size_t d = 0; d < in.size(); ++d) {
    for (std::int64_t i = -before[d]; i < in[d] + after[d]; ++i) {
      lists[d].push_back(padded_index(call, mode, i, in[d]));
    }
  }
  const std::vector<double> value{call.real("value", 0)};
  const DenseTensor filler = call.has(2) ? call.input(2) : tensor_of(call.type(0), {}, value);
  if (filler.type != call.type(0) || filler.count() != 1) call.fail("its constant does not fit");
  return {taken_by_index(call.input(0), lists, &filler)};
}

/// [N, C, H, W] as blocks: a transposition of six dimensions.
Tensors block_kernel(const NodeCall& call) {
  call.need_inputs(1, 1);
  call.need_rank(0, 4, 4);
  const Shape& in = call.shape(0);
  const std::int64_t block = call.need_integer("blocksize");
  const bool to_space = call.operation() == "DepthToSpace";
  if (block < 1 ||
      (to_space ? in[1] % (block * block) != 0 : in[2] % block != 0 || in[3] % block != 0)) {
    call.fail(fmt::format("blocks of {} do not divide {}", block, shape_text(in)));
  }
  Shape six, out;
  std::array<std::size_t, 6> order{};
  if (to_space) {
    const std::int64_t channels = in[1] / (block * block);
    out = {in[0], channels, in[2] * block, in[3] * block};
    if (call.text("mode", "DCR") == "DCR") {
      six = {in[0], block, block, channels, in[2], in[3]};
      order = {0, 3, 4, 1, 5, 2};
    } else {
      six = {in[0], channels, block, block, in[2], in[3]};
      order = {0, 1, 4, 2, 5, 3};
    }
  } else {
    six = {in[0], in[1], in[2] / block, block, in[3] / block, block};
    out = {in[0], in[1] * block * block, in[2] / block, in[3] / block};
    order = {0, 3, 5, 1, 2, 4};
  }
  const Shape strides = row_major_strides(six);
  Shape turned, steps;
  for (const std::size_t each : order) {
    turned.push_back(six[each]);
    steps.push_back(strides[each]);
  }
  return {taken(call.input(0), out, strided_places(turned, steps))};
}

/// The elements of each sample's first steps in reverse order.
Tensors reverse_sequence(const NodeCall& call) {
  call.need_inputs(2, 2);
  call.need_rank(0, 2, 64);
  const Shape& in = call.shape(0);
  const std::int64_t batch_axis = call.integer("batch_axis", 1);
  const std::int64_t time_axis = call.integer("time_axis", 0);
  if (batch_axis + time_axis != 1 || batch_axis * time_axis != 0) {
    call.fail("its axes are not 0 and 1");
  }
  const std::vector<std::int64_t> lengths = call.integers(1);
  if (static_cast<std::int64_t>(lengths.size()) != in[at(batch_axis)]) {
    call.fail("its lengths do not fit its samples");
  }
  const Shape strides = row_major_strides(in);
  auto places = strided_places(in, strides);
  for (std::int64_t& place : places) {
    const std::int64_t sample = place / strides[at(batch_axis)] % in[at(batch_axis)];
    const std::int64_t step = place / strides[at(time_axis)] % in[at(time_axis)];
    const std::int64_t length = lengths[at(sample)];
    if (length < 0 || length > in[at(time_axis)]) call.fail("a length is not one of its steps");
    if (step < length) place += (length - 1 - 2 * step) * strides[at(time_axis)];
  }
  return {taken(call.input(0), in, places)};
}

/// The upper or lower triangle of each matrix.
Tensors triangle(const NodeCall& call) {
  call.need_inputs(1, 2);
  call.need_rank(0, 2, 64);
  const Shape& in = call.shape(0);
  const auto diagonal = call.has(1) ? static_cast<std::int64_t>(call.scalar(1)) : 0;
  const bool upper = call.flag("upper", true);
  const std::int64_t columns = in.back();
  const std::int64_t rows = in[in.size() - 2];
  auto places = strided_places(in, row_major_strides(in));
  for (std::int64_t& place : places) {
    const std::int64_t column = place % columns;
    const std::int64_t row = place / columns % rows;
    const bool kept = upper ? column - row >= diagonal : column - row <= diagonal;
    if (!kept) place = -1;
  }
  return {taken(call.input(0), in, places)};
}

Tensors compress(const NodeCall& call) {
  call.need_inputs(2, 2);
  const std::vector<std::int64_t> condition = call.integers(1);
  const bool flat = !call.has_attribute("axis");
  const Shape in = flat ? Shape{call.input(0).count()} : call.shape(0);
  const std::size_t axis = flat ? 0 : call.axis(call.integer("axis", 0), in.size());
  IndexLists lists(in.size());
  for (std::size_t d = 0; d < in.size(); ++d) {
    for (std::int64_t i = 0; i < in[d]; ++i) {
      if (d != axis || (at(i) < condition.size() && condition[at(i)] != 0)) lists[d].push_back(i);
    }
  }
  return {taken_by_index(reshaped(call.input(0), in), lists, nullptr)};
}

Tensors non_zero(const NodeCall& call) {
  call.need_inputs(1, 1);
  const std::vector<double> numbers = call.reals(0);
  const Shape strides = row_major_strides(call.shape(0));
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != 0) found.push_back(static_cast<std::int64_t>(i));
  }
  std::vector<std::int64_t> indices;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    for (const std::int64_t place : found) {
      indices.push_back(place / strides[d] % call.shape(0)[d]);
    }
  }
  const Shape out{static_cast<std::int64_t>(strides.size()),
                  static_cast<std::int64_t>(found.size())};
  return {tensor_of(ElementType::i64, out, indices)};
}

constexpr std::array<ReferenceEntry, 13> movement_entries{{
    {"Compress", compress},
    {"Concat", concat},
    {"DepthToSpace", block_kernel},
    {"Expand", expand},
    {"NonZero", non_zero},
    {"Pad", pad},
    {"ReverseSequence", reverse_sequence},
    {"Slice", slice},
    {"SpaceToDepth", block_kernel},
    {"Split", split},
    {"Tile", tile},
    {"Transpose", transpose},
    {"Trilu", triangle},
}};

}  // namespace

std::span<const ReferenceEntry> movement_kernels() { return movement_entries; }

}  // namespace braid
