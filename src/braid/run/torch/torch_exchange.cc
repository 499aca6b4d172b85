#include "braid/run/torch/torch_exchange.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/torch.h>

#include "braid/base/index.h"
#include "braid/run/stage_sharding.h"
#include "braid/run/torch/torch_tensor.h"

namespace braid {
namespace {

enum class Move : std::uint8_t { keep, sum, take, gather, sum_take };

/// What is moved where, forward and backward.
struct ExchangeKind {
  Move forward = Move::keep, backward = Move::keep;
};

ExchangeKind kind_of(const std::string& operation) {
  if (operation == "Share") return {Move::keep, Move::sum};
  if (operation == "Sum") return {Move::sum, Move::keep};
  if (operation == "Take") return {Move::take, Move::gather};
  if (operation == "GatherAlike") return {Move::gather, Move::take};
  if (operation == "GatherShare") return {Move::gather, Move::sum_take};
  return {Move::sum_take, Move::gather};
}

std::int64_t number_of(const ProgramNode& node, const char* name) {
  return std::get<std::int64_t>(*node.attribute(name));
}

std::vector<std::vector<Interval>> held_of(const ProgramNode& node) {
  return held_of_list(std::get<std::vector<std::int64_t>>(*node.attribute("held")));
}

/// Which part of a dimension each rank has.
struct Parts {
  std::int64_t dimension = 0;  ///< Of a tensor with samples in front.
  std::int64_t size = 0;       ///< Of all ranks together.
  std::vector<std::vector<Interval>> held;

  std::int64_t longest() const {
    std::int64_t most = 0;
    for (const auto& each : held) most = std::max(most, total_length(each));
    return most;
  }
};

torch::Tensor places_of(const std::vector<Interval>& held) {
  std::vector<std::int64_t> places;
  for (const Interval& each : held) {
    for (std::int64_t i = each.first; i < each.last; ++i) places.push_back(i);
  }
  return torch::tensor(places, torch::kInt64);
}

torch::Tensor part_of(const torch::Tensor& x, std::int64_t dimension,
                      const std::vector<Interval>& held) {
  if (held.size() == 1) return x.slice(dimension, held.front().first, held.front().last);
  return x.index_select(dimension, places_of(held));
}

/// Exchanges along one dimension, without gradients. Collectives are of f32 at the least: Gloo has
/// none of bf16.
class Mover {
 public:
  Mover(RankLink& link, std::size_t group, int rank, Parts parts)
      : link_(&link), group_(group), rank_(rank), parts_(std::move(parts)) {}

  torch::Tensor moved(Move move, const torch::Tensor& x) const {
    if (move == Move::keep) return x.detach();
    if (move == Move::take) return part_of(x, parts_.dimension, parts_.held[at(rank_)]).clone();
    const bool narrow = x.scalar_type() == torch::kBFloat16;
    const torch::Tensor wide = narrow ? x.to(torch::kFloat32) : x;
    torch::Tensor y = move == Move::gather ? gathered(wide)
                      : move == Move::sum  ? summed(wide)
                                           : part_of_sum(wide);
    return narrow ? y.to(torch::kBFloat16) : y;
  }

 private:
  torch::Tensor summed(const torch::Tensor& x) const {
    // The link may sum in place.
    return tensor_of(
        link_->sum(group_, handle_of(x.clone(torch::MemoryFormat::Contiguous).detach())));
  }

  torch::Tensor gathered(const torch::Tensor& x) const {
    const std::int64_t longest = parts_.longest();
    torch::Tensor part = x.movedim(parts_.dimension, 0);
    if (part.size(0) < longest) {
      std::vector<std::int64_t> missing = part.sizes().vec();
      missing.front() = longest - part.size(0);
      part = torch::cat({part, torch::zeros(missing, part.options())});
    }
    const torch::Tensor all = tensor_of(
        link_->gather(group_, handle_of(part.clone(torch::MemoryFormat::Contiguous).detach()), {}));
    std::vector<std::int64_t> from(at(parts_.size), -1);
    bool in_order = all.size(0) == parts_.size;
    for (std::size_t r = 0; r < parts_.held.size(); ++r) {
      std::int64_t place = static_cast<std::int64_t>(r) * longest;
      for (const Interval& each : parts_.held[r]) {
        for (std::int64_t i = each.first; i < each.last; ++i, ++place) {
          if (from[at(i)] < 0) from[at(i)] = place;
          in_order = in_order && from[at(i)] == i;
        }
      }
    }
    const torch::Tensor whole =
        in_order ? all : all.index_select(0, torch::tensor(from, torch::kInt64));
    return whole.movedim(0, parts_.dimension).contiguous();
  }

  torch::Tensor part_of_sum(const torch::Tensor& x) const {
    const auto even = even_layout(0, parts_.size, static_cast<int>(parts_.held.size()));
    const bool is_even_part =
        parts_.size % std::ssize(parts_.held) == 0 && even.held == parts_.held;
    if (!is_even_part) {
      return part_of(summed(x), parts_.dimension, parts_.held[at(rank_)]).clone();
    }
    const torch::Tensor rows =
        x.movedim(parts_.dimension, 0).clone(torch::MemoryFormat::Contiguous).detach();
    return tensor_of(link_->sum_part(group_, handle_of(rows)))
        .movedim(0, parts_.dimension)
        .contiguous();
  }

  RankLink* link_;
  std::size_t group_;
  int rank_;
  Parts parts_;
};

class ExchangeBackward : public torch::autograd::Node {
 public:
  ExchangeBackward(Mover mover, Move move) : mover_(std::move(mover)), move_(move) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const torch::NoGradGuard no_gradients;
    if (!gradients.front().defined()) return {torch::Tensor()};
    return {mover_.moved(move_, gradients.front())};
  }

 private:
  Mover mover_;
  Move move_;
};

torch::Tensor exchanged(const Mover& mover, const ExchangeKind& kind, const torch::Tensor& x) {
  torch::Tensor y;
  {
    const torch::NoGradGuard no_gradients;
    y = mover.moved(kind.forward, x);
  }
  if (!torch::GradMode::is_enabled() || !x.requires_grad()) return y;
  std::shared_ptr<ExchangeBackward> backward(new ExchangeBackward(mover, kind.backward),
                                             torch::autograd::deleteNode);
  backward->set_next_edges(torch::autograd::collect_next_edges(x));
  torch::autograd::set_history(y, backward);
  return y;
}

/// What it is, and a gradient of zero.
class NoShare : public torch::autograd::Function<NoShare> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) {
    return x.view_as(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {torch::zeros_like(gradients.front())};
  }
};

}  // namespace

torch::Tensor TorchExchange::compute(const ProgramNode& node, const torch::Tensor& x) const {
  Parts parts;
  if (node.attribute("axis") != nullptr) {
    parts = {number_of(node, "axis") + 1, number_of(node, "size"), held_of(node)};
  }
  return exchanged(Mover(*link_, group_, rank_, std::move(parts)), kind_of(node.operation), x);
}

torch::Tensor TorchExchange::sum(const torch::Tensor& x) const {
  return exchanged(Mover(*link_, group_, rank_, {}), {Move::sum, Move::keep}, x);
}

torch::Tensor TorchExchange::greatest(const torch::Tensor& x) const {
  const torch::NoGradGuard no_gradients;
  const torch::Tensor row = x.detach().to(torch::kFloat64).reshape({1, -1}).contiguous();
  const torch::Tensor all = tensor_of(link_->gather(group_, handle_of(row), {}));
  return all.amax(0).reshape(x.sizes()).to(x.scalar_type());
}

torch::Tensor compute_own_part(const ProgramNode& node, const torch::Tensor& x,
                               const torch::Tensor& ids) {
  if (node.operation == "TakeStored") {
    return part_of(x, number_of(node, "axis"), held_of(node).front());
  }
  if (node.operation == "OfFirst") {
    const bool is_first = number_of(node, "first") != 0;
    return is_first || !x.requires_grad() ? x : NoShare::apply(x);
  }
  const torch::Tensor rows = ids - number_of(node, "first");
  const torch::Tensor own = rows.ge(0).logical_and(rows.lt(x.size(0)));
  std::vector<std::int64_t> sizes = ids.sizes().vec();
  for (std::int64_t d = 1; d < x.dim(); ++d) sizes.push_back(x.size(d));
  const torch::Tensor found =
      x.index_select(0, rows.clamp(0, x.size(0) - 1).reshape({-1})).reshape(sizes);
  torch::Tensor mask = own.to(x.scalar_type());
  for (std::int64_t d = 1; d < x.dim(); ++d) mask = mask.unsqueeze(-1);
  return found * mask;
}

}  // namespace braid
