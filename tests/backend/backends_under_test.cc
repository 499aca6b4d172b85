#include "backend/backends_under_test.h"

#include <cstdlib>
#include <iostream>
#include <string>

#include "braid/backend/backends.h"

namespace braid {
namespace {

bool is_listed(const std::string& name) {
  const char* list = std::getenv("BRAID_TEST_BACKENDS");
  return list == nullptr ||
         ("," + std::string(list) + ",").find("," + name + ",") != std::string::npos;
}

std::vector<FoundBackend> found_and_listed() {
  std::vector<FoundBackend> found;
  for (FoundBackend& each : find_backends({})) {
    if (!is_listed(each.name)) {
      each.backend.reset();
      each.missing = "not in BRAID_TEST_BACKENDS";
    }
    std::cout << each.name << ": "
              << (each.backend ? each.backend->version : "SKIPPED, " + each.missing) << "\n";
    found.push_back(std::move(each));
  }
  return found;
}

}  // namespace

const std::vector<FoundBackend>& backends_under_test() {
  static const std::vector<FoundBackend> found = found_and_listed();
  return found;
}

}  // namespace braid
