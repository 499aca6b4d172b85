#include "braid/cli/file_option.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "braid/base/error.h"

namespace braid {

CLI::Option* add_output_file(CLI::App& verb, const std::string& name, std::string& file,
                             const std::string& description) {
  return verb.add_option_function<std::string>(
      name,
      [name, &file](const std::string& text) {
        if (text.empty()) {
          throw Error(Where{"", 0, name.substr(name.rfind(',') + 1)}, "the file name is empty",
                      "name a file, or - for standard output");
        }
        file = text;
      },
      description);
}

}  // namespace braid
