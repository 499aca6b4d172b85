def attention(q, k, v, heads, kv_heads, causal=False, window=0, relative=None):
    """softmax(q kᵀ / √width) v of each head; q, k and v are [samples × tokens × heads · width]."""
    q_len, kv_len = q.shape[1], k.shape[1]
    q, k, v = (
        x.reshape(*x.shape[:2], count, -1).transpose(1, 2)
        for x, count in ((q, heads), (k, kv_heads), (v, kv_heads))
    )
    if kv_heads < heads:
        k, v = (x.repeat_interleave(heads // kv_heads, dim=1) for x in (k, v))
    bias = None
    if window or relative is not None or (causal and q_len != kv_len):
        bias = torch.zeros(q_len, kv_len, dtype=q.dtype, device=q.device)
        places = torch.arange(max(q_len, kv_len), device=q.device)
        behind = (places[:q_len] + kv_len - q_len)[:, None] - places[:kv_len]
        if causal:
            bias = bias.masked_fill(behind < 0, -math.inf)
        if window:
            bias = bias.masked_fill(behind >= window, -math.inf)
        if relative is not None:
            buckets = relative_buckets(q_len, kv_len, len(relative), causal).to(q.device)
            bias = bias + relative[buckets].permute(2, 0, 1)
    is_causal = causal and bias is None
    if hasattr(F, "scaled_dot_product_attention"):  # From PyTorch 2.0 on.
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, is_causal=is_causal)
    else:
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        if bias is not None:
            scores = scores + bias
        if is_causal:
            later = torch.ones(q_len, kv_len, dtype=torch.bool, device=q.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        y = scores.softmax(dim=-1) @ v
    return y.transpose(1, 2).flatten(2)
