#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "braid/backend/kernel/kernel_job.h"

namespace braid {

/// How Gelu is computed.
enum class GeluForm : std::uint8_t { erf, tanh };
/// That of a node whose operation is Gelu.
GeluForm gelu_form(const Program& region, const ProgramNode& node);

/// A product of matrices with what may follow it: out = activation(A·B + bias), for `batch` pairs
/// one after the other. f32, row-major.
struct GemmSpec {
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transposes_a = false;  ///< A lies as [k × m].
  bool transposes_b = false;  ///< B lies as [n × k].
  bool shares_b = false;      ///< One B for all of the batch.
  ValueId a = -1, b = -1;
  enum class Added : std::uint8_t {
    nothing,
    row,     ///< One number for each column: a bias.
    matrix,  ///< As many as the output: a residual.
  } added = Added::nothing;
  ValueId bias = -1;
  bool relu = false;
  std::optional<GeluForm> gelu;  ///< Of gelu_gemm_patterns() alone.
};

/// The product that a job of gemm_patterns() is; nullopt where types, shapes or attributes have no
/// such form (other types than f32, factors alpha and beta, stacks that are broadcast).
std::optional<GemmSpec> gemm_spec(const KernelJob& job);

/// MatMul and Gemm alone, with a sum, with Relu, and with both: patterns by name.
struct NamedPattern {
  std::string name;
  Pattern pattern;
};
std::vector<NamedPattern> gemm_patterns();
/// The same with Gelu behind them.
std::vector<NamedPattern> gelu_gemm_patterns();

/// Finds the numbers of an operand among what a kernel is given.
class Operands {
 public:
  Operands() = default;
  explicit Operands(const KernelJob& job);

  /// The constant's numbers or those of the input. `value` is one of the region's leaves.
  const float* reals(std::span<const DenseTensor* const> inputs, ValueId value) const;

 private:
  std::vector<std::int32_t> input_;  ///< By value of the region; -1 for constants.
  std::vector<std::shared_ptr<const DenseTensor>> constants_;
};

/// For libraries that compute out += A·B: writes the bias of each column, or the residual, to
/// `out`, the product's [batch · m × n] numbers. Does nothing where neither is added.
void write_addend(const GemmSpec& spec, const Operands& operands,
                  std::span<const DenseTensor* const> inputs, std::span<float> out);

/// out = relu(out), where the product has it.
void apply_relu(const GemmSpec& spec, std::span<float> out);

}  // namespace braid
