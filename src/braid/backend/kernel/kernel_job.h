#pragma once

#include <string>
#include <vector>

#include "braid/backend/kernel/tensor_form.h"
#include "braid/backend/pattern/pattern.h"
#include "braid/program/program.h"

namespace braid {

/// What a kernel is made for: some nodes of a program as a program of their own, with the forms of
/// all of its tensors. Its inputs are what the nodes read at run time, its constants their weights,
/// its one output is the root's.
struct KernelJob {
  Program region;
  std::vector<TensorForm> forms;  ///< By value of the region.
  std::vector<ValueId> leaves;    ///< By leaf of the pattern; a value read twice is there twice.

  const TensorForm& form(ValueId value) const { return forms[static_cast<std::size_t>(value)]; }
  const TensorForm& leaf_form(std::size_t leaf) const { return form(leaves[leaf]); }
  /// The numbers of a leaf; nullptr where it is fed at run time.
  const DenseTensor* leaf_constant(std::size_t leaf) const {
    return region.values[static_cast<std::size_t>(leaves[leaf])].constant.get();
  }
  const TensorForm& output_form() const { return form(region.outputs.front()); }
};

/// The job of a match in a program whose tensors have `forms`, by value. Cost: the nodes matched.
KernelJob kernel_job(const Program& program, const ProgramOpGraph& graph, const PatternMatch& match,
                     const std::vector<TensorForm>& forms);

/// What some nodes of a program read that is fed or computed by others, and what of theirs others
/// read or the program puts out; each once, in the order of the nodes.
struct RegionBorder {
  std::vector<ValueId> reads, writes;
};
RegionBorder region_border(const Program& program, const std::vector<NodeId>& nodes);

/// The job of any nodes, ascending, with any number of outputs: those of region_border(). Its
/// leaves are all that is read of others, constants too. Cost: the nodes of the program.
KernelJob region_job(const Program& program, const std::vector<NodeId>& nodes,
                     const std::vector<TensorForm>& forms);

/// What kernels for a job depend on, as a key: operations with their attributes and how they are
/// wired, and the types and shapes of all that is read. Equal for equal jobs in any program.
std::string job_text(const KernelJob& job);

}  // namespace braid
