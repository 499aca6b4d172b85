#include "braid/serve/cache/decode_link.h"

#include <algorithm>
#include <cassert>
#include <cstddef>

#include "braid/base/index.h"

namespace braid {

void DecodeLink::exchange(std::span<const std::vector<double>> out,
                          std::span<std::vector<double>> in) {
  assert(out.size() == at(ranks_) && in.size() == at(ranks_));
  for (std::int32_t r = 0; r < ranks_; ++r) {
    if (r != rank_) sent_bytes_ += std::ssize(out[at(r)]) * std::int64_t{sizeof(double)};
  }
  in[at(rank_)] = out[at(rank_)];
  transfer(out, in);
}

void DecodeLink::sum(std::span<double> row) {
  const auto part = [&](std::int32_t r) {
    const std::size_t first = row.size() * at(r) / at(ranks_);
    return row.subspan(first, row.size() * (at(r) + 1) / at(ranks_) - first);
  };
  const std::span<double> own = part(rank_);
  std::vector<std::vector<double>> out, in(at(ranks_), std::vector<double>(own.size()));
  for (std::int32_t r = 0; r < ranks_; ++r) out.emplace_back(part(r).begin(), part(r).end());
  exchange(out, in);
  std::fill(own.begin(), own.end(), 0.0);
  for (const std::vector<double>& each : in) {
    for (std::size_t i = 0; i < own.size(); ++i) own[i] += each[i];
  }
  for (std::int32_t r = 0; r < ranks_; ++r) {
    out[at(r)].assign(own.begin(), own.end());
    in[at(r)].resize(part(r).size());
  }
  exchange(out, in);
  for (std::int32_t r = 0; r < ranks_; ++r) {
    std::copy(in[at(r)].begin(), in[at(r)].end(), part(r).begin());
  }
}

}  // namespace braid
