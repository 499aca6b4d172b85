#include "braid/frontend/candle_uno.h"

#include <vector>

#include "braid/frontend/config_fields.h"
#include "braid/frontend/dense.h"

namespace braid {
namespace {

constexpr std::size_t kMostFeatures = 16384;

}  // namespace

Graph candle_uno_from_config(const Value& config, const std::string& name,
                             const ModelOptions& options) {
  refuse_seq_len(name, options);
  const Value features = config["features"];
  if (features.size() < 1 || features.size() > kMostFeatures) {
    features.fail("has " + std::to_string(features.size()) + " features",
                  "give 1 to " + std::to_string(kMostFeatures));
  }
  const std::vector<std::int64_t> tower = sizes_of(config, "feature_layers");
  check_layer_count(config, "feature_layers",
                    static_cast<std::int64_t>(features.size() * tower.size()));
  const std::vector<std::int64_t> dense = sizes_of(config, "dense_layers", 0);
  const std::int64_t labels = size_or(config, "num_labels", 1);
  const bool bias = flag_or(config, "bias", true);

  GraphBuilder builder(name, 0);
  std::vector<Features> towers;
  for (const auto& [feature, width] : features.members()) {
    const std::string branch(feature);
    const Features x = feature_input(builder, branch, width.as_int_in(1, kMostWidth));
    towers.push_back(dense_stack(builder, {branch + ".dense", bias}, x, tower));
  }
  builder.begin_layer("join");
  Features x = concatenate(builder, "join", towers);
  x = dense_stack(builder, {"dense", bias}, x, dense);
  if (!dense.empty()) builder.begin_layer("response");
  const TensorId response =
      builder.linear("response", x.tensor, {1, x.width, labels}, bias, Split::replicated);
  return builder.finish({builder.add("loss", Loss{1, labels}, {response}, {1}, Split::replicated)});
}

}  // namespace braid
