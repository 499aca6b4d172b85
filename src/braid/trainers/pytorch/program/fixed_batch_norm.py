class FixedBatchNorm(nn.Module):
    """Batch normalisation by fixed means and variances: those of a batch depend on how it is divided."""

    def __init__(self, channels):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels))
        self.bias = nn.Parameter(torch.empty(channels))
        self.register_buffer("mean", torch.empty(channels))
        self.register_buffer("variance", torch.empty(channels))

    def forward(self, x):
        return F.batch_norm(x, self.mean, self.variance, self.weight, self.bias, eps=1e-5)
