#include "braid/frontend/config_fields.h"

#include <string>

namespace braid {

std::int64_t size_of(const Value& config, std::string_view key, std::int64_t most) {
  return config[key].as_int_in(1, most);
}

std::int64_t size_or(const Value& config, std::string_view key, std::int64_t otherwise,
                     std::int64_t most) {
  const Value value = config[key];
  return value.exists() && !value.is_null() ? value.as_int_in(1, most) : otherwise;
}

bool flag_or(const Value& config, std::string_view key, bool otherwise) {
  const Value value = config[key];
  return value.exists() && !value.is_null() ? value.as_bool() : otherwise;
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

}  // namespace braid
