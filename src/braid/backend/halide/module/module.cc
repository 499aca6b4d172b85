#include <cstdlib>
#include <exception>
#include <string>

#include "braid/backend/halide/halide_module.h"
#include "braid/backend/halide/module/halide_network.h"

namespace braid {
namespace {

class LoadedModule : public HalideModule {
 public:
  explicit LoadedModule(int threads) {
    machine_.target = Halide::get_jit_target_from_environment();
    machine_.vector = machine_.target.natural_vector_size<float>();
    machine_.threads = threads;
  }

  std::string version() const override {
    return "14";  // The library's name has it, and it has no other way to tell.
  }
  bool knows(const std::string& operation) const override { return is_halide_operation(operation); }
  bool computes(const KernelJob& job) const override { return halide_computes(job); }

  std::vector<HalideTile> tiles() const override {
    // 32 registers of 512 bits, or 16: sums, the vectors of one row of B, and a number of A.
    if (machine_.vector >= 16) return {{1, 14}, {2, 8}, {2, 12}, {4, 6}};
    return {{1, 8}, {2, 4}, {2, 6}, {3, 4}};
  }

  /// Wide tiles for wide rows, and one vector where there are no more.
  bool suits(const HalideTile& tile, const Shape& result) const override {
    const std::int64_t vectors = result.back() / machine_.vector;
    return tile.vectors == 1 ? vectors < 2 : tile.vectors <= vectors;
  }

  std::unique_ptr<ComputeKernel> kernel(const KernelJob& job,
                                        const HalideTile& tile) const override {
    try {
      return halide_kernel(job, machine_, tile);
    } catch (const std::exception&) {
      return nullptr;
    }
  }

 private:
  HalideMachine machine_;
};

}  // namespace
}  // namespace braid

extern "C" const braid::HalideModule* braid_halide_module(int threads);
extern "C" const braid::HalideModule* braid_halide_module(int threads) {
  // Read when its threads first start; there is no function for it here.
  ::setenv("HL_NUM_THREADS", std::to_string(threads).c_str(), 1);
  static const braid::LoadedModule module(threads);
  return &module;
}
