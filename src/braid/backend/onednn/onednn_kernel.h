#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "braid/backend/kernel/backend.h"
#include "braid/backend/kernel/gemm_spec.h"
#include "braid/backend/onednn/onednn_library.h"

namespace braid {

/// What is added to a primitive's result before it is written, in this order.
struct OneDnnEpilogue {
  bool adds_to_output = false;  ///< To what lies in the output.
  /// A sum or product with a tensor, where `operand` is given.
  dnnl_alg_kind_t binary = dnnl_alg_kind_undef;
  const dnnl_memory_desc_t* operand = nullptr;
  dnnl_alg_kind_t activation = dnnl_alg_kind_undef;
};

/// Builds a kernel of primitives, step by step. Buffers are numbered: what is read, what is
/// written, and what lies between. Functions throw Error where the library fails, and return
/// nothing where it does not implement what is asked.
class OneDnnKernelBuilder {
 public:
  OneDnnKernelBuilder(std::shared_ptr<const OneDnnFunctions> functions, const KernelJob& job);

  const OneDnnFunctions& functions() const { return *functions_; }
  std::size_t buffer_of(ValueId value);
  std::size_t output_buffer() const { return 0; }
  std::size_t scratch(const dnnl_memory_desc_t& form);

  /// A primitive's description; nullptr where there is none.
  dnnl_primitive_desc_t describe(const void* operation, const OneDnnEpilogue& epilogue) const;
  /// Whether the library has no better implementation than its plain loops.
  bool is_slow(dnnl_primitive_desc_t description) const;
  const dnnl_memory_desc_t& form_in(dnnl_primitive_desc_t description, dnnl_query_t what) const;

  void add(dnnl_primitive_desc_t description, const std::vector<OneDnnStep::Argument>& arguments);
  /// A buffer with the numbers of `buffer` in the layout `to`; itself where that is `from`.
  std::size_t reordered(std::size_t buffer, const dnnl_memory_desc_t& from,
                        const dnnl_memory_desc_t& to);
  void reorder(std::size_t from_buffer, const dnnl_memory_desc_t& from, std::size_t to_buffer,
               const dnnl_memory_desc_t& to);
  /// The same for a constant, now and once for all.
  std::size_t packed(ValueId constant, const dnnl_memory_desc_t& from,
                     const dnnl_memory_desc_t& to);
  /// Before all steps, the output becomes a copy of the value.
  void copies_to_output(ValueId value) { copied_ = value; }

  std::unique_ptr<ComputeKernel> kernel();

 private:
  friend class OneDnnKernel;

  struct Buffer {
    ValueId value = -1;  ///< -1: its own memory, or the output.
    TensorBytes own;
  };

  std::shared_ptr<const OneDnnFunctions> functions_;
  const KernelJob* job_;
  std::vector<Buffer> buffers_;
  std::vector<OneDnnStep> steps_;
  ValueId copied_ = -1;
};

}  // namespace braid
