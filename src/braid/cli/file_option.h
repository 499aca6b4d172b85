#pragma once

#include <string>

#include <CLI/App.hpp>

namespace braid {

/// Adds an option that names a file to write and keeps it in `file`. An empty name (a shell
/// variable that is not set) is an Error naming the option, not an option left out.
CLI::Option* add_output_file(CLI::App& verb, const std::string& name, std::string& file,
                             const std::string& description);

}  // namespace braid
