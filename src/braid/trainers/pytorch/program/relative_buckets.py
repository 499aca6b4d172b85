def relative_buckets(q_len, kv_len, buckets, causal):
    """A bucket for each small distance of key and query, and wider ones for larger distances (T5)."""
    distance = torch.arange(q_len)[:, None] - torch.arange(kv_len)
    first = torch.zeros_like(distance)
    if not causal:  # Half of the buckets are for what lies ahead.
        buckets //= 2
        first = (distance < 0) * buckets
        distance = distance.abs()
    distance = distance.clamp(min=0)
    exact = buckets // 2
    part = (distance.clamp(min=1).double() / exact).log() / math.log(128 / exact)
    large = (exact + (part * (buckets - exact)).long()).clamp(max=buckets - 1)
    return first + torch.where(distance < exact, distance, large)
