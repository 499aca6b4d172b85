#include <cstdint>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "braid/frontend/graph_builder.h"
#include "braid/frontend/model.h"
#include "braid/frontend/transformer_block.h"
#include "braid/profile/estimator.h"
#include "braid/profile/layer_comm.h"
#include "braid/system/system.h"

#include "profile/groups_of.h"

namespace braid {
namespace {

constexpr double kTokens = 1024, kHidden = 512, kInner = 256, kShared = 128, kExperts = 4,
                 kTopK = 2;
/// What all tokens are in bf16.
constexpr double kWhole = 2 * kTokens * kHidden;

/// Layer 0, which makes the tokens.
TensorId tokens_of(GraphBuilder& builder) {
  const auto tokens = static_cast<std::int64_t>(kTokens);
  builder.begin_layer("before");
  const TensorId input = builder.input("x", {tokens, 8}, Dtype::bf16);
  return builder.linear("in", input, {tokens, 8, static_cast<std::int64_t>(kHidden)}, false,
                        Split::sequence);
}

/// Layer 1: experts, gated, whose shared network is `shared` wide.
Graph moe(double shared, bool padded = false) {
  GraphBuilder builder("moe", static_cast<std::int64_t>(kTokens));
  const auto tokens = static_cast<std::int64_t>(kTokens);
  const auto hidden = static_cast<std::int64_t>(kHidden);
  const TensorId x = tokens_of(builder);
  builder.begin_layer("moe");
  BlockSpec spec;
  spec.hidden = hidden;
  spec.mlp.gated = true;
  spec.mlp.activation = Activation::silu;
  spec.experts.count = static_cast<std::int64_t>(kExperts);
  spec.experts.top_k = static_cast<std::int64_t>(kTopK);
  spec.experts.inner = static_cast<std::int64_t>(kInner);
  spec.experts.shared_inner = static_cast<std::int64_t>(shared);
  const TensorId out = experts(builder, spec, "", x, tokens);
  Graph graph = builder.finish({out});
  for (Operator& op : graph.operators) {
    if (auto* routed = std::get_if<MoeExperts>(&op.kind)) routed->padded = padded;
  }
  return graph;
}

/// Eight devices that send one byte a second, without latency, behind whose collectives nothing
/// hides: communication takes as many seconds as the device sends bytes.
System one_byte_a_second() {
  System system = load_system("dgx-h100:8");
  NetworkLevel& network = system.groups.front().intra_node;
  network.bytes_per_s = network.unit_bytes_per_s = network.efficiency = 1;
  network.latency_s = network.half_bytes = 0;
  system.groups.front().chip.efficiency.overlap_loss = 1;
  system.groups.front().chip.efficiency.host_operator_s = 0;
  return system;
}

Execution form(int tp, bool sequence, int ep, bool whole = false) {
  Execution how;
  how.tp = tp;
  how.sequence_parallel = sequence;
  how.ep = ep;
  how.whole_experts = whole;
  return how;
}

LayerCost moe_cost(const Execution& how, double shared, bool padded = false) {
  const System system = one_byte_a_second();
  LayerGroups groups = test::groups_of(system, how);
  if (how.whole_experts) groups.ep = span_of(system, 1, how.ep);
  return estimate_layer(moe(shared, padded), 1, how, {}, groups, system);
}

/// Of `ep` ranks with four experts together, how many have one of a token's two: of six pairs of
/// experts on two ranks of two, four lie on both.
double ranks_of_a_token(int ep) { return ep == 1 ? 1 : ep == 2 ? (4 * 2 + 2 * 1) / 6.0 : 2; }

// Under sequence parallelism a rank dispatches its part of the tokens; those that came to its
// experts are gathered over the tensor-parallel ranks before these and their outputs scattered
// behind, and the gradients likewise in the other direction.
TEST(ExpertComm, UnderSequenceParallelismGathersAndScattersInBothPasses) {
  for (const int tp : {2, 4}) {
    for (const int ep : {1, 2, 4}) {
      if (tp * ep > 8) continue;
      const double others = static_cast<double>(tp - 1) / tp;
      const double came = kWhole * ranks_of_a_token(ep);
      const double sent = kWhole / tp * ranks_of_a_token(ep) * (ep - 1) / ep;
      const LayerCost routed = moe_cost(form(tp, true, ep), 0);
      EXPECT_NEAR(routed.forward.tp_comm_s, 2 * others * came, 1e-6 * came);
      EXPECT_NEAR(routed.backward_input.tp_comm_s, 2 * others * came, 1e-6 * came);
      EXPECT_NEAR(routed.forward.ep_comm_s, 2 * sent, 1e-6 * kWhole);
      EXPECT_NEAR(routed.backward_input.ep_comm_s, 2 * sent, 1e-6 * kWhole);
      EXPECT_EQ(routed.recompute.tp_comm_s, 0);
      // The shared network gathers all tokens and scatters its sums; backward also gathers them
      // again for its weights' gradients.
      const LayerCost shared = moe_cost(form(tp, true, ep), kShared);
      EXPECT_NEAR(shared.forward.tp_comm_s - routed.forward.tp_comm_s, 2 * others * kWhole,
                  1e-6 * kWhole);
      EXPECT_NEAR(shared.backward_input.tp_comm_s - routed.backward_input.tp_comm_s,
                  3 * others * kWhole, 1e-6 * kWhole);
      EXPECT_EQ(shared.hidden_tp_s, 0);
      // All of it is done again with full recomputation.
      Execution again = form(tp, true, ep);
      again.recompute = Recompute::full;
      EXPECT_EQ(moe_cost(again, 0).recompute.tp_comm_s, routed.forward.tp_comm_s);
    }
  }
}

// Every rank has all tokens and dispatches them to experts of which it has the same part. Outputs
// are summed forward, the tokens' gradients backward, with those of the shared network.
TEST(ExpertComm, WithoutSequenceParallelismIsOneAllReduceInEachPass) {
  for (const int tp : {2, 4}) {
    for (const int ep : {1, 2, 4}) {
      if (tp * ep > 8) continue;
      const double others = static_cast<double>(tp - 1) / tp;
      const double sent = kWhole * ranks_of_a_token(ep) * (ep - 1) / ep;
      const LayerCost routed = moe_cost(form(tp, false, ep), 0);
      EXPECT_NEAR(routed.forward.tp_comm_s, 2 * others * kWhole, 1e-6 * kWhole);
      EXPECT_NEAR(routed.backward_input.tp_comm_s, 2 * others * kWhole, 1e-6 * kWhole);
      EXPECT_NEAR(routed.forward.ep_comm_s, 2 * sent, 1e-6 * kWhole);
      EXPECT_NEAR(routed.backward_input.ep_comm_s, 2 * sent, 1e-6 * kWhole);
      const LayerCost shared = moe_cost(form(tp, false, ep), kShared);
      EXPECT_NEAR(shared.forward.tp_comm_s, 4 * others * kWhole, 1e-6 * kWhole);
      EXPECT_NEAR(shared.backward_input.tp_comm_s, 2 * others * kWhole, 1e-6 * kWhole);
    }
  }
}

TEST(ExpertComm, OfWholeExpertsIsTheirDispatchAlone) {
  for (const int ep : {2, 4}) {
    const LayerCost cost = moe_cost(form(2, true, ep, true), 0);
    EXPECT_EQ(cost.forward.tp_comm_s, 0);
    EXPECT_EQ(cost.backward_input.tp_comm_s, 0);
    const double sent = kWhole / 2 * ranks_of_a_token(ep) * (ep - 1) / ep;
    EXPECT_NEAR(cost.forward.ep_comm_s, 2 * sent, 1e-6 * kWhole);
    EXPECT_NEAR(cost.backward_input.ep_comm_s, 2 * sent, 1e-6 * kWhole);
  }
}

// What a dense network of the experts' width sends, when there are as many experts as a token has
// and all on one rank.
TEST(ExpertComm, OnOneRankIsThatOfADenseNetwork) {
  GraphBuilder builder("dense", static_cast<std::int64_t>(kTokens));
  const auto tokens = static_cast<std::int64_t>(kTokens);
  const auto hidden = static_cast<std::int64_t>(kHidden);
  const TensorId x = tokens_of(builder);
  builder.begin_layer("dense");
  BlockSpec spec;
  spec.hidden = hidden;
  const TensorId out = feed_forward(builder, spec, "", x, tokens, 256);
  const Graph dense = builder.finish({out});
  const System system = one_byte_a_second();
  for (const bool sequence : {false, true}) {
    const Execution how = form(4, sequence, 1);
    const LayerCost cost = estimate_layer(dense, 1, how, {}, test::groups_of(system, how), system);
    const LayerCost routed = moe_cost(how, 0);
    EXPECT_NEAR(routed.forward.tp_comm_s, cost.forward.tp_comm_s, 1e-6 * kWhole);
    // Experts keep what was gathered; dense networks gather it again.
    const double again = sequence ? 0.75 * kWhole : 0;
    EXPECT_NEAR(routed.backward_input.tp_comm_s, cost.backward_input.tp_comm_s - again,
                1e-6 * kWhole);
  }
}

// Where experts have room for a fixed number of tokens, one is sent for each of its experts, also
// where two of them lie on one rank.
TEST(ExpertComm, OfPaddedExpertsIsOneCopyForEachExpertOfAToken) {
  for (const int tp : {1, 2}) {
    for (const int ep : {2, 4}) {
      const double sent = kTopK * kWhole / tp * (ep - 1) / ep;
      const double came = kTopK * kWhole;
      const LayerCost cost = moe_cost(form(tp, tp > 1, ep), 0, true);
      EXPECT_NEAR(cost.forward.ep_comm_s, 2 * sent, 1e-6 * kWhole);
      EXPECT_NEAR(cost.backward_input.ep_comm_s, 2 * sent, 1e-6 * kWhole);
      EXPECT_NEAR(cost.forward.tp_comm_s, 2.0 * (tp - 1) / tp * came, 1e-6 * kWhole);
      EXPECT_NEAR(cost.backward_input.tp_comm_s, 2.0 * (tp - 1) / tp * came, 1e-6 * kWhole);
    }
  }
  EXPECT_EQ(moe_cost(form(1, false, 1), 0, true), moe_cost(form(1, false, 1), 0));
}

// The tokens that came to a rank's experts are kept whole, inner activations in parts, and outputs
// not at all.
TEST(ExpertComm, RanksOfOneExpertAllKeepItsTokens) {
  const double visits = 2 * kTokens * kTopK;
  const double tokens = kWhole, scores = 4 * kTokens * kExperts;
  for (const int tp : {1, 2, 4}) {
    for (const int ep : {1, 2}) {
      const double inner = visits * 3 * kInner / tp, rows = visits * kHidden;
      EXPECT_NEAR(moe_cost(form(tp, false, ep), 0).stash_bytes, tokens + scores + rows + inner,
                  1e-6 * tokens);
      if (tp == 1) continue;
      EXPECT_NEAR(moe_cost(form(tp, true, ep), 0).stash_bytes,
                  (tokens + scores) / tp + rows + inner, 1e-6 * tokens);
      EXPECT_NEAR(moe_cost(form(tp, true, ep, true), 0).stash_bytes,
                  (tokens + scores + rows) / tp + inner, 1e-6 * tokens);
    }
  }
}

TEST(ExpertComm, HostIssuesWhatIsSentOverTensorParallelRanks) {
  System system = load_system("dgx-h100:8");
  system.groups.front().chip.efficiency.host_operator_s = 1;
  const auto host_s = [&](const Execution& how) {
    LayerGroups groups = test::groups_of(system, how);
    if (how.whole_experts) groups.ep = span_of(system, 1, how.ep);
    return estimate_layer(moe(0), 1, how, {}, groups, system).forward.total_s();
  };
  EXPECT_NEAR(host_s(form(2, false, 1)) - host_s(form(1, false, 1)), 1, 1e-6);
  EXPECT_NEAR(host_s(form(2, true, 1)) - host_s(form(1, false, 1)), 2, 1e-6);
  EXPECT_NEAR(host_s(form(2, true, 2, true)) - host_s(form(1, false, 2)), 0, 1e-6);
}

/// What layer_sent() counts takes as many seconds where a device sends a byte a second.
TEST(LayerSent, IsWhatCommunicationTakesAtAByteASecond) {
  const System system = one_byte_a_second();
  const Graph block = load_model("bert-large", {.seq_len = 128, .dims = {}});
  const Graph routed = moe(kShared);
  const Precision precision;
  std::size_t compared = 0;
  for (const bool sequence_parallel : {false, true}) {
    for (const Graph* graph : {&block, &routed}) {
      Execution how;
      how.tp = 4;
      how.sequence_parallel = sequence_parallel;
      const LayerCost cost =
          estimate_layer(*graph, 1, how, precision, test::groups_of(system, how), system);
      const std::vector<OperatorWork> works = layer_work(*graph, 1);
      const LayerSent sent = layer_sent({*graph, 1, works}, how, precision);
      const PassTime& forward = cost.forward;
      const PassTime& backward = cost.backward_input;
      EXPECT_GT(sent.forward, 0);
      EXPECT_NEAR(sent.forward, forward.tp_comm_s + forward.ep_comm_s, 1e-9 * sent.forward);
      EXPECT_NEAR(sent.backward, backward.tp_comm_s + backward.ep_comm_s + cost.hidden_tp_s,
                  1e-9 * sent.backward);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 4U);
}

}  // namespace
}  // namespace braid
