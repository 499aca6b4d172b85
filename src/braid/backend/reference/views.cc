#include <array>
#include <optional>

#include <fmt/format.h>

#include "braid/backend/reference/kernel_lists.h"

// The same numbers in the same order under another shape.

namespace braid {
namespace {

using Tensors = std::vector<DenseTensor>;

Tensors identity(const NodeCall& call) {
  call.need_inputs(1, 1);
  return {call.input(0)};
}

/// A target holds at most one -1, for what is left, and 0 for the input's own size there.
Tensors reshape(const NodeCall& call) {
  call.need_inputs(1, 2);
  const auto target = call.integers_of(1, "shape");
  if (!target) call.fail("has no target shape");
  const Shape& in = call.shape(0);
  const auto bad = [&] [[noreturn]] () {
    call.fail(fmt::format("{} cannot be reshaped to {}", shape_text(in), shape_text(*target)));
  };
  Shape out = *target;
  std::optional<std::size_t> rest;
  std::int64_t known = 1;
  for (std::size_t d = 0; d < out.size(); ++d) {
    if (out[d] == 0 && !call.flag("allowzero", false)) {
      if (d >= in.size()) bad();
      out[d] = in[d];
    }
    if (out[d] < -1 || (out[d] == -1 && rest)) bad();
    if (out[d] == -1) {
      rest = d;
    } else if (__builtin_mul_overflow(known, out[d], &known)) {
      bad();
    }
  }
  if (rest) out[*rest] = known > 0 ? call.input(0).count() / known : 0;
  if ((rest && known * out[*rest] != call.input(0).count()) ||
      (!rest && known != call.input(0).count())) {
    bad();
  }
  return {reshaped(call.input(0), std::move(out))};
}

Tensors flatten(const NodeCall& call) {
  call.need_inputs(1, 1);
  const Shape& in = call.shape(0);
  const std::int64_t given = call.integer("axis", 1);
  // One past the last dimension is allowed here.
  const std::size_t axis =
      given == static_cast<std::int64_t>(in.size()) ? in.size() : call.axis(given, in.size());
  const std::span<const std::int64_t> sizes(in);
  return {reshaped(call.input(0),
                   {element_count(sizes.first(axis)), element_count(sizes.subspan(axis))})};
}

Tensors squeeze(const NodeCall& call) {
  call.need_inputs(1, 2);
  const Shape& in = call.shape(0);
  const auto named = call.integers_of(1, "axes");
  const std::vector<bool> gone = call.axes(named.value_or(Shape()), in.size());
  Shape out;
  for (std::size_t d = 0; d < in.size(); ++d) {
    if (gone[d] && in[d] != 1) {
      call.fail(fmt::format("dimension {} of {} is not 1", d, shape_text(in)));
    }
    if (named ? !gone[d] : in[d] != 1) out.push_back(in[d]);
  }
  return {reshaped(call.input(0), std::move(out))};
}

Tensors unsqueeze(const NodeCall& call) {
  call.need_inputs(1, 2);
  const Shape& in = call.shape(0);
  const auto named = call.integers_of(1, "axes");
  if (!named) call.fail("has no axes");
  const std::vector<bool> is_new = call.axes(*named, in.size() + named->size());
  Shape out;
  std::size_t next = 0;
  for (const bool each : is_new) out.push_back(each ? 1 : in[next++]);
  return {reshaped(call.input(0), std::move(out))};
}

constexpr std::array<ReferenceEntry, 5> view_entries{{
    {"Flatten", flatten},
    {"Identity", identity},
    {"Reshape", reshape},
    {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze},
}};

}  // namespace

std::span<const ReferenceEntry> view_kernels() { return view_entries; }

}  // namespace braid
