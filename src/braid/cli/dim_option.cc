#include "braid/cli/dim_option.h"

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/cli/count_option.h"

namespace braid {

VerbOption add_dims(Verb& verb, std::vector<std::string>& dims) {
  // One name for each --dim: what follows it may be the model.
  return verb.add_option("--dim", dims, "Size of a symbolic dimension of an ONNX file (repeatable)")
      .type_name("NAME=N")
      .one_value();
}

std::map<std::string, std::int64_t> parse_dims(const std::vector<std::string>& dims) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& dim : dims) {
    const auto equals = dim.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(Where{"", 0, "--dim"}, in_quotes(dim) + " is not NAME=N", "write --dim batch=8");
    }
    const std::int64_t size =
        parse_count("--dim", dim.substr(equals + 1), 1, std::int64_t{1} << 40);
    if (!sizes.emplace(dim.substr(0, equals), size).second) {
      throw Error(Where{"", 0, "--dim"}, in_quotes(dim.substr(0, equals)) + " is given twice");
    }
  }
  return sizes;
}

}  // namespace braid
