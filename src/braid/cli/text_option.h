#pragma once

#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace braid {

/// Adds an option that takes text and keeps it in `value`. An empty text (a shell variable that is
/// not set) is an Error naming the option, not an option left out.
CLI::Option* add_text(CLI::App& verb, const std::string& name, std::string& value,
                      const std::string& description);

/// The same, for an option that may be given several times.
CLI::Option* add_texts(CLI::App& verb, const std::string& name, std::vector<std::string>& values,
                       const std::string& description);

/// The same, for the name of a file to write.
CLI::Option* add_output_file(CLI::App& verb, const std::string& name, std::string& file,
                             const std::string& description);

}  // namespace braid
