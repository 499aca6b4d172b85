#pragma once

#include <string>
#include <vector>

#include "braid/serve/step_model.h"
#include "braid/system/collective.h"

namespace braid {

/// A form with one entry's figures, ready to be asked.
template <class Form>
struct KernelCall {
  const typename Form::Figures* figures = nullptr;
  typename Form::Setting setting;

  double time(const typename Form::Shape& shape) const {
    return Form::time(*figures, setting, shape).time_s;
  }
};

/// Which kernels a worker runs, found once. Throws Error as StepModel does. Not to be moved: calls
/// point into it.
class StepKernels {
 public:
  explicit StepKernels(const Worker& of);
  StepKernels(const StepKernels&) = delete;
  StepKernels& operator=(const StepKernels&) = delete;
  ~StepKernels() = default;

  /// Of one layer, added to `of`; `tokens` are all new ones of a rank.
  void add_layer(const ServedLayer& layer, const StepShape& shape, double tokens,
                 StepParts& of) const;
  /// Of the output projection, sampling, and sends between stages.
  void add_ends(const StepShape& shape, double tokens, StepParts& of) const;

  /// Among `devices` side by side; 0 for one.
  double group_time(Collective collective, double devices, double bytes) const;

  const Worker worker;

 private:
  KernelCall<GemmForm> gemm_in(const std::string& format, GemmFigures& own) const;
  void resolve_attention();
  void resolve_experts();
  void resolve_collectives();
  void check_layout() const;

  double exchange_time(double tokens, const ServedLayer& layer) const;
  void mix(const ServedLayer& layer, const StepShape& shape, double tokens, StepParts& of) const;
  void project(const ServedLayer& layer, const StepShape& shape, double tokens,
               StepParts& of) const;
  double attend(const ServedLayer& layer, const StepShape& shape) const;
  double attend_latent(const ServedLayer& layer, const StepShape& shape) const;
  double join_caches(const ServedLayer& layer, const StepShape& shape) const;
  double keep_state(const ServedLayer& layer, const StepShape& shape) const;
  void feed(const ServedLayer& layer, double tokens, StepParts& of) const;

  const Chip* chip = nullptr;
  GemmFigures attention_figures, dense_figures;  ///< Where they differ from the catalogue's.
  KernelCall<GemmForm> attention_gemm, dense_gemm, plain_gemm;
  KernelCall<PrefillForm> prefill, latent_prefill;
  KernelCall<DecodeForm> decode, latent_decode;
  std::vector<KernelCall<ExpertForm>> experts;
  std::vector<KernelCall<CollectiveForm>> all_reduces;
  KernelCall<CollectiveForm> all_gather, reduce_scatter, all_to_all;
  double memory_bytes_per_s = 0, peak = 0, cache_bytes = 2;
};

}  // namespace braid
