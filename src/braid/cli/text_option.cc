#include "braid/cli/text_option.h"

#include "braid/base/error.h"

namespace braid {
namespace {

VerbOption add_filled(Verb& verb, const std::string& name, std::string& value,
                      const std::string& description, const Error& if_empty) {
  return verb.add_option(
      name,
      [&value, if_empty](const std::string& text) {
        if (text.empty()) throw if_empty;
        value = text;
      },
      description);
}

/// "-o,--out" → "--out".
Where where(const std::string& name) { return {"", 0, name.substr(name.rfind(',') + 1)}; }

}  // namespace

VerbOption add_text(Verb& verb, const std::string& name, std::string& value,
                    const std::string& description) {
  return add_filled(verb, name, value, description,
                    Error(where(name), "its value is empty", "give one or leave the option out"));
}

VerbOption add_texts(Verb& verb, const std::string& name, std::vector<std::string>& values,
                     const std::string& description) {
  return verb.add_repeated(
      name,
      [name, &values](const std::vector<std::string>& texts) {
        for (const std::string& text : texts) {
          if (!text.empty()) continue;
          throw Error(where(name), "its value is empty", "give one or leave the option out");
        }
        values = texts;
      },
      description);
}

VerbOption add_output_file(Verb& verb, const std::string& name, std::string& file,
                           const std::string& description) {
  return add_filled(
      verb, name, file, description,
      Error(where(name), "the file name is empty", "name a file, or - for standard output"));
}

}  // namespace braid
