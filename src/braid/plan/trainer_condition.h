#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/document.h"
#include "braid/graph/model_shape.h"

namespace braid {

/// The run that conditions of a trainer's file are about: one that is planned, or a measured one as
/// its row tells it. Texts in lower case.
struct TrainerSubject {
  /// Of what is planned: everything is of today.
  static constexpr int kNewest = std::numeric_limits<int>::max();
  static constexpr double kAnyCapability = std::numeric_limits<double>::infinity();

  std::string framework;  ///< The trainer in the words of a row, or its name here.
  std::string hardware;   ///< Chips.
  /// Of these the least; kAnyCapability: not known of any.
  double compute_capability = kAnyCapability;
  std::string precision, model;
  std::string model_type;              ///< Of its config.json.
  std::vector<std::string> model_has;  ///< Of kModelParts.
  std::int64_t kv_heads = 0;           ///< As tensor parallelism divides them; 0: not known.
  std::int64_t seq_len = 0;
  std::int64_t devices_per_node = 0;  ///< 0: not known.
  std::string says;                   ///< What else a row says.
  int version = kNewest;              ///< Year and month, 2604 of "26.04.01"; 0: not said.
  int published = kNewest;            ///< Year and month of the source, 2205; 0: not known.
};

/// What of a model conditions may ask for.
inline constexpr std::array<std::string_view, 6> kModelParts = {
    "experts", "biases", "rms_norms", "tied_embeddings", "layer_pattern", "sinks"};

/// Says of the subject what is known of its model.
void describe_model(const ModelShape& shape, TrainerSubject& subject);

/// What must hold of a run; what is empty does not count.
struct TrainerCondition {
  std::vector<std::string> framework;  ///< All of these occur in it.
  /// Of each list, one occurs, or none.
  std::vector<std::string> hardware, hardware_other_than, precision, model_says, says;
  /// The model's name begins with one of these, or with none.
  std::vector<std::string> model, model_other_than;
  std::vector<std::string> model_type;       ///< Its type begins with one of these.
  std::vector<std::string> model_has;        ///< It has all of these.
  double compute_capability_below = 0;       ///< Some chip has less.
  int version_from = 0, published_from = 0;  ///< Year and month.

  bool holds(const TrainerSubject& subject) const;
};

/// The words of a list, in lower case. Throws Error naming what is no list of words.
std::vector<std::string> words_of(const Value& value);

/// Reads the keys of a condition. Throws Error naming the key.
TrainerCondition read_condition(const Value& value);

}  // namespace braid
