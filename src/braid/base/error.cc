#include "braid/base/error.h"

namespace braid {
namespace {

std::string single_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::string compose(const Where& where, const std::string& message, const std::string& remedy) {
  std::string text;
  if (!where.file.empty()) {
    text += where.file;
    if (where.line > 0) text += ":" + std::to_string(where.line);
    text += ": ";
  } else if (where.line > 0) {
    text += "line " + std::to_string(where.line) + ": ";
  }
  if (!where.key.empty()) text += where.key + ": ";
  text += message;
  if (!remedy.empty()) text += "; " + remedy;
  return single_line(std::move(text));
}

}  // namespace

Error::Error(const Where& where, const std::string& message, const std::string& remedy)
    : std::runtime_error(compose(where, message, remedy)), where_(where) {}

}  // namespace braid
