class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x):
        return x * (x.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt() * self.weight
