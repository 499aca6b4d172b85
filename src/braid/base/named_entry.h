#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/base/document.h"
#include "braid/base/embedded_file.h"

namespace braid {

/// Document of the catalogue entry of that name among `files`, or of a user's file. `named` is
/// where the name stands; a relative path is looked up beside that file before the working
/// directory. `what` is the kind of entry, such as "chip". Throws Error when there is neither, for
/// files of braid's own forms and for what braid show prints.
///
///     Document document = open_entry("h100-sxm", {}, embedded_chips(), "chip");
Document open_entry(const std::string& name, const Where& named,
                    std::span<const EmbeddedFile> files, const std::string& what);

std::vector<std::string> names_of(std::span<const EmbeddedFile> files);

/// Whether there is such a file or folder.
bool file_exists(const std::string& path);

}  // namespace braid
