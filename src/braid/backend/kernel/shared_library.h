#pragma once

#include <string>

namespace braid {

/// A shared library that is loaded while the program runs, under names that nobody else sees: two
/// libraries may define the same functions, as all that implement CBLAS do.
class SharedLibrary {
 public:
  /// The library of that file name, from where the system keeps them; `is_loaded` says whether it
  /// is there. It stays loaded until the program ends: libraries with threads cannot be unloaded.
  explicit SharedLibrary(const std::string& file_name);

  bool is_loaded() const { return handle_ != nullptr; }
  /// Why it is not loaded.
  const std::string& problem() const { return problem_; }
  /// A function by its name, also one of a library that this one needs; nullptr when not there.
  template <typename Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(address(name));
  }

 private:
  void* address(const char* name) const;

  void* handle_ = nullptr;
  std::string problem_;
};

}  // namespace braid
