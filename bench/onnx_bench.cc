#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>
#include <onnx/onnx_pb.h>

#include "braid/frontend/onnx.h"

namespace braid {
namespace {

/// A network of `nodes` / 4 equal blocks: a product with a weight, a bias, ReLU and a skip.
std::string blocks(std::int64_t nodes) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(15);
  onnx::GraphProto* graph = model.mutable_graph();
  onnx::ValueInfoProto* input = graph->add_input();
  input->set_name("x");
  onnx::TypeProto::Tensor* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param("batch");
  type->mutable_shape()->add_dim()->set_dim_value(64);
  const auto weight = [&](const std::string& name, bool matrix) {
    onnx::TensorProto* tensor = graph->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    if (matrix) tensor->add_dims(64);
    tensor->add_dims(64);
  };
  const auto node = [&](const char* operation, const std::string& a, const std::string& b,
                        const std::string& out) {
    onnx::NodeProto* added = graph->add_node();
    added->set_op_type(operation);
    added->set_name(out + "_" + operation);
    added->add_input(a);
    if (!b.empty()) added->add_input(b);
    added->add_output(out);
    return out;
  };
  std::string x = "x";
  for (std::int64_t i = 0; i < nodes / 4; ++i) {
    const std::string p = "block" + std::to_string(i) + ".";
    weight(p + "weight", true);
    weight(p + "bias", false);
    std::string y = node("MatMul", x, p + "weight", p + "product");
    y = node("Add", y, p + "bias", p + "sum");
    y = node("Relu", y, "", p + "active");
    x = node("Add", x, y, p + "out");
  }
  graph->add_output()->set_name(x);
  return model.SerializeAsString();
}

void BM_GraphFromOnnx(benchmark::State& state) {
  const std::string bytes = blocks(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(graph_from_onnx_bytes(bytes, "bench.onnx", {{"batch", 8}}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
BENCHMARK(BM_GraphFromOnnx)
    ->RangeMultiplier(10)
    ->Range(1000, 1000000)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
