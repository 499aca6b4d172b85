#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "braid/serve/served_model.h"

namespace braid {

/// In what numbers the parts of a model are kept and multiplied: names of kernel_format()
/// (kernels/number_format.h).
struct ServingFormat {
  std::string name;       ///< As users say it: "bf16", "fp8", "fp4", "int4".
  std::string attention;  ///< Projections of attention and states.
  std::string dense;      ///< Dense feed-forward networks, shared experts.
  std::string experts;    ///< Routed ones.
  std::string cache;      ///< Of keys and values: "bf16" or "fp8".
  std::string source;     ///< Whose checkpoint is quantised so.
};

/// How models are usually quantised to `precision`: the first entry of data/serving/formats.yaml
/// for the model's type. Throws Error naming the precisions that there are.
ServingFormat serving_format(const ServedModel& model, std::string_view precision);

/// All that there are for this model, in the file's order.
std::vector<ServingFormat> serving_formats(const ServedModel& model);

/// Bytes of an element of weights in a format of kernel_format(), scales included.
double weight_bytes(std::string_view format);

}  // namespace braid
