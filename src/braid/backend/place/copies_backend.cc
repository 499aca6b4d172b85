#include "braid/backend/place/copies_backend.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "braid/backend/executor.h"
#include "braid/base/index.h"
#include "braid/program/numbers.h"

namespace braid {
namespace {

/// Neighbours that stay neighbours.
struct Run {
  std::size_t input = 0;
  std::int64_t from = 0, to = 0, count = 0;
};

class CopyingKernel : public ComputeKernel {
 public:
  CopyingKernel(std::vector<Run> runs, std::size_t element_bytes)
      : runs_(std::move(runs)), element_bytes_(element_bytes) {}

  void run(std::span<const DenseTensor* const> inputs, DenseTensor& output) override {
    for (const Run& each : runs_) {
      std::memcpy(output.data.data() + at(each.to) * element_bytes_,
                  inputs[each.input]->data.data() + at(each.from) * element_bytes_,
                  at(each.count) * element_bytes_);
    }
  }

 private:
  std::vector<Run> runs_;
  std::size_t element_bytes_;
};

/// Where each element of the output comes from: the operation itself, done to the elements' numbers
/// in place of the elements. Those of the inputs follow each other.
std::vector<std::int64_t> sources_of(const KernelJob& job) {
  Program region = job.region;
  std::vector<DenseTensor> numbers;
  std::int64_t first = 0;
  for (ProgramInput& input : region.inputs) {
    input.type = ElementType::i64;
    const Shape& shape = job.form(input.value).shape;
    std::vector<std::int64_t> own(at(element_count(shape)));
    std::iota(own.begin(), own.end(), first);
    first += element_count(shape);
    numbers.push_back(tensor_of(ElementType::i64, shape, own));
  }
  return numbers_of<std::int64_t>(run(region, numbers).front());
}

std::vector<Run> runs_of(const KernelJob& job) {
  std::vector<std::int64_t> ends;
  for (const ProgramInput& input : job.region.inputs) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + job.form(input.value).count());
  }
  const std::vector<std::int64_t> sources = sources_of(job);
  std::vector<Run> runs;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto input = static_cast<std::size_t>(
        std::upper_bound(ends.begin(), ends.end(), sources[i]) - ends.begin());
    const std::int64_t from = sources[i] - (input == 0 ? 0 : ends[input - 1]);
    const bool goes_on =
        !runs.empty() && runs.back().input == input && runs.back().from + runs.back().count == from;
    if (goes_on) {
      ++runs.back().count;
    } else {
      runs.push_back({input, from, static_cast<std::int64_t>(i), 1});
    }
  }
  return runs;
}

std::unique_ptr<ComputeKernel> copying_kernel(const KernelJob& job) {
  constexpr std::int64_t least_run = 8;
  std::vector<Run> runs = runs_of(job);
  // Numbers that are moved one by one are better moved by a library.
  if (static_cast<std::int64_t>(runs.size()) * least_run > job.output_form().count()) {
    return nullptr;
  }
  return std::make_unique<CopyingKernel>(std::move(runs), bytes_of(job.output_form().type));
}

/// All that is fed has the output's type; of constants, the first is no operand that is moved.
bool takes(const KernelJob& job) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 26;
  if (job.region.inputs.empty() || job.output_form().count() > most_elements) return false;
  return std::all_of(job.region.inputs.begin(), job.region.inputs.end(),
                     [&](const ProgramInput& input) {
                       return job.form(input.value).type == job.output_form().type;
                     }) &&
         job.leaf_constant(0) == nullptr;
}

bool takes_concatenation(const KernelJob& job) {
  for (std::size_t leaf = 0; leaf < job.leaves.size(); ++leaf) {
    if (job.leaf_constant(leaf) != nullptr) return false;
  }
  return takes(job);
}

Backend copying_backend() {
  Backend backend{"copies", "1", {}};
  const auto add = [&](const std::string& operation, std::size_t constants, auto accepts) {
    std::vector<Pattern> args{any()};
    for (std::size_t i = 0; i < constants; ++i) args.push_back(constant());
    backend.patterns.push_back({operation, pattern(operation, args), accepts, copying_kernel});
  };
  for (const char* operation : {"Reshape", "Unsqueeze", "Squeeze", "Expand"}) {
    add(operation, 1, takes);
  }
  for (const char* operation : {"Flatten", "Identity", "Squeeze", "Transpose"}) {
    add(operation, 0, takes);
  }
  for (const std::size_t constants : {2, 3, 4}) add("Slice", constants, takes);
  for (std::size_t operands = 2; operands <= 8; ++operands) {
    backend.patterns.push_back({"Concat", pattern("Concat", std::vector(operands, any())),
                                takes_concatenation, copying_kernel});
  }
  return backend;
}

}  // namespace

const Backend& copies_backend() {
  static const Backend backend = copying_backend();
  return backend;
}

}  // namespace braid
