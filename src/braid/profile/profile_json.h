#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/profile/profile.h"

namespace braid {

Json to_json(const Profile& profile);
Profile profile_from_json(const Value& value);

/// Reads a profile file. Throws Error.
/// Error.
Profile read_profile(const std::string& path);

}  // namespace braid
