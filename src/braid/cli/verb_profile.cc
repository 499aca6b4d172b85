#include <memory>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "braid/base/file.h"
#include "braid/cli/verbs.h"
#include "braid/frontend/model.h"
#include "braid/profile/estimator.h"
#include "braid/profile/profile_json.h"

namespace braid {
namespace {

struct ProfileOptions {
  std::string model, cluster, precision = "bf16", output = "-";
  std::int64_t seq_len = 0;
  std::vector<int> tp = {1, 2, 4, 8};
  int micro_batch = 1;
};

int run(const ProfileOptions& options) {
  const Precision precision = parse_precision(options.precision);
  const Graph graph = load_model(options.model, {options.seq_len, {}});
  const System system = load_system(options.cluster);
  std::vector<Execution> executions;
  for (const int tp : options.tp) {
    if (tp > system.device_count) continue;
    for (const bool sequence_parallel : {false, true}) {
      if (sequence_parallel && tp == 1) continue;
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        Execution how;
        how.micro_batch = options.micro_batch;
        how.tp = tp;
        how.sequence_parallel = sequence_parallel;
        how.recompute = recompute;
        executions.push_back(how);
      }
    }
  }
  write_file(options.output,
             to_text(to_json(estimate_profile(graph, executions, precision, system))));
  return kFound;
}

}  // namespace

Run add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* verb =
      app.add_subcommand("profile", "Estimate what each layer costs, each way of running it");
  verb->footer(
      "Example:\n  braid profile llama-3-8b --cluster dgx-h100 --tp 1,2,4,8 -o profile.json");
  verb->add_option("MODEL", options->model, "As for braid plan")->required();
  verb->add_option("--cluster", options->cluster, "As for braid plan")->required();
  verb->add_option("--seq-len", options->seq_len, "Tokens per sample")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 28));
  verb->add_option("--precision", options->precision, "bf16, fp16, fp8, tf32 or fp32");
  verb->add_option("--tp", options->tp, "Tensor parallel degrees, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--micro-batch", options->micro_batch, "Samples per micro-batch")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("-o,--output", options->output, "File to write (default: standard output)");
  return [options] { return run(*options); };
}

}  // namespace braid
