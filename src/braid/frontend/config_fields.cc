#include "braid/frontend/config_fields.h"

namespace braid {

bool has(const Value& config, std::string_view key) {
  const Value value = config[key];
  return value.exists() && !value.is_null();
}

std::int64_t size_of(const Value& config, std::string_view key, std::int64_t most) {
  return config[key].as_int_in(1, most);
}

std::int64_t size_or(const Value& config, std::string_view key, std::int64_t otherwise,
                     std::int64_t most) {
  return has(config, key) ? config[key].as_int_in(1, most) : otherwise;
}

std::int64_t count_or(const Value& config, std::string_view key, std::int64_t otherwise,
                      std::int64_t most) {
  return has(config, key) ? config[key].as_int_in(0, most) : otherwise;
}

double share_or(const Value& config, std::string_view key, double otherwise) {
  return has(config, key) ? config[key].as_double_in(0, 1) : otherwise;
}

bool any_dropout(const Value& config, std::initializer_list<std::string_view> keys,
                 double otherwise) {
  bool any = false;
  for (const std::string_view key : keys) any = share_or(config, key, otherwise) > 0 || any;
  return any;
}

bool flag_or(const Value& config, std::string_view key, bool otherwise) {
  return has(config, key) ? config[key].as_bool() : otherwise;
}

std::vector<std::int64_t> sizes_of(const Value& config, std::string_view key,
                                   std::size_t least_count, std::int64_t most) {
  const Value list = config[key];
  std::vector<std::int64_t> sizes;
  for (const Value& size : list.elements()) sizes.push_back(size.as_int_in(1, most));
  if (sizes.size() < least_count) {
    list.fail("has " + std::to_string(sizes.size()) + " sizes",
              "give at least " + std::to_string(least_count));
  }
  if (sizes.size() > static_cast<std::size_t>(kMostLayers)) {
    list.fail("has " + std::to_string(sizes.size()) + " sizes",
              "give at most " + std::to_string(kMostLayers));
  }
  return sizes;
}

void check_layer_count(const Value& config, std::string_view key, std::int64_t layers) {
  if (layers <= kMostLayers) return;
  config[key].fail("makes " + std::to_string(layers) + " layers",
                   "give at most " + std::to_string(kMostLayers));
}

void check_divides(const Value& config, std::string_view key, std::int64_t part, std::int64_t whole,
                   std::string_view what) {
  if (whole % part == 0) return;
  config[key].fail(std::to_string(part) + " does not divide " + std::string(what) + " " +
                   std::to_string(whole));
}

void check_head_width(const Value& config, std::string_view key, std::int64_t heads,
                      std::int64_t dim) {
  if (heads * dim <= kMostWidth) return;
  config[key].fail(std::to_string(heads) + " heads of " + std::to_string(dim) + " are wider than " +
                       std::to_string(kMostWidth),
                   "use fewer or smaller heads");
}

std::int64_t sample_tokens(const ModelOptions& options, std::int64_t longest, bool learned) {
  if (options.seq_len == 0) return longest;
  if (learned && options.seq_len > longest) {
    throw Error(Where{"", 0, "--seq-len"}, std::to_string(options.seq_len) +
                                               " tokens, but the model has " +
                                               std::to_string(longest) + " learned positions");
  }
  if (options.seq_len < 0 || options.seq_len > kMostTokens) {
    throw Error(Where{"", 0, "--seq-len"},
                std::to_string(options.seq_len) + " is not a number of tokens",
                "choose 1 to " + std::to_string(kMostTokens));
  }
  return options.seq_len;
}

void refuse_seq_len(const std::string& model, const ModelOptions& options) {
  if (options.seq_len == 0) return;
  throw Error(Where{"", 0, "--seq-len"}, model + " has no sequence", "leave it out");
}

}  // namespace braid
