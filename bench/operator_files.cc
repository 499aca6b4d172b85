// Writes one network of N operators as an ONNX file and as a graph in JSON: what
// bench/operator_curve.sh plans.
//
//   operator_files N network.onnx network.json

#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "braid/base/file.h"

#include "onnx_network.h"

namespace braid {
namespace {

constexpr std::int64_t kWidth = 1024;
constexpr std::int64_t kRows = 8;  ///< Samples of the JSON graph; `batch` in the ONNX file.

/// onnx_network() as a graph in JSON.
std::string json_network(std::int64_t blocks) {
  std::string tensors;
  std::string operators;
  std::int64_t count = 0;
  const auto tensor = [&](const std::string& dims, bool parameter) {
    tensors += fmt::format("{}\n{{\"dims\": [{}], \"dtype\": \"f32\"{}}}", count == 0 ? "" : ",",
                           dims, parameter ? ", \"parameter\": true" : "");
    return count++;
  };
  const std::string rows = fmt::format("{}, {}", kRows, kWidth);
  const std::string elements = fmt::format("\"elements\": {}", kRows * kWidth);
  const auto add = [&](const std::string& name, const std::string& fields, std::int64_t a,
                       std::int64_t b) {
    const std::int64_t out = tensor(rows, false);
    operators += fmt::format("{}\n{{\"name\": \"{}\", {}, \"inputs\": [{}{}], \"outputs\": [{}]}}",
                             operators.empty() ? "" : ",", name, fields, a,
                             b < 0 ? "" : fmt::format(", {}", b), out);
    return out;
  };
  const std::string product = fmt::format(
      R"("kind": "matmul", "m": {}, "n": {}, "k": {}, "weight": true)", kRows, kWidth, kWidth);
  std::int64_t x = tensor(rows, false);
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::string block = fmt::format("block{}.", i);
    const std::int64_t weight = tensor(fmt::format("{}, {}", kWidth, kWidth), true);
    const std::int64_t bias = tensor(fmt::format("{}", kWidth), true);
    std::int64_t y = add(block + "product", product, x, weight);
    y = add(block + "sum", R"("kind": "elementwise", "keeps": "nothing", )" + elements, y, bias);
    y = add(
        block + "active",
        fmt::format(R"("kind": "elementwise", "flops_per_element": {}, )", i % 10 == 5 ? 10 : 1) +
            elements,
        y, -1);
    x = add(block + "out", R"("kind": "elementwise", "keeps": "nothing", )" + elements, x, y);
  }
  return fmt::format(
      "{{\"braid\": \"graph\", \"version\": 1, \"samples\": {}, \"inputs\": [0], \"outputs\": [{}],"
      "\n\"tensors\": [{}],\n\"operators\": [{}]}}\n",
      kRows, x, tensors, operators);
}

int run(int count, char** arguments) {
  if (count != 4) {
    std::cerr << "usage: operator_files N network.onnx network.json\n";
    return 2;
  }
  const std::int64_t blocks = std::stoll(arguments[1]) / 4;
  write_file(arguments[2], onnx_network(blocks, kWidth));
  write_file(arguments[3], json_network(blocks));
  return 0;
}

}  // namespace
}  // namespace braid

int main(int count, char** arguments) {
  try {
    return braid::run(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
