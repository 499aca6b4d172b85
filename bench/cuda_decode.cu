// cuda_decode [RANKS]: one decode step of a layer of Llama-7B by RANKS ranks, on as many GPUs
// as there are (ranks share them where there are fewer), for batches of 32 to 512 and prefixes from
// 10,000 tokens: data, tensor and cache parallelism. First it holds the kernels against the float64
// kernel of partial_attention.h. Not run where braid is developed: no GPU is there.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "braid/serve/cache/decode_kernels.cuh"
#include "braid/serve/cache/decode_traffic.h"
#include "braid/serve/cache/partial_attention.h"

namespace braid::cuda {
namespace {

constexpr int kHidden = 4096, kHeads = 32, kInner = 11008, kSplits = 8;
constexpr int kWarmUps = 3, kRepeats = 20;

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "cuda_decode: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

void check(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "cuda_decode: cuBLAS failed with status %d\n", int(status));
  std::exit(1);
}

/// Memory of the device that is set.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count) {
    check(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<size_t>(1, count) * sizeof(T)));
    check(cudaMemset(data_, 0, count * sizeof(T)));
  }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return data_; }
  size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t count_;
};

/// What a case makes a rank hold.
struct Sizes {
  DecodeScheme scheme;
  int ranks, batch, prefix;
  bool tensor() const { return scheme == DecodeScheme::tensor; }
  bool split() const { return splits_cache(scheme); }
  int rows() const { return tensor() ? batch : batch / ranks; }  // Of GEMMs.
  int width() const { return tensor() ? ranks : 1; }             // That weights are divided by.
  int heads() const { return kHeads / width(); }
  int sequences() const { return scheme == DecodeScheme::data ? batch / ranks : batch; }
  int tokens() const { return (split() ? prefix / ranks : prefix) + 1; }
  size_t cache() const { return size_t(sequences()) * tokens() * heads() * kHeadDim; }
  double bytes() const {
    return 4.0 * cache() + 2.0 * (4.0 * kHidden + 3.0 * kInner) * kHidden / width();
  }
};

struct Rank {
  Rank(int on, const Sizes& s)
      : device(on),
        activations(size_t(s.batch) * kHidden),
        wide(size_t(s.rows()) * 2 * kInner / s.width()),
        qkv(size_t(s.rows()) * 3 * kHidden / s.width()),
        queries(size_t(s.sequences()) * s.heads() * kHeadDim),
        incoming(size_t(s.batch) * 3 * kHidden),
        weights(size_t(std::max(2 * kInner, 3 * kHidden)) * kHidden / s.width()),
        keys(s.cache()),
        values(s.cache()),
        partials(size_t(kSplits) * s.sequences() * s.heads() * kPartial),
        merged(size_t(s.sequences()) * s.heads() * kPartial),
        arrived(size_t(s.ranks) * s.rows() * s.heads() * kPartial),
        tokens(s.sequences()),
        appended(s.batch),
        parts(size_t(s.ranks) * s.batch * kHidden / s.ranks + kHidden) {
    check(cudaStreamCreate(&stream));
    check(cudaEventCreateWithFlags(&reached, cudaEventDisableTiming));
    check(cublasCreate(&blas));
    check(cublasSetStream(blas, stream));
    const std::vector<int> counts(s.sequences(), s.tokens());
    check(cudaMemcpy(tokens.get(), counts.data(), tokens.bytes(), cudaMemcpyHostToDevice));
    std::vector<int> all(s.batch);
    for (int i = 0; i < s.batch; ++i) all[i] = i % s.sequences();
    check(cudaMemcpy(appended.get(), all.data(), appended.bytes(), cudaMemcpyHostToDevice));
  }
  ~Rank() {
    cudaSetDevice(device);
    cublasDestroy(blas);
    cudaEventDestroy(reached);
    cudaStreamDestroy(stream);
  }

  int device;
  cudaStream_t stream;
  cudaEvent_t reached;
  cublasHandle_t blas;
  Buffer<__half> activations, wide, qkv, queries, incoming, weights, keys, values;
  Buffer<float> partials, merged, arrived;
  Buffer<int> tokens, appended;
  Buffer<__half> parts;
};

/// All ranks' steps of one case, enqueued by one thread.
class Case {
 public:
  Case(const Sizes& sizes, int devices) : s_(sizes) {
    for (int r = 0; r < s_.ranks; ++r) {
      check(cudaSetDevice(r % devices));
      ranks_.emplace_back(new Rank(r % devices, s_));
    }
  }
  ~Case() {
    for (Rank* rank : ranks_) delete rank;
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  double step_s() {
    for (int i = 0; i < kWarmUps; ++i) step();
    synchronise();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRepeats; ++i) step();
    synchronise();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
           kRepeats;
  }

 private:
  template <typename Work>
  void each(const Work& work) {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      check(cudaSetDevice(ranks_[r]->device));
      work(*ranks_[r], int(r));
    }
  }
  void synchronise() {
    each([](Rank& rank, int) { check(cudaStreamSynchronize(rank.stream)); });
  }
  /// No rank goes on before all have come here.
  void meet() {
    each([](Rank& rank, int) { check(cudaEventRecord(rank.reached, rank.stream)); });
    each([&](Rank& rank, int) {
      for (const Rank* other : ranks_) check(cudaStreamWaitEvent(rank.stream, other->reached, 0));
    });
  }
  /// `bytes` from each rank to each other: source and target by rank of origin and destination.
  template <typename From, typename To>
  void send_all(size_t bytes, const From& from, const To& to) {
    meet();
    each([&](Rank& source, int r) {
      for (int d = 0; d < s_.ranks; ++d) {
        check(cudaMemcpyPeerAsync(to(*ranks_[d], r), ranks_[d]->device, from(source, d),
                                  source.device, bytes, source.stream));
      }
    });
    meet();
  }
  void multiply(Rank& rank, int rows, int columns, int inner, const __half* in, __half* out) {
    const float one = 1, zero = 0;
    check(cublasGemmEx(rank.blas, CUBLAS_OP_N, CUBLAS_OP_N, columns, rows, inner, &one,
                       rank.weights.get(), CUDA_R_16F, columns, in, CUDA_R_16F, inner, &zero, out,
                       CUDA_R_16F, columns, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }
  /// A part of the activations goes to each rank, which adds what comes and sends the sum to all.
  void all_reduce() {
    const size_t part = size_t(s_.batch) * kHidden / s_.ranks;
    send_all(part * sizeof(__half),
             [&](Rank& rank, int d) { return rank.activations.get() + d * part; },
             [&](Rank& rank, int r) { return rank.parts.get() + r * part; });
    each([&](Rank& rank, int r) {
      add_parts<<<unsigned((part + 255) / 256), 256, 0, rank.stream>>>(
          rank.parts.get(), s_.ranks, part, part, rank.activations.get() + r * part);
    });
    std::vector<size_t> first;
    for (int r = 0; r < s_.ranks; ++r) first.push_back(r * part);
    meet();
    each([&](Rank& source, int r) {
      for (Rank* target : ranks_) {
        if (target == &source) continue;
        check(cudaMemcpyPeerAsync(target->activations.get() + first[r], target->device,
                                  source.activations.get() + first[r], source.device,
                                  part * sizeof(__half), source.stream));
      }
    });
    meet();
  }
  /// Queries of all sequences, or with scheme `cache` queries, keys and values, to every rank; new
  /// keys and values to their keepers.
  void gather() {
    const bool all = s_.scheme == DecodeScheme::cache;
    const size_t own = size_t(s_.rows()) * kHidden * (all ? 3 : 1);
    send_all(own * sizeof(__half), [](Rank& rank, int) { return rank.qkv.get(); },
             [&](Rank& rank, int r) { return rank.incoming.get() + r * own; });
    if (s_.scheme != DecodeScheme::cache_queries) return;
    const size_t moved = size_t(std::max(1, s_.rows() / s_.ranks)) * 2 * kHidden;
    send_all(moved * sizeof(__half), [&](Rank& rank, int) { return rank.qkv.get(); },
             [&](Rank& rank, int r) { return rank.incoming.get() + s_.batch * kHidden + r * moved; });
  }
  void attend(Rank& rank) {
    const int heads = s_.heads();
    const RankBatch batch{s_.sequences(),    heads,           heads,
                          s_.tokens(),       rank.tokens.get(), rank.keys.get(),
                          rank.values.get()};
    const int fresh = s_.split() ? s_.batch / s_.ranks : s_.sequences();
    append_tokens<<<unsigned(fresh * heads), kHeadDim, 0, rank.stream>>>(
        rank.qkv.get(), rank.qkv.get(), rank.appended.get(), batch, rank.keys.get(),
        rank.values.get());
    partial_attention<<<dim3(heads, s_.sequences(), kSplits), dim3(kLanes, kWarps), 0,
                        rank.stream>>>(s_.split() ? rank.incoming.get() : rank.queries.get(), batch,
                                       1 / std::sqrt(float(kHeadDim)), rank.partials.get());
    merge_partials<<<unsigned(s_.sequences() * heads), kHeadDim, 0, rank.stream>>>(
        rank.partials.get(), kSplits, size_t(s_.sequences()) * heads * kPartial, rank.merged.get(),
        s_.split() ? nullptr : rank.queries.get());
  }
  void return_partials() {
    const size_t own = size_t(s_.rows()) * kHeads * kPartial;
    send_all(own * sizeof(float), [&](Rank& rank, int d) { return rank.merged.get() + d * own; },
             [&](Rank& rank, int r) { return rank.arrived.get() + r * own; });
    each([&](Rank& rank, int) {
      merge_partials<<<unsigned(s_.rows() * kHeads), kHeadDim, 0, rank.stream>>>(
          rank.arrived.get(), s_.ranks, own, nullptr, rank.queries.get());
    });
  }
  void step() {
    const int rows = s_.rows(), width = s_.width();
    each([&](Rank& rank, int) {
      multiply(rank, rows, 3 * kHidden / width, kHidden, rank.activations.get(), rank.qkv.get());
    });
    if (s_.split()) gather();
    each([&](Rank& rank, int) { attend(rank); });
    if (s_.split()) return_partials();
    each([&](Rank& rank, int) {
      multiply(rank, rows, kHidden, kHidden / width, rank.queries.get(), rank.activations.get());
    });
    if (s_.tensor()) all_reduce();
    each([&](Rank& rank, int) {
      multiply(rank, rows, 2 * kInner / width, kHidden, rank.activations.get(), rank.wide.get());
      multiply(rank, rows, kHidden, kInner / width, rank.wide.get(), rank.activations.get());
    });
    if (s_.tensor()) all_reduce();
  }

  Sizes s_;
  std::vector<Rank*> ranks_;
};

/// The most that the kernels differ from the float64 kernel, for tokens dealt to three parts of which
/// one is empty.
double kernels_apart() {
  constexpr int kParts = 3, kSequences = 2, kTokens = 77, kTestHeads = 4, kTestKvHeads = 2;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1);
  const auto numbers = [&](size_t count) {
    std::vector<__half> result(count);
    for (__half& number : result) number = __float2half(normal(random));
    return result;
  };
  const AttentionHeads heads{kTestHeads, kTestKvHeads, kHeadDim, 1 / std::sqrt(double(kHeadDim)), 0};
  const auto queries = numbers(kSequences * heads.query_size());
  Buffer<__half> on_queries(queries.size()), output(queries.size());
  check(cudaMemcpy(on_queries.get(), queries.data(), on_queries.bytes(), cudaMemcpyHostToDevice));
  const size_t one = size_t(kSequences) * kTestHeads * kPartial;
  Buffer<float> partials(one * 2), all(one * kParts);
  std::vector<std::vector<double>> keys(kSequences), values(kSequences);
  for (int p = 0; p < kParts; ++p) {
    const int count = p == 1 ? 0 : kTokens - 10 * p;
    const auto k = numbers(size_t(kSequences) * kTokens * heads.key_size());
    const auto v = numbers(k.size());
    Buffer<__half> on_keys(k.size()), on_values(v.size());
    Buffer<int> tokens(kSequences);
    const std::vector<int> counts(kSequences, count);
    check(cudaMemcpy(on_keys.get(), k.data(), on_keys.bytes(), cudaMemcpyHostToDevice));
    check(cudaMemcpy(on_values.get(), v.data(), on_values.bytes(), cudaMemcpyHostToDevice));
    check(cudaMemcpy(tokens.get(), counts.data(), tokens.bytes(), cudaMemcpyHostToDevice));
    const RankBatch batch{kSequences,   kTestHeads,    kTestKvHeads,   kTokens,
                          tokens.get(), on_keys.get(), on_values.get()};
    partial_attention<<<dim3(kTestHeads, kSequences, 2), dim3(kLanes, kWarps)>>>(
        on_queries.get(), batch, float(heads.scale), partials.get());
    merge_partials<<<kSequences * kTestHeads, kHeadDim>>>(partials.get(), 2, one,
                                                          all.get() + p * one, nullptr);
    check(cudaDeviceSynchronize());
    for (int s = 0; s < kSequences; ++s) {
      const size_t first = size_t(s) * kTokens * heads.key_size();
      for (size_t i = 0; i < count * heads.key_size(); ++i) {
        keys[s].push_back(__half2float(k[first + i]));
        values[s].push_back(__half2float(v[first + i]));
      }
    }
  }
  merge_partials<<<kSequences * kTestHeads, kHeadDim>>>(all.get(), kParts, one, nullptr,
                                                        output.get());
  std::vector<__half> found(queries.size());
  check(cudaMemcpy(found.data(), output.get(), output.bytes(), cudaMemcpyDeviceToHost));
  double apart = 0;
  for (int s = 0; s < kSequences; ++s) {
    std::vector<std::int64_t> places(keys[s].size() / heads.key_size());
    for (size_t t = 0; t < places.size(); ++t) places[t] = std::int64_t(t);
    std::vector<double> query, partial(heads.partial_size()), expected(heads.query_size());
    for (size_t i = 0; i < expected.size(); ++i) {
      query.push_back(__half2float(queries[s * expected.size() + i]));
    }
    braid::partial_attention(heads, query, std::int64_t(places.size()), {keys[s], values[s], places},
                             partial);
    attention_output(heads, partial, expected);
    for (size_t i = 0; i < expected.size(); ++i) {
      apart = std::max(apart, std::abs(expected[i] - __half2float(found[s * expected.size() + i])));
    }
  }
  return apart;
}

int run(int ranks) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices));
  const double apart = kernels_apart();
  std::printf("attention differs from float64 by %.1e (allowed: 2e-3)\n", apart);
  if (!(apart <= 2e-3)) return 1;
  if (ranks == 0) ranks = devices;
  for (int a = 0; a < std::min(devices, ranks); ++a) {
    for (int b = 0; b < std::min(devices, ranks); ++b) {
      int may = 0;
      check(cudaSetDevice(a));
      if (a != b && cudaDeviceCanAccessPeer(&may, a, b) == cudaSuccess && may != 0) {
        cudaDeviceEnablePeerAccess(b, 0);
      }
    }
  }
  std::printf("%d ranks on %d GPUs, a layer of Llama-7B\n%6s %7s  %-13s %9s %12s\n", ranks,
              std::min(devices, ranks), "batch", "prefix", "scheme", "step, ms", "tokens/s");
  const int sharing = (ranks + devices - 1) / devices;
  for (const int prefix : {10000, 20000, 40000, 80000}) {
    for (const int batch : {32, 64, 128, 256, 512}) {
      for (const DecodeScheme scheme : kDecodeSchemes) {
        const Sizes sizes{scheme, ranks, batch, prefix};
        if (batch % ranks != 0 || kHeads % ranks != 0) continue;
        size_t free = 0, total = 0;
        check(cudaSetDevice(0));
        check(cudaMemGetInfo(&free, &total));
        if (sharing * sizes.bytes() > 0.85 * double(free)) continue;
        const double step_s = Case(sizes, devices).step_s();
        std::printf("%6d %7d  %-13s %9.3f %12.0f\n", batch, prefix,
                    std::string(name_of(scheme)).c_str(), 1e3 * step_s, batch / step_s);
        std::fflush(stdout);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace braid::cuda

int main(int count, char** words) {
  return braid::cuda::run(count > 1 ? std::atoi(words[1]) : 0);
}
