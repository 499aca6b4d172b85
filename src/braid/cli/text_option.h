#pragma once

#include <string>
#include <vector>

#include "braid/cli/verb.h"

namespace braid {

/// Adds an option that takes text and keeps it in `value`. An empty text (a shell variable that is
/// not set) is an Error naming the option, not an option left out.
VerbOption add_text(Verb& verb, const std::string& name, std::string& value,
                    const std::string& description);

/// The same, for an option that may be given several times.
VerbOption add_texts(Verb& verb, const std::string& name, std::vector<std::string>& values,
                     const std::string& description);

/// The same, for the name of a file to write.
VerbOption add_output_file(Verb& verb, const std::string& name, std::string& file,
                           const std::string& description);

}  // namespace braid
