#include "braid/serve/served_names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "braid/base/document.h"
#include "braid/base/text.h"
#include "braid/frontend/model.h"
#include "braid/serve/served_model.h"
#include "braid/serve/serving_files.h"

namespace braid {
namespace {

struct NamePair {
  std::string_view begins, name;
};

constexpr std::array kSystems = {
    NamePair{"a100_sxm", "dgx-a100"}, NamePair{"h100_sxm", "dgx-h100"},
    NamePair{"h200_sxm", "dgx-h200"}, NamePair{"b200_sxm", "dgx-b200"},
    NamePair{"b300_sxm", "dgx-b300"}, NamePair{"gb200", "gb200-nvl72"},
    NamePair{"gb300", "gb300-nvl72"},
};

struct Checkpoint {
  std::string begins;
  std::string model;  ///< Empty: none that is known here.
  std::string published;
  std::int64_t positions = 0;
};

struct WeightsWord {
  std::string has, precision;
};

struct Names {
  std::vector<Checkpoint> checkpoints;
  std::vector<WeightsWord> weights;
};

Names read_names() {
  const Document document = serving_file("checkpoints");
  document.root().expect_only({"checkpoints", "weights"});
  Names names;
  for (const Value& value : document.root()["checkpoints"].elements()) {
    value.expect_only({"begins", "is", "published", "positions", "source"});
    names.checkpoints.push_back(
        {std::string(value["begins"].as_string()), std::string(value["is"].string_or("")),
         std::string(value["published"].string_or("")), value["positions"].int_or(0)});
  }
  for (const Value& value : document.root()["weights"].elements()) {
    value.expect_only({"has", "precision"});
    names.weights.push_back(
        {std::string(value["has"].as_string()), std::string(value["precision"].as_string())});
  }
  return names;
}

const Names& known_names() {
  static const Names names = read_names();
  return names;
}

/// The last part of a path, in small letters.
std::string last_part(std::string_view path) { return lowered(path.substr(path.rfind('/') + 1)); }

const Checkpoint* checkpoint_of(const std::string& name) {
  for (const Checkpoint& each : known_names().checkpoints) {
    if (name.starts_with(each.begins)) return &each;
  }
  return nullptr;
}

/// The model of "llama-3-70b-fp4": a name of ours with the numbers of its weights behind.
std::optional<std::string> quantised_own(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string::npos) return std::nullopt;
  const std::vector<WeightsWord>& words = known_names().weights;
  const bool is_quantised = std::any_of(words.begin(), words.end(), [&](const WeightsWord& word) {
    return word.has == name.substr(dash + 1);
  });
  if (!is_quantised) return std::nullopt;
  std::vector<std::string> own = served_model_names();
  for (const ZooEntry& entry : zoo_models()) own.push_back(entry.name);
  const auto found = std::find(own.begin(), own.end(), name.substr(0, dash));
  return found == own.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::optional<std::string> served_name_of(std::string_view model_path) {
  const std::string name = last_part(model_path);
  const Checkpoint* checkpoint = checkpoint_of(name);
  if (checkpoint == nullptr) return quantised_own(name);
  if (checkpoint->model.empty()) return std::nullopt;
  return checkpoint->model;
}

std::int64_t positions_of_checkpoint(std::string_view model_path) {
  const Checkpoint* checkpoint = checkpoint_of(last_part(model_path));
  return checkpoint == nullptr ? 0 : checkpoint->positions;
}

std::optional<std::string> served_cluster_of(std::string_view system) {
  for (const NamePair& pair : kSystems) {
    if (system == pair.begins) return std::string(pair.name);
  }
  return std::nullopt;
}

NamedPrecision precision_of_checkpoint(std::string_view model_path) {
  const std::string name = last_part(model_path);
  for (const WeightsWord& word : known_names().weights) {
    if (name.find(word.has) != std::string::npos) return {word.precision, "by the model's name"};
  }
  const Checkpoint* checkpoint = checkpoint_of(name);
  if (checkpoint != nullptr && !checkpoint->published.empty()) {
    return {checkpoint->published, "in which the model is published"};
  }
  return {"bf16", "as the model's name says no other"};
}

std::string served_precision_of(const ServedRow& row) {
  return row.precision.empty() ? precision_of_checkpoint(row.model).precision : row.precision;
}

}  // namespace braid
