#pragma once

#include <string>

#include "braid/base/json.h"

namespace braid {

//   chart("strip", {{"axis", "error, %"}, {"columns", columns}})

/// A chart of a page: what its script (page/charts.js, which says what data each kind takes) draws
/// from `data`. No text in the data can end the script or be taken for HTML; bytes that are not
/// UTF-8 are replaced.
std::string chart(const std::string& kind, const Json& data);

}  // namespace braid
