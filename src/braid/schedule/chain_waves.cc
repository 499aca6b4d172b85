#include "braid/schedule/chain_waves.h"

#include <cassert>
#include <cstddef>

#include "braid/schedule/halved_waves.h"
#include "braid/schedule/straight_waves.h"

namespace braid {
namespace {

template <template <int, int> typename Waves, int W>
[[gnu::always_inline]] inline void run_waves(TimedPasses& timed, std::int64_t count,
                                             ChainWorkspace& workspace) {
  switch (WaveBlocks<W, 0>::blocks_of(count)) {
    case 1:
      return Waves<W, 1>(timed, workspace).run();
    case 2:
      return Waves<W, 2>(timed, workspace).run();
    default:
      return Waves<W, 0>(timed, workspace).run();
  }
}

template <int W>
[[gnu::always_inline]] inline void run_with(TimedPasses& timed, ChainWorkspace& workspace) {
  const ChainTimes& chain = timed.chain;
  if (chain.vp == 1 && chain.schedule != ScheduleKind::gpipe) {
    run_waves<HalvedWaves, W>(timed, (chain.pp + 1) / 2, workspace);
  } else {
    run_waves<StraightWaves, W>(timed, chain.pp, workspace);
  }
}

#ifdef __x86_64__
[[gnu::target("avx512f,avx512dq,avx512vl")]] void run_with_eight(TimedPasses& timed,
                                                                 ChainWorkspace& workspace) {
  run_with<8>(timed, workspace);
}
[[gnu::target("avx2")]] void run_with_four(TimedPasses& timed, ChainWorkspace& workspace) {
  run_with<4>(timed, workspace);
}
#endif

}  // namespace

Lanes widest_lanes() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0) {
    return Lanes::eight;
  }
  if (__builtin_cpu_supports("avx2") != 0) return Lanes::four;
#endif
  return Lanes::two;
}

void time_in_waves(TimedPasses& timed, Lanes lanes, ChainWorkspace& workspace) {
  assert(timed.chain.vp == 1 || timed.chain.pp > 2);
  workspace.steady.restart();
  const auto stages = static_cast<std::size_t>(timed.chain.pp);
  timed.first_forward_end_s.resize(stages);
  timed.passes_end_s.resize(stages);
#ifdef __x86_64__
  if (lanes == Lanes::eight) return run_with_eight(timed, workspace);
  if (lanes == Lanes::four) return run_with_four(timed, workspace);
#endif
  (void)lanes;
  run_with<2>(timed, workspace);
}

}  // namespace braid
