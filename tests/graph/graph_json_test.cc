#include "braid/graph/graph_json.h"

#include <map>

#include <gtest/gtest.h>

#include "braid/base/error.h"
#include "braid/graph/repeated_layers.h"

#include "graph/graph_builder.h"

namespace braid {
namespace {

Graph read_text(const std::string& text) {
  const Document document = Document::parse(text, Document::Syntax::json, "g.json");
  return graph_from_json(document.root());
}

std::string error_of(const std::string& text) {
  try {
    read_text(text);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(GraphJson, ReadsBackWhatItWrote) {
  Graph graph = gpt({});
  graph.name = "quotes \" \\ and \n control";
  find_repeated_layers(graph);
  EXPECT_EQ(read_text(to_json_text(graph)), graph);
  EXPECT_EQ(read_text(to_text(to_json(graph))), graph);
}

TEST(GraphJson, ReadsBackEveryKind) {
  GraphBuilder b;
  const TensorId x = b.input({4, 4}, Dtype::f32);
  const std::vector<OperatorKind> kinds{MatMul{2, 3, 4, 5, false, true},
                                        Attention{2, 8, 4, 16, 32, 64, 48, 5, true, false, true},
                                        Convolution{2, 8, 4, 2, 9, 16, 3, true, true},
                                        Recurrent{7, 6, 5, 4},
                                        Normalization{12, 3, true},
                                        Softmax{12, 4},
                                        Elementwise{12, 0.1, Elementwise::Keeps::mask},
                                        Embedding{100, 3, 8, 2},
                                        MoeRouter{6, 5, 4, 3},
                                        MoeExperts{6, 5, 4, 3, 2, 2, true, true},
                                        Reduction{5},
                                        DataMovement{true},
                                        Loss{4, 3},
                                        OptimizerStep{17}};
  for (const OperatorKind& kind : kinds) {
    b.add(kind, {x}, {4, 4}, Dtype::f16);
    b.graph.operators.back().split = static_cast<Split>(b.graph.operators.size() % 8);
    b.graph.operators.back().pass = static_cast<Pass>(b.graph.operators.size() % 3);
  }
  find_repeated_layers(b.graph);
  EXPECT_EQ(read_text(to_json_text(b.graph)), b.graph);
}

/// Two operators, the consumer listed first, after replacing the first occurrence of each key.
std::string small(const std::map<std::string, std::string>& changes = {}) {
  std::string text = R"({
"braid": "graph", "version": 1, "inputs": [0], "outputs": [2],
"tensors": [
{"name": "x", "dims": [4], "dtype": "bf16"},
{"name": "y", "dims": [4], "dtype": "bf16"},
{"name": "z", "dims": [4], "dtype": "bf16"}],
"operators": [
{"name": "second", "kind": "elementwise", "elements": 4, "inputs": [1], "outputs": [2]},
{"name": "first", "kind": "elementwise", "elements": 4, "inputs": [0], "outputs": [1]}]
})";
  for (const auto& [from, to] : changes) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST(GraphJson, SortsOperatorsAndGroupsThem) {
  const Graph graph = read_text(small());
  EXPECT_EQ(graph.operators[0].name, "first");
  EXPECT_EQ(graph.operators[1].name, "second");
  EXPECT_EQ(graph.layers.size(), 1U);
  EXPECT_EQ(graph.layers[0].kind, 0);
}

TEST(GraphJson, MistakesAreFoundWithTheirLine) {
  struct Case {
    std::map<std::string, std::string> changes;
    std::string expected;
  };
  const std::vector<Case> cases{
      {{{"[1], \"outputs\": [2]}", "[7], \"outputs\": [2]}"}}, "g.json:8: "},
      {{{"\"inputs\": [1]", "\"inputs\": [-1]"}}, "g.json:8: "},
      {{{"\"first\"", "\"second\""}}, "g.json:9: "},
      {{{"\"inputs\": [0], \"outputs\": [1]", "\"inputs\": [2], \"outputs\": [1]"}}, "cycle: "},
      {{{"\"outputs\": [1]}", "\"outputs\": [2]}"}}, "computed in line 8 already"},
      {{{"\"dims\": [4], \"dtype\": \"bf16\"},\n{\"name\": \"z\"",
         "\"dims\": [-4], \"dtype\": \"bf16\"},\n{\"name\": \"z\""}},
       "g.json:5: "},
      {{{"[4]", "[4000000000, 4000000000]"}}, "does not fit in 64 bits"},
      {{{"[4]", "[1e30]"}}, "g.json:4: "},
      {{{"[4]", "[0]"}}, "g.json:4: "},
      {{{"[4]", "4"}}, "an array is due"},
      {{{"bf16", "bf17"}}, "number format"},
      {{{"\"elementwise\"", "\"magic\""}}, "\"magic\" is no kind of operator"},
      {{{"\"elements\": 4", "\"elements\": 0"}}, "g.json:8: "},
      {{{"\"elements\": 4", "\"element\": 4"}}, "has no such field"},
      {{{"\"elements\": 4", "\"elements\": 4, \"layer\": 0"}}, "the graph has no layers"},
      {{{"\"elements\": 4", "\"elements\": 4, \"split\": \"diagonal\""}}, "\"diagonal\""},
      {{{"\"elements\": 4, ", ""}}, "this field is missing"},
      {{{"\"version\": 1", "\"version\": 2"}}, "version"},
      {{{"\"graph\"", "\"plan\""}}, "this is not a graph"},
      {{{"\"inputs\": [0],", "\"inputs\": [1],"}}, "computed by an operator"},
      {{{"\"outputs\": [2],", "\"outputs\": [2, 2],"}}, "twice"},
      {{{"\"version\": 1", "\"version\": 1, \"color\": 3"}}, "color"},
      {{{"\"tensors\"", "\"layers\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"tensors\""},
        {"\"inputs\": [1]", "\"layer\": 0, \"inputs\": [1]"},
        {"\"inputs\": [0], \"outputs\": [1]", "\"layer\": 1, \"inputs\": [0], \"outputs\": [1]"}},
       "later layer"},
      {{{"\"tensors\"", "\"layers\": [{\"name\": \"a\"}, {\"name\": \"b\"}], \"tensors\""},
        {"\"inputs\": [1]", "\"layer\": 0, \"inputs\": [1]"},
        {"\"inputs\": [0], \"outputs\": [1]", "\"layer\": 0, \"inputs\": [0], \"outputs\": [1]"}},
       "no operator lies in this layer"},
  };
  for (const Case& mistake : cases) {
    const std::string message = error_of(small(mistake.changes));
    EXPECT_NE(message.find(mistake.expected), std::string::npos)
        << mistake.expected << " not in: " << message;
    EXPECT_EQ(message.find("g.json"), 0U) << message;
  }
  EXPECT_NE(error_of("[]"), "");
  EXPECT_NE(error_of("{}"), "");
}

}  // namespace
}  // namespace braid
