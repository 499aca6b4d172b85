#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>

#include "braid/base/error.h"
#include "braid/base/file.h"
#include "braid/base/loaded_blas.h"
#include "braid/run/dry_run.h"
#include "braid/run/rank_engine.h"
#include "braid/run/rank_record.h"
#include "braid/run/run_job.h"
#include "braid/run/safetensors.h"
#include "braid/run/torch/gloo_link.h"
#include "braid/run/torch/torch_measure.h"
#include "braid/run/torch/torch_training.h"
#include "braid/run/trained_times.h"
#include "braid/run/training_state.h"
#include "braid/run/whole_weights.h"

// braid-run JOB RANK: one rank of a job; with RANK "whole" the model by one process.
// braid-run measure FOLDER RANK: one process of a measurement (trained_times.h). Both say on
// standard output, a line each: "iteration N LOSS" and "warning: …" (rank 0), and "failed: …" or
// "lost: …" before it ends with another status than 0.

namespace braid {
namespace {

double peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

/// Keeps memory that is freed, as the caching allocators of GPUs do. The system clears each page
/// that it hands out anew: of an iteration of GPT-2 that took a fifth (docs/notes/running.md).
void keep_freed_memory() {
  constexpr int whole_step_bytes = 64 << 20;
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, whole_step_bytes);
}

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

void warn_of_blas() {
  const LoadedBlas blas = loaded_blas();
  if (!blas.is_reference) return;
  say("warning: libtorch computes GEMMs by the reference BLAS (" + blas.name +
      "), which uses no vector instructions; install OpenBLAS (Debian: libopenblas0-pthread)");
}

std::string name_of_parameter(const LayeredProgram& model, ValueId value) {
  return model.program.values[static_cast<std::size_t>(value)].name;
}

void train_whole_model(const RunJob& job) {
  const LoadedRun run = load_run(job);
  TrainedModel trained = train_whole(run.staged.model, run.staged.batch, job.settings);
  std::vector<NamedTensor> weights;
  for (std::size_t p = 0; p < trained.parameters.size(); ++p) {
    weights.push_back({name_of_parameter(run.staged.model, run.staged.model.parameters[p]),
                       std::move(trained.parameters[p])});
  }
  write_safetensors(whole_weights_file(job), weights);
  write_file(whole_record_file(job),
             rank_record_text({std::move(trained.losses), {}, peak_memory_bytes()}));
}

MeetingPoint meeting_point(const RunJob& job) {
  const char* address = std::getenv("MASTER_ADDR");
  const char* port = std::getenv("MASTER_PORT");
  if (address != nullptr && port != nullptr) return {"", address, std::atoi(port)};
  return {job.folder + "/meeting", "", 0};
}

/// The pieces of groups of which the rank is the first, by piece_name(), after training.
std::vector<NamedTensor> pieces_of(const std::vector<ParameterGroup>& groups, std::int32_t rank,
                                   const StageMath& math) {
  std::vector<NamedTensor> pieces;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].ranks.front() != rank) continue;
    for (std::size_t p = 0; p < groups[g].pieces.size(); ++p) {
      pieces.push_back({piece_name(g, p), math.piece(g, p)});
    }
  }
  return pieces;
}

/// Writes the checkpoint where one is due after so many iterations of all runs.
void keep_checkpoint(const RunJob& job, const RunningRank& own, const std::string& model,
                     std::int64_t iterations, bool is_last) {
  const bool is_due = job.checkpoint_every > 0 && iterations % job.checkpoint_every == 0;
  if (job.checkpoint.empty() || !(is_last || is_due)) return;
  const auto checkpoint = collected(own, {model, iterations, job.settings, {}});
  if (checkpoint) write_checkpoint(job.checkpoint, *checkpoint);
}

/// Iterations that were done before.
std::int64_t resumed(const RunJob& job, const RunningRank& own, const std::string& model) {
  if (job.resume.empty()) return 0;
  const Checkpoint checkpoint = read_checkpoint(job.resume);
  check_resumable(checkpoint, job.resume, model, job.settings);
  restore(own, checkpoint);
  return checkpoint.iterations;
}

void train_rank(const RunJob& job, std::int32_t rank) {
  const LoadedRun run = load_run(job);
  const std::vector<ParameterGroup> groups = parameter_groups(run.staged, run.ordered.plan);
  const auto ranks = instructions_of(run.staged, run.ordered.order, groups);
  const std::unique_ptr<RankLink> link =
      gloo_link(meeting_point(job), rank, static_cast<std::int32_t>(ranks.size()),
                meeting_ranks(run.staged, groups), job.timeout_s);
  const std::unique_ptr<StageMath> math =
      torch_stage_math(run.staged, groups, rank, job.settings, *link);
  RankEngine engine(rank, run.staged, groups, ranks[static_cast<std::size_t>(rank)], *math, *link);
  const RunningRank own{rank, run.staged, groups, *math, *link};
  const std::string& model = run.ordered.plan.model;
  const std::int64_t first = resumed(job, own, model);
  RankRecord record;
  for (std::int64_t i = first; i < first + job.settings.iterations; ++i) {
    RankIteration done = engine.run_iteration(i);
    record.losses.push_back(done.loss);
    if (rank == 0) {
      char line[64];
      std::snprintf(line, sizeof line, "iteration %lld %.17g", static_cast<long long>(i),
                    done.loss);
      say(line);
    }
    record.iterations.push_back(std::move(done));
    if (std::ssize(record.iterations) > kRecordedIterations) {
      record.iterations.erase(record.iterations.begin());
    }
    keep_checkpoint(job, own, model, i + 1, i + 1 == first + job.settings.iterations);
  }
  engine.gather_all();
  record.peak_memory_bytes = peak_memory_bytes();
  write_safetensors(rank_weights_file(job, rank), pieces_of(groups, rank, *math));
  write_file(rank_record_file(job, rank), rank_record_text(record));
  // Nobody leaves while others may still write to it.
  link->sum_of_all(0);
}

/// One process of those that measure layers and messages for a folder's job.
void measure_machine(const std::string& folder, std::int32_t rank) {
  const TrainedTimesJob job = read_trained_times_job(trained_times_job_file(folder));
  set_torch_threads(static_cast<int>(job.threads));
  if (rank == 0) warn_of_blas();
  std::vector<std::vector<std::int32_t>> all(1);
  for (std::int32_t r = 0; r < job.processes; ++r) all.front().push_back(r);
  const std::unique_ptr<RankLink> link =
      gloo_link({folder + "/meeting", "", 0}, rank, static_cast<std::int32_t>(job.processes), all,
                job.timeout_s);
  TrainedTimes times;
  times.blas = loaded_blas().name;
  for (std::size_t g = 0; g < job.graphs.size(); ++g) {
    // All devices are at work while one is measured.
    link->sum_of_all(0);
    if (rank >= job.devices) continue;
    times.graphs.push_back(
        measured_layer(job.graphs[g], job.batches[g], job.samples, job.cache_bytes));
  }
  measure_messages(*link, rank, job, times);
  write_file(trained_times_file(folder, rank), trained_times_text(times));
  link->sum_of_all(0);
}

int run_worker(int count, char** words) {
  keep_freed_memory();
  try {
    if (count == 4 && std::string(words[1]) == "measure") {
      measure_machine(words[2], std::atoi(words[3]));
      return 0;
    }
    if (count != 3) throw Error("braid-run is started by braid run");
    const RunJob job = read_run_job(words[1]);
    const std::string rank = words[2];
    set_torch_threads(job.threads);
    if (rank == "0") warn_of_blas();
    if (rank == "whole") {
      train_whole_model(job);
    } else {
      train_rank(job, std::atoi(rank.c_str()));
    }
    return 0;
  } catch (const LostPeer& error) {
    say("lost: " + std::string(error.what()));
  } catch (const std::exception& error) {
    const std::string text = error.what();
    say("failed: " + text.substr(0, text.find('\n')));
  }
  return 1;
}

}  // namespace
}  // namespace braid

int main(int count, char** words) {
  const int status = braid::run_worker(count, words);
  // Gloo's threads may be waiting for a rank that is gone: nothing here is left to be tidied up.
  std::fflush(stdout);
  std::_Exit(status);
}
