#include "braid/program/random_tensor.h"

#include <cmath>
#include <memory>
#include <numbers>
#include <random>
#include <vector>

#include "braid/base/index.h"
#include "braid/program/numbers.h"

namespace braid {
namespace {

/// The sum of four uniform numbers, of 16 bits each, moved and scaled to mean 0 and deviation 1.
/// Arithmetic alone, so the same with every mathematics library.
double nearly_normal(std::uint64_t bits) {
  constexpr std::uint64_t part = 0xffff;
  const std::uint64_t sum =
      (bits & part) + (bits >> 16U & part) + (bits >> 32U & part) + (bits >> 48U);
  constexpr double mean = 2 * 65535.0;
  return (static_cast<double>(sum) - mean) / 65536.0 * std::numbers::sqrt3;
}

std::vector<double> normal_numbers(std::size_t count, std::uint64_t seed, double scale) {
  std::mt19937_64 engine(seed);
  std::vector<double> numbers(count);
  for (double& each : numbers) each = scale * nearly_normal(engine());
  return numbers;
}

DenseTensor random_scales(ElementType type, const Shape& shape, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<double> numbers(at(element_count(shape)));
  for (double& each : numbers) each = 0.5 + static_cast<double>(engine() >> 11U) * 0x1.0p-53;
  return tensor_of(type, shape, numbers);
}

}  // namespace

DenseTensor random_tensor(ElementType type, const Shape& shape, std::uint64_t seed, double scale) {
  const std::size_t count = at(element_count(shape));
  if (is_real(type)) return tensor_of(type, shape, normal_numbers(count, seed, scale));
  std::mt19937_64 engine(seed);
  std::vector<std::int64_t> bits(count);
  for (std::int64_t& each : bits) each = static_cast<std::int64_t>(engine() >> 63U);
  return tensor_of(type, shape, bits);
}

DenseTensor random_weight(const MissingWeight& weight, std::uint64_t seed) {
  const std::uint64_t own_seed = seed + static_cast<std::uint64_t>(weight.value);
  if (is_real(weight.type) && weight.shape.size() < 2) {
    return random_scales(weight.type, weight.shape, own_seed);
  }
  const std::int64_t rows = weight.shape.empty() ? 1 : weight.shape.front();
  const std::int64_t width = rows > 0 ? element_count(weight.shape) / rows : 1;
  const double scale = width > 0 ? 1 / std::sqrt(static_cast<double>(width)) : 1;
  return random_tensor(weight.type, weight.shape, own_seed, scale);
}

void fill_missing_weights(Program& program, std::uint64_t seed) {
  for (const MissingWeight& weight : program.missing) {
    program.values[at(weight.value)].constant =
        std::make_shared<const DenseTensor>(random_weight(weight, seed));
  }
  program.missing.clear();
}

}  // namespace braid
