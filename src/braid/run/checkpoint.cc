#include "braid/run/checkpoint.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "braid/base/error.h"
#include "braid/base/index.h"
#include "braid/base/text.h"
#include "braid/run/run_job.h"

namespace braid {
namespace {

constexpr std::array<const char*, 3> kPrefixes = {"", "exp_avg.", "exp_avg_sq."};

std::string name_of_row(const LayeredProgram& model, ValueId value, std::size_t row) {
  return kPrefixes.at(row) + model.program.values[at(value)].name;
}

Shape shape_of(const LayeredProgram& model, ValueId value) {
  const auto& missing = model.program.missing;
  const auto found = std::find_if(missing.begin(), missing.end(),
                                  [&](const MissingWeight& each) { return each.value == value; });
  return found == missing.end() ? Shape() : found->shape;
}

/// Places of a piece's numbers in its whole parameter, in their order.
std::vector<std::int64_t> places_of(const ParameterPiece& piece, const Shape& shape) {
  std::vector<std::int64_t> places;
  const std::span<const std::int64_t> sizes = shape;
  const std::size_t axis = piece.axis < 0 ? 0 : at(piece.axis);
  const std::int64_t before = element_count(sizes.first(axis));
  const std::int64_t size = element_count(sizes.subspan(axis));
  const std::int64_t after = piece.axis < 0 ? 1 : element_count(sizes.subspan(axis + 1));
  // Block after block, as rows of groups have them.
  const std::vector<Interval> all{{0, size}};
  for (const Interval& each : piece.axis < 0 ? all : piece.held) {
    for (std::int64_t b = 0; b < before; ++b) {
      for (std::int64_t i = each.first * after; i < each.last * after; ++i) {
        places.push_back(b * size + i);
      }
    }
  }
  return places;
}

/// A tensor of as many dimensions that a piece's numbers fill.
DenseTensor cut_out(const DenseTensor& row, std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = first; i < first + count; ++i) places.push_back(i);
  return taken(row, {count}, places);
}

std::string number_text(double number) { return fmt::format("{:.17g}", number); }

template <typename Number>
Number number_of(const std::map<std::string, std::string>& metadata, const std::string& key,
                 const std::string& file) {
  const auto found = metadata.find(key);
  Number number{};
  if (found != metadata.end()) {
    const std::string& text = found->second;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code == std::errc() && end == text.data() + text.size()) return number;
  }
  throw Error(file + " is no checkpoint of braid run: its metadata have no number for " + key);
}

}  // namespace

std::size_t checkpoint_rows(OptimizerRule rule) { return rule == OptimizerRule::adam ? 3 : 1; }

void write_checkpoint(const std::string& file, const Checkpoint& checkpoint) {
  const TrainingSettings& settings = checkpoint.settings;
  write_safetensors(file, checkpoint.tensors,
                    {{"model", checkpoint.model},
                     {"iterations", std::to_string(checkpoint.iterations)},
                     {"seed", std::to_string(settings.seed)},
                     {"learning_rate", number_text(settings.learning_rate)},
                     {"optimizer", settings.optimizer == OptimizerRule::adam ? "adam" : "sgd"},
                     {"type", std::string(name_of(settings.type))}});
}

Checkpoint read_checkpoint(const std::string& file) {
  std::map<std::string, std::string> metadata;
  Checkpoint checkpoint;
  checkpoint.tensors = read_safetensors(file, &metadata);
  checkpoint.model = metadata["model"];
  checkpoint.iterations = number_of<std::int64_t>(metadata, "iterations", file);
  checkpoint.settings.seed = number_of<std::uint64_t>(metadata, "seed", file);
  checkpoint.settings.learning_rate = number_of<double>(metadata, "learning_rate", file);
  if (metadata["optimizer"] == "adam") checkpoint.settings.optimizer = OptimizerRule::adam;
  checkpoint.settings.type = training_type(metadata["type"]);
  if (checkpoint.iterations < 0) throw Error(file + " has done a negative number of iterations");
  return checkpoint;
}

void check_resumable(const Checkpoint& checkpoint, const std::string& file,
                     const std::string& model, const TrainingSettings& settings) {
  const TrainingSettings& of = checkpoint.settings;
  const auto refuse = [&](const std::string& what, const std::string& option) {
    throw Error(fmt::format("{} is of a run with {}", file, what), "give " + option);
  };
  if (checkpoint.model != model) {
    throw Error(
        fmt::format("{} is of the model {}, and the plan of {}", file, checkpoint.model, model),
        "resume with a plan for the same model");
  }
  if (of.optimizer != settings.optimizer) {
    const std::string name = of.optimizer == OptimizerRule::adam ? "adam" : "sgd";
    refuse("the optimizer " + name, "--optimizer " + name);
  }
  const std::string type = of.type == ElementType::f64   ? "float64"
                           : of.type == ElementType::f32 ? "float32"
                                                         : "bf16";
  if (of.type != settings.type) refuse("numbers of " + type, "--dtype " + type);
  if (of.seed != settings.seed) {
    refuse(fmt::format("the seed {}", of.seed), fmt::format("--seed {}", of.seed));
  }
  if (of.learning_rate != settings.learning_rate) {
    refuse(fmt::format("the learning rate {}", of.learning_rate),
           fmt::format("--lr {}", of.learning_rate));
  }
}

std::vector<NamedTensor> empty_tensors(const LayeredProgram& model, ElementType type,
                                       OptimizerRule rule) {
  const ElementType kept = type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  std::vector<NamedTensor> tensors;
  for (std::size_t row = 0; row < checkpoint_rows(rule); ++row) {
    for (const ValueId value : model.parameters) {
      tensors.push_back(
          {name_of_row(model, value, row), DenseTensor(kept, shape_of(model, value))});
    }
  }
  return tensors;
}

void put_row(std::vector<NamedTensor>& tensors, const LayeredProgram& model,
             const ParameterGroup& group, std::size_t row, const DenseTensor& numbers) {
  std::int64_t first = 0;
  for (const ParameterPiece& piece : group.pieces) {
    const auto parameter =
        std::lower_bound(model.parameters.begin(), model.parameters.end(), piece.value) -
        model.parameters.begin();
    DenseTensor& whole = tensors[row * model.parameters.size() + at(parameter)].tensor;
    const std::vector<std::int64_t> places = places_of(piece, whole.shape);
    put(whole, cut_out(numbers, first, std::ssize(places)), places);
    first += std::ssize(places);
  }
}

DenseTensor row_of(const Checkpoint& checkpoint, const LayeredProgram& model,
                   const ParameterGroup& group, std::size_t row) {
  const ElementType kept =
      checkpoint.settings.type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  DenseTensor result(kept, {row_length(model, group)});
  std::int64_t first = 0;
  for (const ParameterPiece& piece : group.pieces) {
    const std::string name = name_of_row(model, piece.value, row);
    const auto found = std::find_if(checkpoint.tensors.begin(), checkpoint.tensors.end(),
                                    [&](const NamedTensor& each) { return each.name == name; });
    const Shape shape = shape_of(model, piece.value);
    if (found == checkpoint.tensors.end() || found->tensor.shape != shape ||
        found->tensor.type != kept) {
      throw Error("the checkpoint has no " + in_quotes(name) + " of the shape " +
                  shape_text(shape));
    }
    const std::vector<std::int64_t> places = places_of(piece, shape);
    std::vector<std::int64_t> targets(places.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
      targets[i] = first + static_cast<std::int64_t>(i);
    }
    put(result, taken(found->tensor, {std::ssize(places)}, places), targets);
    first += std::ssize(places);
  }
  return result;
}

std::int64_t row_length(const LayeredProgram& model, const ParameterGroup& group) {
  std::int64_t length = 0;
  for (const ParameterPiece& piece : group.pieces) {
    const Shape shape = shape_of(model, piece.value);
    const std::int64_t all = element_count(shape);
    length += piece.axis < 0 ? all : all / shape[at(piece.axis)] * total_length(piece.held);
  }
  const auto ranks = std::ssize(group.ranks);
  return (length + ranks - 1) / ranks * ranks;
}

}  // namespace braid
