#include "braid/trainers/torchtitan/named_model.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

/// Models that have the flavor.
std::vector<const TorchtitanModel*> models_with(const std::string& flavor) {
  std::vector<const TorchtitanModel*> all;
  for (const TorchtitanModel& model : torchtitan_models()) {
    if (model.flavor == flavor) all.push_back(&model);
  }
  return all;
}

/// The model whose package has the recipe's file, or that the recipe shows otherwise; nullptr: it
/// cannot be told.
const TorchtitanModel* model_of_recipe(const TorchtitanSource& source, const std::string& flavor,
                                       Import& run) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(source.file, error);
  const std::string folder = error ? "" : path.parent_path().filename().string();
  if (const TorchtitanModel* own = torchtitan_model_called(folder, flavor)) return own;
  const std::vector<const TorchtitanModel*> candidates = models_with(flavor);
  const TorchtitanModel* found = candidates.size() == 1 ? candidates.front() : nullptr;
  for (const TorchtitanModel* each : candidates) {
    if (contains("_" + source.recipe, fmt::format("_{}_", each->name))) found = each;
  }
  if (found == nullptr) return nullptr;
  run.notes.push_back(
      fmt::format("model_registry({}) is imported from its own folder: taken as that of {}",
                  in_quotes(flavor), found->name));
  return found;
}

}  // namespace

const TorchtitanModel* read_torchtitan_model(const TorchtitanSource& source, GivenArguments& given,
                                             Import& run) {
  const std::string name = given.text("--model.name").value_or(source.is_recipe ? "" : "llama3");
  const std::string flavor =
      given.text("--model.flavor").value_or(source.is_recipe ? "" : "debugmodel");
  const bool says_model = !name.empty();
  const TorchtitanModel* model = nullptr;
  if (says_model) {
    model = torchtitan_model_called(name, flavor);
  } else if (!flavor.empty()) {
    model = model_of_recipe(source, flavor, run);
  }
  if (model != nullptr) {
    run.model = std::string(model->name) + "/" + std::string(model->flavor);
    run.shape = model->shape;
    // What of the trainer depends on the model goes by the family's name.
    run.shape->model_type = model->name == "llama3" ? "llama" : model->name;
    return model;
  }
  const std::string behind = given.text("--hf_transformers.model").value_or("");
  if (says_model && contains(name, "transformers") && !behind.empty()) {
    run.model = behind;
    return nullptr;
  }
  run.model = says_model && !flavor.empty() ? name + "/" + flavor : flavor;
  if (given.has("--model.flavor")) {
    const std::string what = says_model ? run.model : in_quotes(flavor);
    run.notes.push_back("the flavor " + on_one_line(what) +
                        " is not known to braid, nor what sizes it has: MODEL's are used");
  }
  return nullptr;
}

}  // namespace braid
