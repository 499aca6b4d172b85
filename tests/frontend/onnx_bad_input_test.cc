#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include "braid/base/error.h"
#include "braid/frontend/model.h"
#include "braid/frontend/onnx.h"

#include "frontend/onnx_model_builder.h"

namespace braid {
namespace {

using ::testing::HasSubstr;
using Dims = std::map<std::string, std::int64_t>;

/// The message with which a model is refused; fails the test when it is not.
std::string refusal(const std::string& bytes, const Dims& dims = {}) {
  try {
    static_cast<void>(graph_from_onnx_bytes(bytes, "model.onnx", dims));
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_TRUE(message.starts_with("model.onnx: ")) << message;
    return message;
  }
  ADD_FAILURE() << "was accepted";
  return "";
}

std::string refusal(const OnnxModelBuilder& model, const Dims& dims = {}) {
  return refusal(model.bytes(), dims);
}

/// x [batch, 8] → MatMul → Relu → y.
void fill(OnnxModelBuilder& model) {
  model.input("x", {"batch", 8});
  model.weight("w", {8, 4});
  model.node("MatMul", {"x", "w"}, {"h"});
  model.node("Relu", {"h"}, {"y"});
  model.output("y");
}

TEST(OnnxBadInput, SymbolicDimensions) {
  OnnxModelBuilder model;
  fill(model);
  EXPECT_NO_THROW(graph_from_onnx_bytes(model.bytes(), "model.onnx", {{"batch", 2}}));
  EXPECT_THAT(refusal(model), HasSubstr("--dim batch=…"));
  EXPECT_THAT(refusal(model, {{"batch", 2}, {"bacth", 2}}), HasSubstr("did you mean 'batch'?"));
  EXPECT_THAT(refusal(model, {{"batch", std::int64_t{1} << 62}}), HasSubstr("does not fit"));
  OnnxModelBuilder outer;
  outer.input("a", {"n", 1});
  outer.input("b", {1, "n"});
  outer.node("MatMul", {"a", "b"}, {"ab"});
  EXPECT_THAT(refusal(outer, {{"n", std::int64_t{1} << 30}}), HasSubstr("node 'ab' (MatMul)"));
  OnnxModelBuilder fixed;
  fixed.input("x", {2, 8});
  fixed.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(refusal(fixed, {{"batch", 2}}), HasSubstr("no symbolic dimension 'batch'"));
}

TEST(OnnxBadInput, ShapesOfInputs) {
  const auto with = [](const OnnxModelBuilder::Dims& dims) {
    OnnxModelBuilder model;
    model.input("x", dims);
    model.node("Relu", {"x"}, {"y"});
    return refusal(model);
  };
  EXPECT_THAT(with({0, 8}), HasSubstr("dimension 0 has the size 0"));
  EXPECT_THAT(with({8, -1}), HasSubstr("dimension 1 has the size -1"));
  EXPECT_THAT(with({""}), HasSubstr("neither a size nor a name"));
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THAT(with({large, large}), HasSubstr("does not fit in 64 bits"));

  OnnxModelBuilder none;
  none.input("x", {2});
  none.node("Relu", {"x"}, {"y"});
  none.model()
      .mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->clear_shape();
  EXPECT_THAT(refusal(none), HasSubstr("input 'x': has no shape"));
  none.model().mutable_graph()->mutable_input(0)->mutable_type()->mutable_sequence_type();
  EXPECT_THAT(refusal(none), HasSubstr("is no tensor"));
}

TEST(OnnxBadInput, Wiring) {
  {
    OnnxModelBuilder cycle;
    cycle.input("x", {2});
    cycle.node("Add", {"x", "b"}, {"a"});
    cycle.node("Relu", {"a"}, {"b"});
    EXPECT_THAT(refusal(cycle), HasSubstr("reads 'b' before it is computed"));
  }
  {
    OnnxModelBuilder dangling;
    dangling.input("x", {2});
    dangling.node("Add", {"x", "nowhere"}, {"a"});
    EXPECT_THAT(refusal(dangling), HasSubstr("reads 'nowhere', which nothing computes"));
  }
  {
    OnnxModelBuilder twice;
    twice.input("x", {2});
    twice.node("Relu", {"x"}, {"y"});
    twice.node("Exp", {"x"}, {"y"});
    EXPECT_THAT(refusal(twice), HasSubstr("computes 'y', which is defined already"));
  }
  {
    OnnxModelBuilder overwrites;
    overwrites.input("x", {2});
    overwrites.node("Relu", {"x"}, {"x"});
    EXPECT_THAT(refusal(overwrites), HasSubstr("defined already"));
  }
  {
    OnnxModelBuilder split;
    split.input("x", {4});
    split.node("Split", {"x"}, {"y", "y"});
    EXPECT_THAT(refusal(split), HasSubstr("defined already"));
  }
  {
    OnnxModelBuilder initializers;
    fill(initializers);
    initializers.weight("w", {8, 4});
    EXPECT_THAT(refusal(initializers, {{"batch", 1}}),
                HasSubstr("initializer 'w': is there twice"));
  }
  {
    OnnxModelBuilder inputs;
    fill(inputs);
    inputs.input("x", {8, 8});
    EXPECT_THAT(refusal(inputs, {{"batch", 1}}), HasSubstr("input 'x': is there twice"));
  }
  {
    OnnxModelBuilder output;
    fill(output);
    output.output("z");
    EXPECT_THAT(refusal(output, {{"batch", 1}}), HasSubstr("output 'z': nothing computes it"));
  }
  {
    OnnxModelBuilder empty;
    empty.input("x", {2});
    empty.output("x");
    EXPECT_THAT(refusal(empty), HasSubstr("computes nothing"));
  }
}

TEST(OnnxBadInput, NodesOfOneNameAreToldApart) {
  OnnxModelBuilder model;
  model.input("x", {2});
  model.node("Relu", {"x"}, {"a"});
  model.node("Relu", {"a"}, {"b"});
  for (auto& node : *model.model().mutable_graph()->mutable_node()) node.set_name("same");
  const Graph graph =
      graph_from_onnx_bytes(model.bytes(), "model.onnx", {}, OnnxOperators::as_written);
  ASSERT_EQ(graph.operators.size(), 2U);
  EXPECT_NE(graph.operators[0].name, graph.operators[1].name);
}

TEST(OnnxBadInput, ControlFlowAndUnknownOperations) {
  const auto with = [](const std::string& operation, const std::string& domain) {
    OnnxModelBuilder model;
    model.input("x", {2});
    model.node(operation, {"x"}, {"y"});
    model.model().mutable_graph()->mutable_node(0)->set_name("n");
    model.model().mutable_graph()->mutable_node(0)->set_domain(domain);
    return refusal(model);
  };
  for (const char* operation : {"If", "Loop", "Scan"}) {
    EXPECT_THAT(with(operation, ""),
                HasSubstr("node 'n' (" + std::string(operation) + "): control flow"));
  }
  EXPECT_THAT(with("Conf", ""), HasSubstr("did you mean 'Conv'?"));
  EXPECT_THAT(with("StringNormalizer", ""), HasSubstr("docs/file-formats.md"));
  EXPECT_THAT(with("Relu", "com.example"), HasSubstr("domain 'com.example'"));

  OnnxModelBuilder function;
  function.input("x", {2});
  function.node("Own", {"x"}, {"y"});
  function.model().add_functions()->set_name("Own");
  EXPECT_THAT(refusal(function), HasSubstr("inline its functions"));
}

TEST(OnnxBadInput, ShapesThatDependOnTheRun) {
  OnnxModelBuilder model;
  model.input("x", {4, 6});
  model.input("target", {2}, 7);
  model.node("Reshape", {"x", "target"}, {"h"});
  model.node("Relu", {"h"}, {"y"});
  EXPECT_THAT(refusal(model), HasSubstr("depends on the values of input 1 ('target')"));
  model.declare("h", {2, 12});
  const Graph graph = graph_from_onnx_bytes(model.bytes(), "model.onnx", {});
  EXPECT_EQ(graph.tensors.back().dims, (std::vector<std::int64_t>{2, 12}));

  OnnxModelBuilder wrong;
  wrong.input("x", {4, 6});
  wrong.input("target", {2}, 7);
  wrong.node("Reshape", {"x", "target"}, {"h"});
  wrong.declare("h", {2, 13});
  EXPECT_THAT(refusal(wrong), HasSubstr("another number of elements"));
}

TEST(OnnxBadInput, OperandsThatDoNotFit) {
  const auto with = [](const std::string& operation, const std::vector<std::int64_t>& weight,
                       const OnnxModelBuilder::Attributes& attributes = {}) {
    OnnxModelBuilder model;
    model.input("x", {1, 4, 8, 8});
    model.weight("w", weight);
    model.node(operation, {"x", "w"}, {"y"}, attributes);
    return refusal(model);
  };
  using List = std::vector<std::int64_t>;
  EXPECT_THAT(with("MatMul", {9, 4}), HasSubstr("inner sizes"));
  EXPECT_THAT(with("Add", {3}), HasSubstr("do not fit"));
  EXPECT_THAT(with("Conv", {4, 3, 3, 3}), HasSubstr("groups"));
  EXPECT_THAT(with("Conv", {4, 4, 3}), HasSubstr("dimensions are due"));
  EXPECT_THAT(with("Conv", {4, 4, 9, 9}), HasSubstr("larger than its input"));
  EXPECT_THAT(with("Conv", {4, 4, 3, 3}, {{"strides", List{0, 1}}}), HasSubstr("strides"));
  EXPECT_THAT(with("Conv", {4, 4, 3, 3}, {{"strides", List{1}}}), HasSubstr("strides"));
  EXPECT_THAT(with("Conv", {4, 4, 3, 3}, {{"strides", 1}}), HasSubstr("wrong type"));
  EXPECT_THAT(with("Conv", {4, 4, 3, 3}, {{"group", 0}}), HasSubstr("0 groups"));
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_THAT(with("Conv", {4, 4, 3, 3}, {{"dilations", List{large, large}}}),
              HasSubstr("dilations"));
  EXPECT_THAT(with("Conv", {4, 4, 3, 3}, {{"pads", List{large, large, large, large}}}),
              HasSubstr("pads"));
  EXPECT_THAT(with("Relu", {2, 2}), HasSubstr("do not fit"));
}

TEST(OnnxBadInput, ExternalData) {
  const auto at = [](const std::string& location) {
    auto model = std::make_unique<OnnxModelBuilder>();
    fill(*model);
    onnx::TensorProto* weight = model->model().mutable_graph()->mutable_initializer(0);
    weight->set_data_location(onnx::TensorProto::EXTERNAL);
    onnx::StringStringEntryProto* entry = weight->add_external_data();
    entry->set_key("location");
    entry->set_value(location);
    return model;
  };
  // Never opened: there are no such files.
  for (const char* inside : {"weights.bin", "folder/weights.bin", "a..b", "./w", ""}) {
    EXPECT_NO_THROW(graph_from_onnx_bytes(at(inside)->bytes(), "model.onnx", {{"batch", 2}}))
        << inside;
  }
  for (const char* outside : {"/etc/passwd", "../weights.bin", "a/../../b", "..", "a/..",
                              "C:\\weights", "\\\\host\\share", "a\\..\\..\\b"}) {
    EXPECT_THAT(refusal(*at(outside), {{"batch", 2}}), HasSubstr("points outside its folder"));
  }
}

TEST(OnnxBadInput, TensorData) {
  const auto with = [](const std::function<void(onnx::TensorProto&)>& change) {
    OnnxModelBuilder model;
    fill(model);
    change(*model.model().mutable_graph()->mutable_initializer(0));
    return refusal(model, {{"batch", 2}});
  };
  EXPECT_THAT(with([](onnx::TensorProto& w) { w.set_raw_data("abc"); }),
              HasSubstr("has 3 bytes of data where its dimensions say 128"));
  EXPECT_THAT(with([](onnx::TensorProto& w) { w.add_float_data(1); }),
              HasSubstr("has 1 numbers where its dimensions say 32"));
  EXPECT_THAT(with([](onnx::TensorProto& w) { w.set_dims(0, -8); }), HasSubstr("has the size -8"));
  EXPECT_THAT(with([](onnx::TensorProto& w) { w.set_dims(0, std::int64_t{1} << 62); }),
              HasSubstr("overflows 64 bits"));
  EXPECT_THAT(with([](onnx::TensorProto& w) {
                for (int i = 0; i < 100; ++i) w.add_dims(1);
              }),
              HasSubstr("too many dimensions"));
}

TEST(OnnxBadInput, VersionsOfOperations) {
  OnnxModelBuilder newer(1000);
  fill(newer);
  EXPECT_THAT(refusal(newer, {{"batch", 1}}), HasSubstr("version 1000"));
  OnnxModelBuilder none;
  fill(none);
  none.model().clear_opset_import();
  EXPECT_THAT(refusal(none, {{"batch", 1}}), HasSubstr("opset_import"));
}

TEST(OnnxBadInput, NoModelAtAll) {
  EXPECT_THAT(refusal(""), HasSubstr("no graph"));
  EXPECT_THAT(refusal("hello, world"), HasSubstr("no ONNX model"));
  EXPECT_THAT(refusal(std::string(64, '\xff')), HasSubstr("byte"));
  EXPECT_THAT(refusal(std::string(1000, '\x3b')), HasSubstr("byte"));  // Groups in groups.
}

/// A small model with all parts of the format.
std::string varied_model() {
  OnnxModelBuilder model;
  model.input("x", {"batch", 2, 8, 8});
  model.weight("w", {4, 2, 3, 3});
  model.node(
      "Conv", {"x", "w"}, {"c"},
      {{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}, {"auto_pad", std::string("NOTSET")}});
  model.node("LeakyRelu", {"c"}, {"r"}, {{"alpha", 0.5F}});
  model.node("Shape", {"r"}, {"shape"});
  model.integers("first", {0});
  model.node("Gather", {"shape", "first"}, {"batch"});
  model.integers("rest", {-1});
  model.node("Concat", {"batch", "rest"}, {"target"}, {{"axis", 0}});
  model.node("Reshape", {"r", "target"}, {"flat"});
  model.declare("flat", {"batch", 256});
  model.scalar("half", 0.5F);
  model.node("Mul", {"flat", "half"}, {"y"});
  model.output("y");
  return model.bytes();
}

/// Reads hostile bytes: a graph that passes its check or an Error, and nothing else.
bool survives(const std::string& bytes, const Dims& dims = {{"batch", 2}}) {
  try {
    for (const auto operators : {OnnxOperators::as_written, OnnxOperators::fused}) {
      check_graph(graph_from_onnx_bytes(bytes, "model.onnx", dims, operators), "model.onnx");
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(OnnxBadInput, TruncationAtEveryByte) {
  const std::string whole = varied_model();
  ASSERT_TRUE(survives(whole));
  int accepted = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    accepted += survives(whole.substr(0, size)) ? 1 : 0;
  }
  // The version of the operations comes last but one and may be what is missing, nothing else.
  EXPECT_LE(accepted, 8);
}

TEST(OnnxBadInput, DamagedBytes) {
  const std::string whole = varied_model();
  std::mt19937_64 random(1);
  int accepted = 0;
  constexpr int rounds = 10000;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = whole;
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8)));
          break;
        case 2:
          bytes.erase(at, random() % 8);
          break;
        default:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 16));
      }
    }
    accepted += survives(bytes) ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, rounds);
}

const std::vector<std::string> kOperations{"Conv",
                                           "ConvTranspose",
                                           "MaxPool",
                                           "Reshape",
                                           "Slice",
                                           "Pad",
                                           "Tile",
                                           "Expand",
                                           "Gather",
                                           "Concat",
                                           "Split",
                                           "TopK",
                                           "Range",
                                           "OneHot",
                                           "ReduceSum",
                                           "ConstantOfShape",
                                           "Resize",
                                           "Unsqueeze",
                                           "Squeeze",
                                           "Flatten",
                                           "DepthToSpace",
                                           "GatherND",
                                           "Softmax",
                                           "LSTM",
                                           "MatMul",
                                           "Gemm",
                                           "Transpose",
                                           "LRN",
                                           "Add",
                                           "Mod",
                                           "Cast",
                                           "ArgMax",
                                           "GroupNormalization",
                                           "Einsum",
                                           "Shape",
                                           "Where"};
const std::vector<std::string> kAttributes{
    "axis",   "axes",  "perm",      "strides",    "pads",       "dilations", "kernel_shape",
    "group",  "split", "blocksize", "batch_dims", "num_groups", "size",      "output_padding",
    "starts", "ends",  "to",        "start",      "end",        "repeats"};

TEST(OnnxBadInput, DamagedNumbersInAWellFormedModel) {
  // Sizes, attributes and constants of all magnitudes, in a file that is well formed.
  std::mt19937_64 random(2);
  const auto number = [&] {
    const auto bits = random() % 64;
    const auto value = static_cast<std::int64_t>(random() >> bits);
    return random() % 4 == 0 ? -value : value;
  };
  const auto list = [&] {
    std::vector<std::int64_t> values;
    for (std::uint64_t count = random() % 5; count > 0; --count) values.push_back(number());
    return values;
  };
  int accepted = 0;
  for (int round = 0; round < 10000; ++round) {
    OnnxModelBuilder model(static_cast<std::int64_t>(1 + random() % 18));
    OnnxModelBuilder::Dims dims;
    for (std::uint64_t rank = random() % 5; rank > 0; --rank) {
      dims.emplace_back(random() % 4 == 0 ? number() : static_cast<std::int64_t>(1 + random() % 9));
    }
    model.input("x", dims);
    model.integers("a", list());
    model.integers("b", list());
    model.integer("c", number());
    model.weight("w", {8, 8, 1, 3});
    const std::vector<std::string> values{"x", "a", "b", "c", "w", ""};
    std::vector<std::string> inputs{random() % 4 == 0 ? "a" : "x"};
    for (std::uint64_t more = random() % 5; more > 0; --more) {
      inputs.push_back(values[random() % values.size()]);
    }
    OnnxModelBuilder::Attributes given;
    for (std::uint64_t more = random() % 4; more > 0; --more) {
      const std::string& name = kAttributes[random() % kAttributes.size()];
      if (random() % 2 == 0) {
        given.emplace_back(name, list());
      } else {
        given.emplace_back(name, static_cast<int>(number()));
      }
    }
    model.node(
        kOperations[random() % kOperations.size()], inputs,
        random() % 8 == 0 ? std::vector<std::string>{"y", "z"} : std::vector<std::string>{"y"},
        given);
    model.node("Identity", {"y"}, {"out"});
    accepted += survives(model.bytes(), {}) ? 1 : 0;
  }
  EXPECT_GT(accepted, 100);
}

TEST(OnnxBadInput, LongChains) {
  OnnxModelBuilder model;
  model.input("x", {4, 16});
  constexpr int nodes = 100000;
  std::string last = "x";
  for (int i = 0; i < nodes; ++i) {
    const std::string next = "v" + std::to_string(i);
    model.node("Relu", {last}, {next});
    last = next;
  }
  model.output(last);
  const Graph graph =
      graph_from_onnx_bytes(model.bytes(), "model.onnx", {}, OnnxOperators::as_written);
  EXPECT_EQ(graph.operators.size(), static_cast<std::size_t>(nodes));
}

TEST(OnnxBadInput, FilesThroughLoadModel) {
  const std::string path = ::testing::TempDir() + "braid-onnx-test.onnx";
  std::ofstream(path, std::ios::binary) << varied_model();
  EXPECT_EQ(load_model(path, {.seq_len = 0, .dims = {{"batch", 3}}}).samples, 3);
  EXPECT_THROW(static_cast<void>(load_model(path, {})), Error);
  EXPECT_THROW(static_cast<void>(load_model(path, {.seq_len = 8, .dims = {{"batch", 3}}})), Error);
  std::ofstream(path, std::ios::binary) << varied_model().substr(0, 100);
  EXPECT_THROW(static_cast<void>(load_model(path, {.seq_len = 0, .dims = {{"batch", 3}}})), Error);
  EXPECT_THROW(static_cast<void>(load_model(::testing::TempDir() + "none.onnx", {})), Error);
  EXPECT_THROW(static_cast<void>(load_model("llama-3-8b", {.seq_len = 0, .dims = {{"batch", 3}}})),
               Error);
}

}  // namespace
}  // namespace braid
