#include "braid/trainers/exchange/started_processes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "braid/base/error.h"
#include "braid/base/text.h"
#include "braid/trainers/exchange/given_arguments.h"

namespace braid {
namespace {

/// The number behind one of the options, "-np 8" or "--ntasks=8"; 0: there is none.
std::int64_t number_behind(std::span<const std::string> words,
                           std::initializer_list<std::string_view> options) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string_view name = std::string_view(words[i]).substr(0, equals);
    if (std::find(options.begin(), options.end(), name) == options.end()) continue;
    std::string_view value;
    if (equals != std::string::npos) {
      value = std::string_view(words[i]).substr(equals + 1);
    } else if (i + 1 < words.size()) {
      value = words[i + 1];
    }
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    constexpr std::int64_t kMostProcesses = 1 << 30;
    const bool is_whole = error == std::errc() && stop == value.data() + value.size();
    return is_whole && number > 0 && number <= kMostProcesses ? number : 0;
  }
  return 0;
}

/// Of "localhost:0,1,2,3@host2:0,1", what DeepSpeed's --include names; 0: hosts without devices.
std::int64_t devices_included(std::string_view text) {
  std::int64_t devices = 0;
  while (!text.empty()) {
    const std::string_view host = text.substr(0, text.find('@'));
    text.remove_prefix(std::min(host.size() + 1, text.size()));
    const std::size_t colon = host.find(':');
    if (colon == std::string_view::npos) return 0;
    devices += 1 + std::count(host.begin() + static_cast<std::ptrdiff_t>(colon), host.end(), ',');
  }
  return devices;
}

bool is_called(const std::string& word, std::string_view name) {
  return word == name || word.ends_with("/" + std::string(name));
}

/// Processes that mpirun or srun start themselves, one for each device.
std::int64_t ranks_started(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto options = words.subspan(i + 1);
    if (is_called(words[i], "mpirun") || is_called(words[i], "mpiexec")) {
      return number_behind(options, {"-np", "-n", "--np", "--n", "-c"});
    }
    if (!is_called(words[i], "srun")) continue;
    const std::int64_t tasks = number_behind(options, {"-n", "--ntasks"});
    if (tasks > 0) return tasks;
    return number_behind(options, {"--ntasks-per-node"}) *
           number_behind(options, {"-N", "--nodes"});
  }
  return 0;
}

}  // namespace

std::int64_t processes_started(std::span<const std::string> words, const std::string& file) {
  GivenArguments given(words, file);
  const auto count = [&](const char* name, std::int64_t otherwise) -> std::int64_t {
    if (!given.has(name)) return otherwise;
    try {
      return given.count_or(name, otherwise);
    } catch (const Error&) {  // Said by a variable or as a range.
      return 0;
    }
  };
  const bool counts_devices = given.is_given("--nproc-per-node") || given.is_given("--num-gpus");
  const bool has_launcher =
      counts_devices || std::any_of(words.begin(), words.end(), [](const auto& word) {
        return is_called(word, "torchrun") || is_called(word, "deepspeed") ||
               contains(word, "torch.distributed");
      });
  if (!has_launcher) return ranks_started(words);
  if (const auto included = given.is_given("--include") && !given.is_bare("--include")
                                ? given.text("--include")
                                : std::nullopt) {
    return devices_included(*included);
  }
  const std::int64_t of_node = count("--nproc-per-node", count("--num-gpus", 0));
  return of_node * count("--nnodes", count("--num-nodes", 1));
}

}  // namespace braid
