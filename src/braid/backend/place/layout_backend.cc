#include "braid/backend/place/layout_backend.h"

#include <cassert>

#include <fmt/format.h>

#include "braid/program/program_builder.h"

namespace braid {
namespace {

class TurningKernel : public ComputeKernel {
 public:
  TurningKernel(ImageLayout from, ImageLayout to) : from_(from), to_(to) {}
  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    turn_layout(*inputs[0], from_, output, to_);
  }

 private:
  ImageLayout from_, to_;
};

Backend turning_backend() {
  Backend backend{"layout", "1", {}};
  for (const ImageLayout from : all_layouts) {
    for (const ImageLayout to : all_layouts) {
      if (from == to) continue;
      backend.patterns.push_back({fmt::format("{} to {}", name_of(from), name_of(to)),
                                  pattern("Identity", {any()}),
                                  [](const KernelJob&) { return true; },
                                  [from, to](const KernelJob&) -> std::unique_ptr<ComputeKernel> {
                                    return std::make_unique<TurningKernel>(from, to);
                                  },
                                  {from, to}});
    }
  }
  return backend;
}

}  // namespace

const Backend& layout_backend() {
  static const Backend backend = turning_backend();
  return backend;
}

const BackendPattern& turning_pattern(ImageLayout from, ImageLayout to) {
  assert(from != to);
  const auto& patterns = layout_backend().patterns;
  std::size_t which = 0;
  while (patterns[which].layouts != KernelLayouts{from, to}) ++which;
  return patterns[which];
}

KernelJob turning_job(const TensorForm& form) {
  ProgramBuilder builder("turning");
  const ValueId x = builder.input(form.shape, form.type);
  const ValueId y = builder.node("Identity", {x});
  return {builder.finish({y}), {form, form}, {x}};
}

}  // namespace braid
