#include "braid/run/torch/gloo_link.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <torch/torch.h>

#include "braid/base/index.h"
#include "braid/run/torch/torch_tensor.h"

namespace braid {
namespace {

using GlooGroup = c10::intrusive_ptr<c10d::ProcessGroupGloo>;

/// Numbers of a row that is summed by a ring as a whole.
constexpr std::int64_t kMostInRing = std::int64_t{1} << 22;
/// Numbers of a part that go round at once: what a rank adds is then still in its cache.
constexpr std::int64_t kPiece = std::int64_t{1} << 19;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Says of what libtorch throws whom it was about.
template <typename Function>
auto told(const std::string& about, const Function& function) {
  try {
    return function();
  } catch (const std::exception& error) {
    throw LostPeer(about + ": " + first_line(error.what()));
  }
}

c10::intrusive_ptr<c10d::Store> store_at(const MeetingPoint& place, std::int32_t rank,
                                         std::int32_t ranks, std::chrono::milliseconds timeout) {
  c10::intrusive_ptr<c10d::Store> store;
  if (!place.file.empty()) {
    store = c10::make_intrusive<c10d::FileStore>(place.file, ranks);
  } else {
    c10d::TCPStoreOptions options;
    options.port = static_cast<std::uint16_t>(place.port);
    options.isServer = rank == 0;
    options.numWorkers = static_cast<std::size_t>(ranks);
    options.timeout = timeout;
    store = c10::make_intrusive<c10d::TCPStore>(place.address, options);
  }
  store->setTimeout(timeout);
  return store;
}

class GlooLink : public RankLink {
 public:
  GlooLink(const MeetingPoint& place, std::int32_t rank, std::int32_t ranks,
           std::span<const std::vector<std::int32_t>> groups, double timeout_s)
      : ranks_(ranks) {
    const std::chrono::milliseconds timeout(static_cast<std::int64_t>(timeout_s * 1e3));
    told("waiting for the other ranks", [&] {
      store_ = store_at(place, rank, ranks, timeout);
      all_ = joined("all", rank, ranks, place.file.empty(), timeout);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const std::vector<std::int32_t>& members = groups[g];
        const auto own = std::lower_bound(members.begin(), members.end(), rank);
        groups_.emplace_back();
        if (members.size() < 2 || own == members.end() || *own != rank) continue;
        groups_.back() =
            joined("group" + std::to_string(g), static_cast<std::int32_t>(own - members.begin()),
                   static_cast<std::int32_t>(members.size()), place.file.empty(), timeout);
      }
      return 0;
    });
  }

  void send(const TensorHandle& tensor, std::int32_t peer, std::int32_t tag) override {
    told(with(peer), [&] {
      std::vector<torch::Tensor> tensors{tensor_of(tensor).contiguous()};
      auto work = all_->send(tensors, peer, tag);
      sent_.push_back({std::move(tensors.front()), std::move(work), peer});
      return 0;
    });
  }

  TensorHandle receive(TensorHandle room, std::int32_t peer, std::int32_t tag) override {
    told(with(peer), [&] {
      std::vector<torch::Tensor> tensors{tensor_of(room)};
      return all_->recv(tensors, peer, tag)->wait();
    });
    return room;
  }

  void finish_sends() override {
    for (Sent& each : sent_) {
      told(with(each.peer), [&] { return each.work->wait(); });
    }
    sent_.clear();
  }

  /// By a ring: libtorch's own takes three to six times as long for 64 KiB to 1 MiB. Of large rows
  /// it sends one part while it adds another.
  TensorHandle sum(std::size_t group, TensorHandle row) override {
    const int members = groups_[group]->getSize();
    told("summing", [&] {
      if (tensor_of(row).numel() > kMostInRing) {
        std::vector<torch::Tensor> tensors{tensor_of(row)};
        groups_[group]->allreduce(tensors)->wait();
        return 0;
      }
      const std::vector<torch::Tensor> pieces = tensor_of(row).view({-1}).tensor_split(members);
      const torch::Tensor& own = pieces[at(groups_[group]->getRank())];
      if (const torch::Tensor sum = summed_piece(group, pieces); sum.numel() > 0) own.copy_(sum);
      gather_pieces(group, pieces);
      return 0;
    });
    return row;
  }

  /// Gloo has no reduce-scatter in libtorch 1.13.
  TensorHandle sum_part(std::size_t group, TensorHandle row) override {
    const std::vector<torch::Tensor> parts = tensor_of(row).tensor_split(groups_[group]->getSize());
    const torch::Tensor own = torch::empty_like(parts.front());
    told("summing", [&] {
      for (std::int64_t first = 0; first < own.size(0); first += kPiece) {
        const std::int64_t end = std::min(own.size(0), first + kPiece);
        std::vector<torch::Tensor> pieces;
        pieces.reserve(parts.size());
        for (const torch::Tensor& part : parts) pieces.push_back(part.slice(0, first, end));
        own.slice(0, first, end).copy_(summed_piece(group, pieces));
      }
      return 0;
    });
    return handle_of(own);
  }

  /// By a ring in place: libtorch's own copies everything twice more, each time into new memory.
  TensorHandle gather(std::size_t group, TensorHandle part, TensorHandle room) override {
    const int members = groups_[group]->getSize();
    if (!room) room = row_for(tensor_of(part), members);
    const std::vector<torch::Tensor> pieces = tensor_of(room).tensor_split(members);
    const torch::Tensor& own = pieces[at(groups_[group]->getRank())];
    if (part) own.copy_(tensor_of(part));
    told("gathering", [&] {
      gather_pieces(group, pieces);
      return 0;
    });
    return room;
  }

  std::vector<TensorHandle> all_to_all(std::size_t group, std::span<const TensorHandle> parts,
                                       std::span<const TensorHandle> rooms) override {
    std::vector<TensorHandle> come(rooms.begin(), rooms.end());
    const int own = groups_[group]->getRank();
    const int tag = next_tag(group);
    told("exchanging tokens", [&] {
      std::vector<std::vector<torch::Tensor>> sent;
      std::vector<c10::intrusive_ptr<c10d::Work>> sends;
      for (int peer = 0; peer < std::ssize(parts); ++peer) {
        const torch::Tensor& part = tensor_of(parts[at(peer)]);
        if (peer == own) come[at(peer)] = parts[at(peer)];
        if (peer == own || part.numel() == 0) continue;
        sent.push_back({part.contiguous()});
        sends.push_back(groups_[group]->send(sent.back(), peer, tag));
      }
      for (int peer = 0; peer < std::ssize(rooms); ++peer) {
        std::vector<torch::Tensor> room{tensor_of(rooms[at(peer)])};
        if (peer == own || room.front().numel() == 0) continue;
        groups_[group]->recv(room, peer, tag)->wait();
      }
      for (const auto& each : sends) each->wait();
      return 0;
    });
    return come;
  }

  double sum_of_all(double number) override {
    if (ranks_ == 1) return number;
    std::vector<torch::Tensor> tensors{torch::full({1}, number, torch::kFloat64)};
    told("summing losses", [&] { return all_->allreduce(tensors)->wait(); });
    return tensors.front().item<double>();
  }

 private:
  struct Sent {
    torch::Tensor tensor;
    c10::intrusive_ptr<c10d::Work> work;
    std::int32_t peer;
  };

  /// A step of a ring: to the next rank of the group, while the one before sends to this one.
  void pass_on(std::size_t group, const torch::Tensor& sent, torch::Tensor& come, int tag) {
    const int members = groups_[group]->getSize(), own = groups_[group]->getRank();
    std::vector<torch::Tensor> away{sent}, here{come};
    c10::intrusive_ptr<c10d::Work> sending;
    if (sent.numel() > 0) sending = groups_[group]->send(away, (own + 1) % members, tag);
    if (come.numel() > 0) {
      groups_[group]->recv(here, (own + members - 1) % members, tag)->wait();
    }
    if (sending) sending->wait();
  }

  /// This rank's piece of the sum, `pieces` being its own summands of all: each piece goes round
  /// from the rank behind the one that keeps it, and each rank adds its own to what comes.
  torch::Tensor summed_piece(std::size_t group, const std::vector<torch::Tensor>& pieces) {
    const int members = groups_[group]->getSize(), own = groups_[group]->getRank();
    const int tag = next_tag(group);
    const auto piece = [&](int member) { return pieces[at((member + members) % members)]; };
    torch::Tensor sum = piece(own - 1);
    for (int step = 2; step <= members; ++step) {
      const torch::Tensor summand = piece(own - step);
      torch::Tensor come = torch::empty_like(summand);
      pass_on(group, sum, come, tag);
      sum = come.add_(summand);
    }
    return sum;
  }

  /// Fills in the pieces of the others, each of which has its own.
  void gather_pieces(std::size_t group, std::vector<torch::Tensor> pieces) {
    const int members = groups_[group]->getSize(), own = groups_[group]->getRank();
    const int tag = next_tag(group);
    const auto number = [&](int member) { return at((member + members) % members); };
    for (int step = 0; step + 1 < members; ++step) {
      pass_on(group, pieces[number(own - step)], pieces[number(own - step - 1)], tag);
    }
  }

  /// Room for so many parts of that form.
  static TensorHandle row_for(const torch::Tensor& part, int members) {
    std::vector<std::int64_t> sizes = part.sizes().vec();
    sizes[0] *= members;
    return handle_of(torch::empty(sizes, part.options()));
  }

  int next_tag(std::size_t group) {
    exchanges_.resize(groups_.size());
    return exchanges_[group] = (exchanges_[group] + 1) % (1 << 20);
  }

  GlooGroup joined(const std::string& name, std::int32_t rank, std::int32_t ranks, bool network,
                   std::chrono::milliseconds timeout) const {
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    options->devices.push_back(network
                                   ? c10d::ProcessGroupGloo::createDefaultDevice()
                                   : c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
    options->threads = 2;
    const auto store = c10::make_intrusive<c10d::PrefixStore>(name, store_);
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, ranks, options);
  }

  static std::string with(std::int32_t peer) { return "with rank " + std::to_string(peer); }

  std::int32_t ranks_;
  c10::intrusive_ptr<c10d::Store> store_;
  GlooGroup all_;
  std::vector<GlooGroup> groups_;
  std::vector<Sent> sent_;
  std::vector<int> exchanges_;  ///< [group]: all ranks of it count the same.
};

}  // namespace

std::unique_ptr<RankLink> gloo_link(const MeetingPoint& place, std::int32_t rank,
                                    std::int32_t ranks,
                                    std::span<const std::vector<std::int32_t>> groups,
                                    double timeout_s) {
  return std::make_unique<GlooLink>(place, rank, ranks, groups, timeout_s);
}

}  // namespace braid
