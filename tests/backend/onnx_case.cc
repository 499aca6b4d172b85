#include "backend/onnx_case.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "braid/backend/executor.h"
#include "braid/backend/reference/reference_kernel.h"
#include "braid/base/error.h"
#include "braid/frontend/onnx_program.h"
#include "braid/program/numbers.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

std::vector<DenseTensor> tensors_in(const fs::path& folder, const std::string& kind) {
  std::vector<DenseTensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", kind, i);
    if (!fs::exists(path)) return tensors;
    tensors.push_back(tensor_from_onnx(path.string()));
  }
}

std::set<std::string> unknown_operations(const Program& program) {
  std::set<std::string> unknown;
  for (const ProgramNode& node : program.nodes) {
    if (reference_kernel(node.domain, node.operation) == nullptr) {
      unknown.insert(node.domain.empty() ? node.operation : node.domain + "." + node.operation);
    }
  }
  return unknown;
}

/// The usual tolerance, but for cases whose expected numbers are not exact: those of windows come
/// from another value of pi than their model has, those of the bicubic grid are given with four
/// digits, and those of bf16 are cut off where ONNX now rounds to the nearest.
Tolerance tolerance_of(const std::string& name, const Tolerance& usual) {
  constexpr Tolerance onnx_runner{.relative = 1e-3, .absolute = 1e-7};
  constexpr Tolerance brain_half_step{.relative = 0x1p-7, .absolute = 0};
  const bool is_window = name.find("window") != std::string::npos && name.ends_with("_expanded");
  if (is_window || name == "test_gridsample_bicubic") return onnx_runner;
  return name == "test_cast_FLOAT_to_BFLOAT16" ? brain_half_step : usual;
}

/// Operations whose results ONNX leaves to chance.
bool is_random(const Program& program) {
  return std::any_of(program.nodes.begin(), program.nodes.end(),
                     [](const ProgramNode& node) { return node.operation.starts_with("Random"); });
}

/// NumPy has no bf16, so that the data have its bits as u16.
void tag_brain_halves(DenseTensor& tensor, ElementType due) {
  if (due == ElementType::bf16 && tensor.type == ElementType::u16) tensor.type = due;
}

/// Changes the last element by 1 % and a little, or its lowest bit; without any, the shape.
void spoil(DenseTensor& tensor) {
  if (tensor.count() == 0) {
    tensor.shape.push_back(1);
  } else if (is_real(tensor.type)) {
    std::vector<double> numbers = numbers_of<double>(tensor);
    double& last = numbers.back();
    last = std::isfinite(last) ? last * 1.01 + std::copysign(0.01, last) : 1;
    tensor = tensor_of(tensor.type, tensor.shape, numbers);
  } else {
    std::vector<std::int64_t> numbers = numbers_of<std::int64_t>(tensor);
    numbers.back() ^= 1;
    tensor = tensor_of(tensor.type, tensor.shape, numbers);
  }
}

std::string failure_of(const Program& program, const fs::path& data, const CaseRules& rules) {
  std::vector<DenseTensor> inputs = tensors_in(data, "input");
  for (std::size_t i = 0; i < std::min(inputs.size(), program.inputs.size()); ++i) {
    tag_brain_halves(inputs[i], program.inputs[i].type);
  }
  const std::vector<DenseTensor> outputs = run(program, inputs);
  std::vector<DenseTensor> expected = tensors_in(data, "output");
  for (std::size_t i = 0; i < std::min(outputs.size(), expected.size()); ++i) {
    tag_brain_halves(expected[i], outputs[i].type);
    if (rules.expectations == Expectations::spoiled) spoil(expected[i]);
  }
  if (outputs.size() != expected.size()) {
    return fmt::format("{} outputs where {} are due", outputs.size(), expected.size());
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string differs = tensor_difference(outputs[i], expected[i], rules.tolerance);
    if (!differs.empty()) return fmt::format("output {}: {}", i, differs);
  }
  return "";
}

void run_case(const fs::path& folder, const CaseRules& rules, OnnxCaseCounts& counts) {
  ++counts.cases;
  const std::string name = folder.filename().string();
  const CaseRules own{tolerance_of(name, rules.tolerance), rules.expectations};
  Program program;
  try {
    program = program_from_onnx((folder / "model.onnx").string(), {});
  } catch (const Error& error) {
    counts.left_out.emplace(name, error.what());
    return;
  }
  const std::set<std::string> unknown = unknown_operations(program);
  for (const std::string& operation : unknown) ++counts.unknown_operations[operation];
  if (!unknown.empty()) return;
  ++counts.of_known_operations;
  if (is_random(program)) {
    counts.left_out.emplace(name, "random numbers, which ONNX does not fix");
    ++counts.left_out_of_known;
    return;
  }
  bool passed = true;
  for (const fs::directory_entry& data : fs::directory_iterator(folder)) {
    if (!data.is_directory()) continue;
    try {
      const std::string failure = failure_of(program, data.path(), own);
      if (failure.empty()) continue;
      counts.failures.push_back(name + ": " + failure);
    } catch (const Error& error) {
      counts.left_out.emplace(name, error.what());
      ++counts.left_out_of_known;
    }
    passed = false;
  }
  if (passed) counts.passed.push_back(name);
}

}  // namespace

OnnxCaseCounts run_onnx_cases(const fs::path& folder, const CaseRules& rules) {
  std::set<fs::path> cases;
  for (const fs::directory_entry& each : fs::directory_iterator(folder)) {
    if (fs::exists(each.path() / "model.onnx")) cases.insert(each.path());
  }
  OnnxCaseCounts counts;
  for (const fs::path& each : cases) run_case(each, rules, counts);
  return counts;
}

}  // namespace braid
