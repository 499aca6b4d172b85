def experts(x, scores, weights, biases=None, top_k=1):
    """Each token through the experts of its greatest scores, weighted by the softmax of these."""
    tokens = x.reshape(-1, x.shape[-1])
    best, chosen = scores.reshape(-1, scores.shape[-1]).topk(top_k, dim=1)
    shares = best.softmax(dim=1)
    y = torch.zeros_like(tokens)
    for e, weight in enumerate(weights):
        token, place = (chosen == e).nonzero(as_tuple=True)
        made = expert(tokens[token], weight, None if biases is None else biases[e])
        y = y.index_add(0, token, made * shares[token, place, None])
    return y.view_as(x)


def expert(x, weight, bias=None):
    """One expert: two products with GELU between, or three with SwiGLU."""
    inner = weight.shape[-1]
    widths = (len(weight) - 1) * [inner] + [x.shape[-1]]
    bias = len(weight) * [0] if bias is None else bias.split(widths)
    y = x @ weight[0] + bias[0]
    y = F.gelu(y) if len(weight) == 2 else F.silu(y) * (x @ weight[1] + bias[1])
    return y @ weight[-1].T + bias[-1]
