#include "braid/cli/model_of_run.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/frontend/model.h"
#include "braid/frontend/shaped_decoder.h"
#include "braid/plan/model_shape.h"
#include "braid/serve/served_names.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

bool names_file(const std::string& name) {
  std::error_code error;
  return std::filesystem::is_regular_file(name, error);
}

/// The config.json beside a file; empty: there is none, or no such file.
std::string config_beside(const std::string& file) {
  const std::string beside = std::filesystem::path(file).replace_filename("config.json").string();
  return names_file(file) && names_file(beside) ? beside : "";
}

bool is_in_catalogue(const std::string& name) {
  const std::vector<ZooEntry> zoo = zoo_models();
  return std::any_of(zoo.begin(), zoo.end(),
                     [&](const ZooEntry& each) { return each.name == name; });
}

/// Whether two models of as many layers and the same width are others all the same.
bool differ_within(const ModelShape& a, const ModelShape& b) {
  constexpr auto kSizes = std::to_array<std::int64_t ModelShape::*>(
      {&ModelShape::heads, &ModelShape::kv_heads, &ModelShape::inner, &ModelShape::vocab,
       &ModelShape::experts, &ModelShape::top_k, &ModelShape::expert_inner});
  return std::any_of(kSizes.begin(), kSizes.end(),
                     [&](std::int64_t ModelShape::*size) { return a.*size != b.*size; });
}

}  // namespace

std::int64_t blocks_beside(const std::string& file) {
  const std::string beside = config_beside(file);
  if (beside.empty()) return 0;
  const std::optional<ModelShape> shape = model_shape(load_model(beside, {}));
  return shape ? shape->blocks : 0;
}

void name_in_catalogue(Import& run) {
  std::string& name = run.catalogue_model;
  if (name.empty()) name = served_name_of(run.model).value_or("");
  if (run.predicts_further && is_in_catalogue(name + "-mtp")) name += "-mtp";
  if (!is_in_catalogue(name)) name.clear();
  if (name.empty() || run.shape) return;
  const std::optional<ModelShape> shape = model_shape(load_model(name, {}));
  if (!shape) return;
  if (run.blocks == 0) run.blocks = shape->blocks;
  if (run.hidden == 0) run.hidden = shape->hidden;
}

std::optional<Graph> take_model(const Import& run, const std::string& from, JobOptions& options) {
  if (!options.model.empty()) return std::nullopt;
  const std::string place = names_file(from) ? from : "--from";
  const bool is_whole = run.shape && run.shape->vocab > 0;
  if (!is_whole) options.model = config_beside(from);
  if (!options.model.empty()) return std::nullopt;
  if (!run.no_shape.empty()) {
    throw Error(Where{place, 0, ""}, run.no_shape + ", of which not all sizes are read here",
                "name the model, MODEL, or put its config.json beside the file");
  }
  if (!run.shape) {
    options.model = run.catalogue_model;
    return std::nullopt;
  }
  if (run.shape->vocab == 0) {
    throw Error(Where{place, 0, ""}, "says no size of the vocabulary",
                "add --vocab-size, name the model, MODEL, or put its config.json beside the file");
  }
  options.model = place;
  Graph graph = graph_of_shape(*run.shape, {.file = place, .seq_len = options.seq_len});
  if (!run.model.empty()) graph.name = run.model;
  return graph;
}

void refuse_without_model(const Import* run, const std::string& from) {
  std::string message = "MODEL is required";
  if (run != nullptr && !run->model.empty()) {
    message += fmt::format(", as {} is for {}, whose sizes are not known here",
                           names_file(from) ? on_one_line(from) : "--from", in_quotes(run->model));
  }
  throw Error(message,
              "name one, or put its config.json beside the file of --from; see braid evaluate "
              "--help");
}

std::string model_difference(const Import& run, const Graph& model) {
  const std::optional<ModelShape> shape = model_shape(model);
  const std::int64_t blocks = run.shape ? run.shape->blocks : run.blocks;
  const std::int64_t hidden = run.shape ? run.shape->hidden : run.hidden;
  if (!shape) return "";
  const auto sizes = [](std::int64_t layers, std::int64_t width) {
    return (layers > 0 ? fmt::format("{} layers", layers) : std::string("layers")) +
           (width > 0 ? fmt::format(" of {}", width) : "");
  };
  if ((blocks > 0 && blocks != shape->blocks) || (hidden > 0 && hidden != shape->hidden)) {
    return fmt::format("the run's model has {}, MODEL has {}: MODEL is used", sizes(blocks, hidden),
                       sizes(shape->blocks, shape->hidden));
  }
  if (run.catalogue_model.empty() || run.catalogue_model == model.name) return "";
  const std::optional<ModelShape> named = model_shape(load_model(run.catalogue_model, {}));
  if (!named || !differ_within(*named, *shape)) return "";
  return fmt::format("the run's model is {}, whose sizes are not MODEL's: MODEL is used",
                     in_quotes(run.model));
}

}  // namespace braid
