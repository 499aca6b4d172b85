#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "braid/base/error.h"

namespace braid {

/// Where a trainer's command line or file says what braid has an option for, such as "--tp": its
/// own name for that, and the line where it stands last. nullopt: it does not say it in this text.
/// `file` is its name. Cost: linear in the text.
std::optional<Where> where_said(std::string_view text, const std::string& file,
                                std::string_view trainer, std::string_view option);

}  // namespace braid
