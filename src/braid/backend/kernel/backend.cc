#include "braid/backend/kernel/backend.h"

#include <algorithm>

namespace braid {

ImageLayout layout_of(const KernelJob& job, ValueId input, const KernelLayouts& layouts) {
  const ImageLayout layout = input == job.leaves.front() ? layouts.reads : layouts.writes;
  return can_lie(job.form(input), layout) ? layout : ImageLayout::plain;
}

bool can_lie(const KernelJob& job, const KernelLayouts& layouts) {
  if (layouts == KernelLayouts{}) return true;
  const ValueId first = job.leaves.front();
  const bool reads_first_twice = std::count(job.leaves.begin(), job.leaves.end(), first) > 1;
  return can_lie(job.form(first), layouts.reads) && can_lie(job.output_form(), layouts.writes) &&
         (layouts.reads == layouts.writes || !reads_first_twice);
}

}  // namespace braid
