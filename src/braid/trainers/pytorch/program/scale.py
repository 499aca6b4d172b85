class Scale(nn.Module):
    """Stands for a pointwise function that the plan's model does not spell out (rotary embedding)."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("weight", torch.empty(width))

    def forward(self, x):
        return x * self.weight
