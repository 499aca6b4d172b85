#include "braid/serve/launch/engine_manifest.h"

#include <algorithm>
#include <cassert>

#include "braid/trainers/exchange/shell_script.h"

namespace braid {

WorkerPods::WorkerPods(const WorkerPlan& plan, WorkerRole what, std::int64_t devices_per_node)
    : of(plan),
      role(what),
      nodes(std::max<std::int64_t>(
          1, (plan.layout.devices() + devices_per_node - 1) / devices_per_node)),
      devices(plan.layout.devices() / nodes) {}

bool WorkerPods::groups_fit_pods() const {
  const ServingLayout& layout = of.layout;
  return nodes == 1 || layout.dp == 1 || (layout.dp % nodes == 0 && layout.pp == 1);
}

std::vector<std::string> launch_arguments(const WorkerPods& pods, const LaunchNames& names,
                                          std::span<const std::string_view> program) {
  const std::string line = launch_line(pods.of, names, pods.role);
  std::vector<std::string> words = read_shell_script(line, "").commands.front();
  assert(words.size() > program.size() &&
         std::equal(program.begin(), program.end(), words.begin()));
  words.erase(words.begin(), words.begin() + std::ssize(program));
  return words;
}

}  // namespace braid
