#include "braid/backend/kernel/shared_library.h"

#include <dlfcn.h>

namespace braid {

SharedLibrary::SharedLibrary(const std::string& file_name)
    : handle_(::dlopen(file_name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
  if (handle_ != nullptr) return;
  const char* problem = ::dlerror();
  problem_ = problem == nullptr ? file_name + " cannot be loaded" : problem;
}

void* SharedLibrary::address(const char* name) const {
  return handle_ == nullptr ? nullptr : ::dlsym(handle_, name);
}

}  // namespace braid
