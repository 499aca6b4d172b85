#include "braid/serve/number_formats.h"

#include <algorithm>

#include "braid/base/document.h"
#include "braid/base/error.h"
#include "braid/kernels/number_format.h"
#include "braid/serve/serving_files.h"

namespace braid {

namespace {

struct FormatEntry {
  std::vector<std::string> types;  ///< Beginnings of model types; empty: any.
  ServingFormat format;
};

std::string checked_format(const Value& value) {
  if (!kernel_format(value.as_string())) value.fail("no format of kernels");
  return std::string(value.as_string());
}

std::vector<FormatEntry> read_formats() {
  const Document document = serving_file("formats");
  std::vector<FormatEntry> entries;
  for (const Value& value : document.root()["formats"].elements()) {
    value.expect_only({"precision", "of", "attention", "dense", "experts", "cache", "source"});
    FormatEntry entry;
    if (value["of"].exists()) {
      for (const Value& type : value["of"].elements()) entry.types.emplace_back(type.as_string());
    }
    entry.format = {std::string(value["precision"].as_string()),
                    checked_format(value["attention"]),
                    checked_format(value["dense"]),
                    checked_format(value["experts"]),
                    std::string(value["cache"].as_string()),
                    std::string(value["source"].as_string())};
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

std::vector<ServingFormat> serving_formats(const ServedModel& model) {
  static const std::vector<FormatEntry> entries = read_formats();
  std::vector<ServingFormat> result;
  for (const FormatEntry& entry : entries) {
    const bool applies = entry.types.empty() || std::any_of(entry.types.begin(), entry.types.end(),
                                                            [&](const std::string& type) {
                                                              return model.type.starts_with(type);
                                                            });
    const bool known = std::any_of(result.begin(), result.end(), [&](const ServingFormat& format) {
      return format.name == entry.format.name;
    });
    if (applies && !known) result.push_back(entry.format);
  }
  return result;
}

ServingFormat serving_format(const ServedModel& model, std::string_view precision) {
  std::string names;
  for (ServingFormat& format : serving_formats(model)) {
    if (format.name == precision) return std::move(format);
    names += (names.empty() ? "" : ", ") + format.name;
  }
  throw Error(Where{"", 0, "--precision"}, "unknown precision '" + std::string(precision) + "'",
              "known: " + names);
}

double weight_bytes(std::string_view format) { return kernel_format(format)->weight_bytes; }

}  // namespace braid
