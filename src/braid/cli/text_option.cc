#include "braid/cli/text_option.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "braid/base/error.h"

namespace braid {
namespace {

CLI::Option* add_filled(CLI::App& verb, const std::string& name, std::string& value,
                        const std::string& description, const Error& if_empty) {
  return verb.add_option_function<std::string>(
      name,
      [&value, if_empty](const std::string& text) {
        if (text.empty()) throw if_empty;
        value = text;
      },
      description);
}

/// "-o,--output" → "--output".
Where where(const std::string& name) { return {"", 0, name.substr(name.rfind(',') + 1)}; }

}  // namespace

CLI::Option* add_text(CLI::App& verb, const std::string& name, std::string& value,
                      const std::string& description) {
  return add_filled(verb, name, value, description,
                    Error(where(name), "its value is empty", "give one or leave the option out"));
}

CLI::Option* add_texts(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                       const std::string& description) {
  return verb
      .add_option_function<std::vector<std::string>>(
          name,
          [name, &values](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) {
              if (!text.empty()) continue;
              throw Error(where(name), "its value is empty", "give one or leave the option out");
            }
            values = texts;
          },
          description)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

CLI::Option* add_output_file(CLI::App& verb, const std::string& name, std::string& file,
                             const std::string& description) {
  return add_filled(
      verb, name, file, description,
      Error(where(name), "the file name is empty", "name a file, or - for standard output"));
}

}  // namespace braid
