#include "braid/report/html_chart.h"

#include "braid/report/html_parts.h"

namespace braid {

std::string chart(const std::string& kind, const Json& data) {
  const std::string text = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  // Outside of strings, JSON has neither of these.
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '&') {
      safe += "\\u0026";
    } else {
      safe += c;
    }
  }
  return "<figure class=\"chart\" data-kind=\"" + escaped(kind) +
         "\"><script type=\"application/json\">" + safe + "</script></figure>\n";
}

}  // namespace braid
