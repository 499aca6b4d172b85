#pragma once

#include <string>

#include "braid/base/document.h"
#include "braid/base/json.h"
#include "braid/profile/profile.h"

namespace braid {

Json to_json(const Profile& profile);
Profile profile_from_json(const Value& value);

/// Reads braid's own form or Piper's published one (recognised by `mbsInBatch` and `nodes`). Throws Error.
Profile read_profile(const std::string& path);

}  // namespace braid
