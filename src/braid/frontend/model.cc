#include "braid/frontend/model.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <variant>

#include "braid/base/document.h"
#include "braid/base/embedded_file.h"
#include "braid/base/suggest.h"
#include "braid/base/text.h"
#include "braid/frontend/hugging_face.h"
#include "braid/frontend/onnx.h"
#include "braid/graph/graph_json.h"

namespace braid {

std::span<const EmbeddedFile> embedded_models();

namespace {

/// A name for people: the folder of a config.json or a model.onnx, or the file's own name.
std::string name_for(const std::filesystem::path& path) {
  std::string stem = path.stem().string();
  if (stem != "config" && stem != "model") return stem;
  const std::string folder = std::filesystem::absolute(path).parent_path().filename().string();
  return folder.empty() ? stem : folder;
}

}  // namespace

Graph load_model(const std::string& source, const ModelOptions& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (source.empty()) {
    throw Error("the name of the model is empty", "give a file or a name of braid list models");
  }
  fs::path path = source;
  if (path.extension() == ".onnx" && fs::exists(path, error)) {
    if (options.seq_len > 0) {
      throw Error(Where{source, 0, "--seq-len"}, "an ONNX file has no sequence length of its own",
                  "give sizes to its symbolic dimensions: --dim NAME=N");
    }
    Graph graph = graph_from_onnx(source, options.dims);
    graph.name = name_for(path);
    return graph;
  }
  if (!options.dims.empty()) {
    throw Error(Where{"", 0, "--dim"},
                source + " has no symbolic dimension '" + options.dims.begin()->first + "'",
                "leave it out");
  }
  if (fs::is_directory(path, error)) {
    path /= "config.json";
    if (!fs::exists(path, error)) {
      throw Error(Where{source, 0, ""}, "the folder has no config.json",
                  "give a Hugging Face model folder or a file");
    }
  }
  if (fs::exists(path, error)) {
    const Document document = Document::parse_file(path.string());
    const Value root = document.root();
    if (root.is_object() && root["braid"].exists()) {
      const std::string form = root["braid"].string_or("");
      if (form == "graph") {
        Graph graph = graph_from_json(root);
        if (options.seq_len > 0 && options.seq_len != graph.seq_len) {
          throw Error(Where{path.string(), 0, "--seq-len"}, "the sizes of a graph are its own",
                      "leave it out");
        }
        if (graph.name.empty()) graph.name = name_for(path);
        return graph;
      }
      root["braid"].fail("this is a braid " + in_quotes(form) + " file, not a model",
                         "give a model of the zoo, a config.json, an ONNX file or a graph");
    }
    Graph graph = graph_from_config(root, name_for(path), options);
    check_graph(graph, path.string());
    return graph;
  }
  for (const EmbeddedFile& file : embedded_models()) {
    if (file.name != source) continue;
    const Document document =
        Document::parse(file.text, Document::Syntax::json, std::string(file.file));
    return graph_from_config(document.root(), source, options);
  }
  std::vector<std::string_view> names;
  for (const EmbeddedFile& file : embedded_models()) names.push_back(file.name);
  // Names of Hugging Face have a slash; none are looked up there.
  const bool is_elsewhere = contains(source, "/");
  throw Error("no model '" + source + "': neither a file nor a name in the zoo",
              did_you_mean(source, names) +
                  (is_elsewhere ? " Of another, give the folder with its config.json" : ""));
}

void check_computes(const Graph& graph, const std::string& source) {
  const bool views =
      std::all_of(graph.operators.begin(), graph.operators.end(), [](const Operator& op) {
        const auto* movement = std::get_if<DataMovement>(&op.kind);
        return movement != nullptr && movement->view;
      });
  if (views) {
    throw Error(Where{source, 0, ""}, "the model computes nothing: all its operators are views",
                "give one that takes time");
  }
}

std::vector<ZooEntry> zoo_models() {
  std::vector<ZooEntry> entries;
  for (const EmbeddedFile& file : embedded_models()) {
    const Document document =
        Document::parse(file.text, Document::Syntax::json, std::string(file.file));
    entries.push_back({std::string(file.name), document.root()["description"].string_or("")});
  }
  return entries;
}

}  // namespace braid
