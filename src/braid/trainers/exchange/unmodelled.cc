#include "braid/trainers/exchange/unmodelled.h"

#include <optional>
#include <string>

#include "braid/base/text.h"
#include "braid/trainers/exchange/export.h"

namespace braid {
namespace {

bool is_usual(const std::string& value, std::string_view usual) {
  if (contains(usual, "|" + value + "|")) return true;
  const std::optional<double> number = finite_double(value);
  for (std::size_t begin = 1; number && begin < usual.size();) {
    const std::size_t end = usual.find('|', begin);
    if (finite_double(std::string(usual.substr(begin, end - begin))) == number) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

void note_unmodelled(GivenArguments& given, std::span<const Unmodelled> all, Import& run) {
  for (const Unmodelled& each : all) {
    const bool is_argument = each.name.starts_with("--");
    const std::string name = (is_argument ? "" : "--") + std::string(each.name);
    if (!given.has(name)) continue;
    const std::string value = given.is_bare(name) ? "" : given.text(name).value_or("");
    if (is_usual(lowered(value), each.usual)) continue;
    run.notes.push_back(on_one_line(std::string(each.name) + (value.empty() ? "" : " ") + value) +
                        ": here " + std::string(each.here));
  }
}

}  // namespace braid
