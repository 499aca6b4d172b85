#include "braid/cli/count_option.h"

#include <charconv>
#include <utility>

#include "braid/base/error.h"
#include "braid/base/text.h"

namespace braid {

std::int64_t parse_count(const std::string& option, const std::string& text, std::int64_t least,
                         std::int64_t most) {
  const Where where{"", 0, option};
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc::invalid_argument || stopped != end) {
    throw Error(where, in_quotes(text) + " is no whole number", "write digits only");
  }
  if (code == std::errc::result_out_of_range || value < least || value > most) {
    throw Error(where, text + " is out of range",
                "use " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

VerbOption add_count(Verb& verb, const std::string& name, std::int64_t least, std::int64_t most,
                     const std::string& description, std::function<void(std::int64_t)> set) {
  return verb
      .add_option(
          name,
          [name, least, most, set = std::move(set)](const std::string& text) {
            set(parse_count(name, text, least, most));
          },
          description)
      .type_name("N");
}

}  // namespace braid
