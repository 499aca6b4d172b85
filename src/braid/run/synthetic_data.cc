#include "braid/run/synthetic_data.h"

#include <algorithm>
#include <limits>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/program/shape.h"

namespace braid {
namespace {

/// Iterations until the data repeat themselves.
constexpr std::int64_t kDistinctIterations = 4;

/// SplitMix64 (Steele et al. 2014): whole numbers to well mixed bits.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111eb;
  return x ^ (x >> 31U);
}

double between_minus_one_and_one(std::uint64_t bits) {
  return static_cast<double>(bits >> 11U) * 0x1.0p-52 - 1;
}

/// The least number of rows of all tables that an input looks up, also by way of a view of it.
std::vector<std::int64_t> bounds_of(const LayeredProgram& model) {
  const Program& program = model.program;
  std::vector<std::int64_t> rows(program.values.size(), 0);
  for (const MissingWeight& weight : program.missing) {
    rows[at(weight.value)] = weight.shape.empty() ? 0 : weight.shape.front();
  }
  std::vector<std::size_t> source(program.values.size(), program.inputs.size());
  for (std::size_t i = 0; i < program.inputs.size(); ++i) source[at(program.inputs[i].value)] = i;
  std::vector<std::int64_t> bounds(program.inputs.size(), std::numeric_limits<std::int64_t>::max());
  for (const ProgramNode& node : program.nodes) {
    if (node.operation == "Reshape" || node.operation == "Slice") {
      source[at(node.outputs.front())] = source[at(node.inputs.front())];
    }
    if (node.operation != "Gather") continue;
    const std::size_t input = source[at(node.inputs[1])];
    const std::int64_t table = rows[at(node.inputs[0])];
    if (input < bounds.size() && table > 0) bounds[input] = std::min(bounds[input], table);
  }
  return bounds;
}

}  // namespace

SyntheticData::SyntheticData(const LayeredProgram& model, std::uint64_t seed, std::int64_t batch)
    : bounds_(bounds_of(model)),
      shapes_(model.shapes),
      seed_(seed),
      set_samples_(batch * kDistinctIterations) {
  for (const ProgramInput& input : model.program.inputs) {
    const std::string& name = model.program.values[at(input.value)].name;
    if (!input.shape) throw Error("the shape of the input " + name + " is not known");
    if (!is_real(input.type) && input.type != ElementType::i64) {
      throw Error("the input " + name + " is neither real nor a whole number of 64 bits");
    }
    counts_.push_back(element_count(*input.shape));
  }
  for (std::int64_t& bound : bounds_) {
    if (bound == std::numeric_limits<std::int64_t>::max()) bound = 2;
  }
}

std::uint64_t SyntheticData::bits(std::uint64_t stream, std::int64_t sample,
                                  std::size_t index) const {
  const auto of_set = static_cast<std::uint64_t>(sample % set_samples_);
  return mixed(mixed(mixed(seed_ ^ (stream << 32U)) ^ of_set) ^ index);
}

std::vector<std::int64_t> SyntheticData::ids(std::size_t input, std::int64_t sample) const {
  std::vector<std::int64_t> result(at(counts_[input]));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::int64_t>(bits(input, sample, i) %
                                          static_cast<std::uint64_t>(bounds_[input]));
  }
  return result;
}

std::vector<double> SyntheticData::reals(std::size_t input, std::int64_t sample) const {
  std::vector<double> result(at(counts_[input]));
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = between_minus_one_and_one(bits(input, sample, i));
  }
  return result;
}

std::int64_t SyntheticData::columns(ValueId result) const {
  const Shape& shape = shapes_[at(result)];
  return shape.empty() ? 1 : shape.back();
}

std::int64_t SyntheticData::rows(ValueId result) const {
  return element_count(shapes_[at(result)]) / std::max<std::int64_t>(1, columns(result));
}

std::vector<std::int64_t> SyntheticData::classes(ValueId result, std::int64_t sample) const {
  const auto count = static_cast<std::uint64_t>(columns(result));
  std::vector<std::int64_t> wanted(at(rows(result)));
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != rows(result) || bounds_[i] <= 2) continue;
    const std::vector<std::int64_t> given = ids(i, sample);
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      wanted[r] = static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(given[r])) % count);
    }
    return wanted;
  }
  const std::uint64_t stream = counts_.size() + static_cast<std::uint64_t>(result);
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    wanted[r] = static_cast<std::int64_t>(bits(stream, sample, r) % count);
  }
  return wanted;
}

std::vector<double> SyntheticData::targets(ValueId result, std::int64_t sample) const {
  const std::uint64_t stream = counts_.size() + static_cast<std::uint64_t>(result);
  std::vector<double> wanted(at(rows(result)));
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    wanted[r] = between_minus_one_and_one(bits(stream, sample, r));
  }
  return wanted;
}

}  // namespace braid
