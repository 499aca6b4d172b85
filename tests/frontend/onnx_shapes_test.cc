#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include "braid/base/error.h"
#include "braid/frontend/onnx.h"

#include "frontend/onnx_model_builder.h"

// Holds the shapes that braid's rules give against those of the ONNX project's own inference.

namespace braid {
namespace {

using Extents = std::vector<std::int64_t>;

void add_shapes(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list,
                std::map<std::string, Extents>& shapes) {
  for (const onnx::ValueInfoProto& info : list) {
    if (!info.type().tensor_type().has_shape()) continue;
    Extents dims;
    for (const auto& dim : info.type().tensor_type().shape().dim()) {
      if (!dim.has_dim_value()) break;
      dims.push_back(dim.dim_value());
    }
    const int rank = info.type().tensor_type().shape().dim_size();
    if (static_cast<int>(dims.size()) == rank) shapes[info.name()] = dims;
  }
}

/// Shapes by name as ONNX's library infers them; nullopt when it finds the model at fault.
std::optional<std::map<std::string, Extents>> inferred(onnx::ModelProto model) {
  try {
    onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(),
                                       onnx::ShapeInferenceOptions{true, 1, true});
  } catch (const std::exception&) {
    return std::nullopt;
  }
  std::map<std::string, Extents> shapes;
  add_shapes(model.graph().value_info(), shapes);
  add_shapes(model.graph().output(), shapes);
  return shapes;
}

/// How many shapes were compared.
int compare(const Graph& graph, const std::map<std::string, Extents>& expected,
            const std::string& label) {
  int compared = 0;
  for (const Tensor& tensor : graph.tensors) {
    const auto found = expected.find(tensor.name);
    if (tensor.producer < 0 || found == expected.end()) continue;
    EXPECT_EQ(tensor.dims, found->second) << label << ": " << tensor.name;
    ++compared;
  }
  return compared;
}

TEST(OnnxShapes, AgreeWithTheReferenceOnItsOwnTestModels) {
  const std::filesystem::path folder = "/usr/share/libonnx-testdata/data";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "libonnx-testdata is not installed";
  int models = 0, loaded = 0, compared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx") continue;
    ++models;
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    Graph graph;
    try {
      graph = graph_from_onnx(entry.path().string(), {}, OnnxOperators::as_written);
    } catch (const Error&) {
      continue;  // Any other way to fail fails the test.
    }
    ++loaded;
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(bytes));
    if (const auto expected = inferred(model)) {
      compared += compare(graph, *expected, entry.path().string());
    }
    EXPECT_NO_THROW(check_graph(graph, entry.path().string()));
  }
  // The rest are control flow, sequences, strings and operations without a rule.
  EXPECT_GT(models, 1000);
  EXPECT_GT(loaded, models * 85 / 100);
  EXPECT_GT(compared, loaded);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int operator()(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine_);
  }
  Extents list(std::size_t count, int low, int high) {
    Extents values;
    for (std::size_t i = 0; i < count; ++i) values.push_back((*this)(low, high));
    return values;
  }
  OnnxModelBuilder::Dims dims(std::size_t count, int low, int high) {
    OnnxModelBuilder::Dims values;
    for (std::size_t i = 0; i < count; ++i) values.emplace_back((*this)(low, high));
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

/// Adds a node "y" with random attributes on an input "x" of random shape.
void add_random_node(OnnxModelBuilder& model, Random& random) {
  const auto spatial = static_cast<std::size_t>(random(1, 3));
  const int channels = random(1, 3);
  auto x = random.dims(2 + spatial, 1, 12);
  x[1] = 2 * channels;
  const auto rank = static_cast<int>(x.size());
  OnnxModelBuilder::Attributes window{{"strides", random.list(spatial, 1, 3)},
                                      {"dilations", random.list(spatial, 1, 2)},
                                      {"pads", random.list(2 * spatial, 0, 2)}};
  const Extents kernel = random.list(spatial, 1, 4);
  Extents weight{4, channels};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  model.input("x", x);
  switch (random(0, 11)) {
    case 0:
      window.emplace_back("group", 2);
      model.weight("w", weight);
      model.node("Conv", {"x", "w"}, {"y"}, window);
      break;
    case 1:
      weight[0] = 2 * channels;
      window.emplace_back("output_padding", random.list(spatial, 0, 1));
      model.weight("w", weight);
      model.node("ConvTranspose", {"x", "w"}, {"y"}, window);
      break;
    case 2:
      window.emplace_back("kernel_shape", kernel);
      model.node("MaxPool", {"x"}, {"y"}, window);
      break;
    case 3:
      model.node("MaxPool", {"x"}, {"y"},
                 {{"kernel_shape", kernel},
                  {"strides", random.list(spatial, 1, 3)},
                  {"auto_pad", std::string(random(0, 1) == 0 ? "SAME_UPPER" : "VALID")}});
      break;
    case 4:
      model.integers("starts", random.list(2, -15, 15));
      model.integers("ends", random.list(2, -15, 15));
      model.integers("axes", {0, random(1, rank - 1)});
      model.integers("steps", {random(1, 3), random(0, 1) == 0 ? -random(1, 3) : random(1, 3)});
      model.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
      break;
    case 5:
      model.node("ReduceMean", {"x"}, {"y"},
                 {{"axes", Extents{random(-rank, -1)}}, {"keepdims", random(0, 1)}});
      break;
    case 6:
      model.integers("pads", random.list(2 * x.size(), -1, 3));
      model.node("Pad", {"x", "pads"}, {"y"});
      break;
    case 7:
      model.integers("shape", {0, -1});
      model.node("Reshape", {"x", "shape"}, {"y"});
      break;
    case 8:
      model.input("other", random.dims(1, 1, 1));
      model.node("Concat", {"x", "x", "x"}, {"xxx"}, {{"axis", random(-rank, rank - 1)}});
      model.node("Add", {"xxx", "other"}, {"y"});
      break;
    case 9:
      model.integers("indices", random.list(static_cast<std::size_t>(random(1, 4)), 0, 0));
      model.node("Gather", {"x", "indices"}, {"y"}, {{"axis", random(-rank, rank - 1)}});
      break;
    case 10:
      model.node("Flatten", {"x"}, {"y"}, {{"axis", random(-rank, rank)}});
      break;
    default:
      model.node("Shape", {"x"}, {"shape"});
      model.integers("two", {2});
      model.node("Mul", {"shape", "two"}, {"double"});
      model.node("Tile", {"x", "double"}, {"y"});
  }
  model.output("y");
}

TEST(OnnxShapes, AgreeWithTheReferenceOnRandomNodes) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    OnnxModelBuilder model;
    add_random_node(model, random);
    const auto expected = inferred(model.model());
    try {
      const Graph graph =
          graph_from_onnx_bytes(model.bytes(), "model.onnx", {}, OnnxOperators::as_written);
      if (expected) compared += compare(graph, *expected, "seed " + std::to_string(seed));
    } catch (const Error& error) {
      // The reference lets windows larger than their input and empty results pass.
      if (!expected || !expected->contains("y")) continue;
      if (std::string(error.what()).find("larger than its input") != std::string::npos) continue;
      bool empty = false;
      for (const std::int64_t size : expected->at("y")) empty = empty || size <= 0;
      EXPECT_TRUE(empty) << "seed " << seed << ": " << error.what();
    }
  }
  EXPECT_GT(compared, 2000);
}

}  // namespace
}  // namespace braid
