#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

// Decoding attention over a part of the tokens, and the merge, as partial_attention.h has them, with
// values in half and sums in float. Heads are kHeadDim wide. Not run where braid is developed: no
// GPU is there. cuda_decode holds them against the float64 kernel before it measures.

namespace braid::cuda {

constexpr int kHeadDim = 128;
constexpr int kLanes = 32, kWarps = 4;
constexpr int kPerLane = kHeadDim / kLanes;
constexpr int kPartial = kHeadDim + 2;

/// What a rank has of a batch. Queries and new tokens are `heads` × kHeadDim for each sequence; the
/// cache is [sequence][token][kv head][kHeadDim] with room for `most_tokens` of each sequence.
struct RankBatch {
  int sequences, heads, kv_heads, most_tokens;
  const int* tokens;  ///< Of each sequence, that this rank keeps.
  const __half* keys;
  const __half* values;
};

/// One block for a head, a sequence and a part of its tokens: grid (heads, sequences, splits), block
/// (kLanes, kWarps). Writes m, s and kHeadDim numbers o to partials[split][sequence][head].
__global__ void partial_attention(const __half* queries, RankBatch batch, float scale,
                                  float* partials) {
  const int head = blockIdx.x, sequence = blockIdx.y, lane = threadIdx.x, warp = threadIdx.y;
  const int shared = batch.heads / batch.kv_heads;
  const __half* query = queries + (size_t(sequence) * batch.heads + head) * kHeadDim;
  float q[kPerLane], o[kPerLane] = {}, most = -INFINITY, sum = 0;
  for (int i = 0; i < kPerLane; ++i) q[i] = scale * __half2float(query[lane * kPerLane + i]);
  const int tokens = batch.tokens[sequence];
  for (int t = blockIdx.z * kWarps + warp; t < tokens; t += gridDim.z * kWarps) {
    const size_t at =
        ((size_t(sequence) * batch.most_tokens + t) * batch.kv_heads + head / shared) * kHeadDim +
        lane * kPerLane;
    float product = 0;
    for (int i = 0; i < kPerLane; ++i) product += q[i] * __half2float(batch.keys[at + i]);
    for (int far = kLanes / 2; far > 0; far /= 2) {
      product += __shfl_xor_sync(0xffffffff, product, far);
    }
    const float now = fmaxf(most, product);
    const float kept = expf(most - now), weight = expf(product - now);
    sum = sum * kept + weight;
    for (int i = 0; i < kPerLane; ++i) {
      o[i] = o[i] * kept + weight * __half2float(batch.values[at + i]);
    }
    most = now;
  }
  __shared__ float warps[kWarps][kPartial];
  if (lane == 0) warps[warp][0] = most, warps[warp][1] = sum;
  for (int i = 0; i < kPerLane; ++i) warps[warp][2 + lane * kPerLane + i] = o[i];
  __syncthreads();
  if (warp != 0) return;
  float all = -INFINITY, total = 0;
  for (int w = 0; w < kWarps; ++w) all = fmaxf(all, warps[w][0]);
  float* out =
      partials + ((size_t(blockIdx.z) * batch.sequences + sequence) * batch.heads + head) * kPartial;
  float mean[kPerLane] = {};
  for (int w = 0; w < kWarps && all > -INFINITY; ++w) {
    const float weight = expf(warps[w][0] - all);
    total += weight * warps[w][1];
    for (int i = 0; i < kPerLane; ++i) mean[i] += weight * warps[w][2 + lane * kPerLane + i];
  }
  if (lane == 0) out[0] = all, out[1] = total;
  for (int i = 0; i < kPerLane; ++i) {
    out[2 + lane * kPerLane + i] = total > 0 ? mean[i] / total : 0.0f;
  }
}

/// Merges `parts` results that lie `stride` floats apart: a block of kHeadDim threads for each head of
/// each sequence. `merged` gets the result, `output` its o; either may be null.
__global__ void merge_partials(const float* partials, int parts, size_t stride, float* merged,
                               __half* output) {
  const float* first = partials + size_t(blockIdx.x) * kPartial;
  float most = -INFINITY, sum = 0, o = 0;
  for (int p = 0; p < parts; ++p) most = fmaxf(most, first[p * stride]);
  for (int p = 0; p < parts && most > -INFINITY; ++p) {
    const float* part = first + p * stride;
    const float weight = part[1] * expf(part[0] - most);
    sum += weight;
    o += weight * part[2 + threadIdx.x];
  }
  o = sum > 0 ? o / sum : 0.0f;
  if (merged != nullptr) {
    float* to = merged + size_t(blockIdx.x) * kPartial;
    if (threadIdx.x == 0) to[0] = most, to[1] = sum;
    to[2 + threadIdx.x] = o;
  }
  if (output != nullptr) output[size_t(blockIdx.x) * kHeadDim + threadIdx.x] = __float2half(o);
}

/// Keeps new keys and values: a block of kHeadDim threads for each kv head of each new token. Token n
/// becomes the last of sequences[n], whose count of tokens has been raised before.
__global__ void append_tokens(const __half* new_keys, const __half* new_values,
                              const int* sequences, RankBatch batch, __half* keys, __half* values) {
  const int n = blockIdx.x / batch.kv_heads, head = blockIdx.x % batch.kv_heads;
  const int sequence = sequences[n];
  const size_t from = size_t(blockIdx.x) * kHeadDim + threadIdx.x;
  const size_t to = ((size_t(sequence) * batch.most_tokens + batch.tokens[sequence] - 1) *
                         batch.kv_heads + head) * kHeadDim + threadIdx.x;
  keys[to] = new_keys[from];
  values[to] = new_values[from];
}

/// sum[i] = Σ parts[p · stride + i].
__global__ void add_parts(const __half* parts, int count, size_t stride, size_t size, __half* sum) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  float all = 0;
  for (int p = 0; p < count; ++p) all += __half2float(parts[p * stride + i]);
  sum[i] = __float2half(all);
}

}  // namespace braid::cuda
